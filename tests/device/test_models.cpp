// Every model of the list at every tensor parallel degree, and every recorded routing, against the oracle: exact data,
// bit for bit.
//
// Built twice, as test_random_problems.cpp: at full size for a GPU; for the emulator with the model's own experts,
// top_k and factors, but a few local experts, rows and columns. One line a model or routing says how long it took (-l
// message).
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <tuple>

#include "harness/check.hpp"
#include "harness/jit_kernels.hpp"
#include "harness/models.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

// The default of each kind, compiled once.
const Kernel& default_kernel(const KernelKind& kind) {
  static std::map<std::tuple<DType, bool, Activation>, CompiledKernel> compiled;
  const auto key = std::make_tuple(kind.dtype, kind.gate_up, kind.activation);
  auto place = compiled.find(key);
  if (place == compiled.end())
    place =
        compiled.emplace(key, compile_kernel(default_config(kind, current_device().arch), kind, current_device().arch))
            .first;
  return place->second.kernel;
}

uint32_t shortened(uint32_t extent, uint32_t step, uint32_t most) {
  return std::min(round_up(std::max(1u, extent / 16), step), most);
}

// A rank with a few experts in the middle, and short rows of weights.
Problem reduced(Problem problem) {
  Shape& shape = problem.shape;
  shape.n = shortened(shape.n, 32, 160);
  shape.k = shortened(shape.k, problem.format == CheckpointFormat::block36 ? 64 : 16, 208);
  shape.local_experts = std::min(shape.local_experts, 6u);
  shape.first_expert = (shape.experts - shape.local_experts) / 2;
  return problem;
}

void check_exact(Problem problem) {
  ProblemOnDevice memory(on_emulator ? reduced(std::move(problem)) : problem);
  const CheckResult result = check(memory, default_kernel(kernel_kind(memory.problem().shape)), Data::exact);
  BOOST_TEST(result.passed, result.what);
}

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// FULCRUM_TEST_DATA in the environment, for a machine that has no checkout where this was compiled.
std::filesystem::path routing_folder() {
  const char* moved = std::getenv("FULCRUM_TEST_DATA");
  return std::filesystem::path(moved != nullptr ? moved : FULCRUM_TEST_DATA) / "routing";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(models_and_routings, *boost::unit_test::precondition(needs_gpu))

BOOST_AUTO_TEST_CASE(models) {
  for (const Model& model : fulcrum::harness::models()) {
    const Clock clock;
    size_t num_problems = 0;
    for (const uint32_t degree : legal_degrees(model)) {
      if (on_emulator && degree > 1) continue;  // another shape, which reduced() takes away again
      const std::vector<uint32_t> tokens =
          degree == 1 && !on_emulator ? std::vector<uint32_t>{16, 512} : std::vector{16u};
      for (const Problem& problem : model_problems({model.name, degree, tokens})) {
        check_exact(problem);
        ++num_problems;
      }
    }
    BOOST_TEST_MESSAGE(fmt::format("{:28} {} GEMMs {:7.2f} s", model.release(), num_problems, clock.seconds()));
  }
}

BOOST_AUTO_TEST_CASE(recorded_routings) {
  size_t num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(routing_folder())) {
    if (entry.path().extension() != ".csv") continue;
    ++num_files;
    const Clock clock;
    for (const uint32_t tokens : on_emulator ? std::vector<uint32_t>{32} : std::vector<uint32_t>{32, 4096}) {
      Problem problem;
      // counts do not say how many experts a token has
      const bool counts = entry.path().stem().string().find("_counts") != std::string::npos;
      problem.routing =
          make_routing(parse_routing_spec("trace:" + entry.path().string()), {tokens, 0, counts ? 6u : 0});
      problem.shape.n = 1024;
      problem.shape.k = 2048;
      problem.shape.experts = problem.shape.local_experts = problem.routing.experts;
      problem.shape.top_k = problem.routing.top_k;
      problem.shape.projection = Projection::gate_up;
      problem.workload = entry.path().stem().string();
      problem.case_name = std::to_string(tokens);
      problem.item = "gate_up";
      check_exact(problem);
    }
    BOOST_TEST_MESSAGE(fmt::format("{:48} {:7.2f} s", entry.path().stem().string(), clock.seconds()));
  }
  BOOST_TEST(num_files == 12u);
}

BOOST_AUTO_TEST_SUITE_END()
