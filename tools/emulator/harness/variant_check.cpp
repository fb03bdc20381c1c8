// One variant on the emulated device: small problems under several seeds.
//
// Called by the rendered test cases and by the emulator's worker. Invariant: see harness/variant_check.hpp.
#include "harness/variant_check.hpp"

#include <emulator/host.h>
#include <fmt/format.h>
#include <fulcrum/jit/nvrtc.hpp>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "harness/cases.hpp"
#include "harness/check.hpp"
#include "harness/emulated_outputs.hpp"
#include "harness/input_error.hpp"
#include "harness/jit_kernels.hpp"

namespace fulcrum::harness {
namespace {

// FULCRUM_EMULATOR_SEEDS="first:last", by default 1:2. Odd and even seeds differ in when copies land.
std::pair<uint64_t, uint64_t> seeds_asked_for() {
  const char* text = std::getenv("FULCRUM_EMULATOR_SEEDS");
  if (text == nullptr) return {1, 2};
  char* end = nullptr;
  const uint64_t first = std::strtoull(text, &end, 10);
  const uint64_t last = *end == ':' ? std::strtoull(end + 1, &end, 10) : first;
  if (*end != '\0' || first == 0 || last < first)
    throw InputError(fmt::format("FULCRUM_EMULATOR_SEEDS is '{}'; write FIRST:LAST, from 1 on", text));
  return {first, last};
}

// FULCRUM_EMULATOR_CASES, by default tiny.
CaseSize case_size_asked_for() {
  const char* text = std::getenv("FULCRUM_EMULATOR_CASES");
  const std::string name = text != nullptr ? text : "tiny";
  if (name != "tiny" && name != "small")
    throw InputError(fmt::format("FULCRUM_EMULATOR_CASES is '{}'; it can be tiny or small", name));
  return name == "small" ? CaseSize::small : CaseSize::tiny;
}

using ProblemSet = std::vector<std::unique_ptr<ProblemOnDevice>>;

// Variants of one kind and tile_m share their problems, packed weights and expected results.
ProblemSet& problems_for(const KernelKind& kind, uint32_t tile_m) {
  static std::map<std::tuple<DType, bool, Activation, uint32_t>, ProblemSet> made;
  ProblemSet& set = made[{kind.dtype, kind.gate_up, kind.activation, tile_m}];
  if (set.empty()) {
    for (const Problem& problem : small_problems(kind, tile_m, case_size_asked_for()))
      set.push_back(std::make_unique<ProblemOnDevice>(problem));
  }
  return set;
}

}  // namespace

void check_emulator_settings() {
  (void)seeds_asked_for();
  (void)case_size_asked_for();
  (void)require(jit::find_nvrtc());
}

void check_variant(const char* config_text, const KernelKind& kind) {
  const Config config = read_config(config_text);
  const Arch arch = current_device().arch;
  CompiledKernel compiled = compile_kernel(config, kind, arch);
  const auto [first, last] = seeds_asked_for();
  std::optional<EmulatedOutputsWriter> outputs;
  if (const std::string folder = emulated_outputs_folder(); !folder.empty())
    outputs.emplace(emulated_outputs_path(folder, config, kind));
  for (const std::unique_ptr<ProblemOnDevice>& problem : problems_for(kind, static_cast<uint32_t>(config.tile_m))) {
    if (illegal_reason(config, arch, problem->problem()) != nullptr) continue;
    for (const Data data : {Data::exact, Data::random}) {
      emulator::set_seed(1);
      (void)problem->weights(data, layout_of(config));  // packed by a kernel, whatever the seeds
      for (uint64_t seed = first; seed <= last; ++seed) {
        emulator::set_seed(seed);
        const CheckResult result = check(*problem, compiled.kernel, data);
        if (!result.passed)
          throw std::runtime_error(fmt::format("{}, seed {}\nconfig: {}", result.what, seed, config_text));
      }
      if (outputs) outputs->add(*problem, data);
    }
  }
  require(unload_kernel(compiled.kernel));
}

}  // namespace fulcrum::harness
