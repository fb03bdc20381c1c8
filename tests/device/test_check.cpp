// The check itself, on a GPU: its oracle equals the CPU's, and whatever is wrong with an output is found and named.
//
// Run by ctest as device.device_check; needs a GPU.
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness/cases.hpp"
#include "harness/check.hpp"
#include "harness/jit_kernels.hpp"
#include "harness/timer.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

constexpr KernelKind plain{DType::f16, false, Activation::none};
constexpr KernelKind gate_up{DType::bf16, true, Activation::none};
constexpr KernelKind silu{DType::f16, true, Activation::silu};

Kernel default_kernel(const KernelKind& kind) {
  return compile_kernel(default_config(kind, current_device().arch), kind, current_device().arch).kernel;
}

std::vector<uint8_t> bytes_of_out(const ProblemOnDevice& problem) {
  const OutView view = problem.out_view();
  std::vector<uint8_t> bytes(view.bytes());
  require(cuda_api::copy_async(bytes.data(), view.memory, bytes.size(), problem.stream()));
  require(cuda_api::synchronize(problem.stream()));
  return bytes;
}

// A launched problem whose output the test may damage before it is compared.
struct Launched {
  explicit Launched(Data data) : data(data), problem(small_problems(plain, 32).front()) {
    problem.clear_out();
    problem.launch_once(problem.plan(default_kernel(plain)), data);
    require(cuda_api::synchronize(problem.stream()));
  }
  void write(uint64_t byte, uint16_t bits) {
    require(cuda_api::copy_async(problem.out_view().memory + byte, &bits, sizeof bits, problem.stream()));
    require(cuda_api::synchronize(problem.stream()));
  }
  std::string verdict() {
    const OutView view = problem.out_view();
    const Expected& expected = problem.expected(data);
    return describe(compare(expected, view, problem.stream()), expected, view, problem.stream());
  }
  // Byte of an output row from the buffer's first byte.
  uint64_t row_byte(uint32_t row) const {
    const OutView view = problem.out_view();
    return view.guard_bytes + row * view.stride_bytes;
  }

  Data data;
  ProblemOnDevice problem;
};

bool says(const std::string& words, const std::string& part) { return words.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(device_check, *boost::unit_test::precondition(needs_gpu))

BOOST_AUTO_TEST_CASE(the_oracle_of_the_gpu_is_that_of_the_cpu) {
  for (const KernelKind& kind : {plain, gate_up, silu}) {
    for (const Problem& each : small_problems(kind, 8)) {
      for (const Data data : {Data::exact, Data::random}) {
        ProblemOnDevice problem(each);
        const HostProblem host(each, data);
        const Expected& expected = problem.expected(data);
        const std::vector<OracleValue> values = oracle_rows(host.input(), expected.host_rows, expected.columns);
        const std::vector<Expectation> bounds = expected.bounds.download(problem.stream());
        const std::vector<float> numbers = expected.values.download(problem.stream());
        BOOST_REQUIRE_EQUAL(bounds.size(), values.size());
        uint64_t num_other = 0;
        for (size_t i = 0; i < values.size(); ++i) {
          const Expectation own = expectation(kind.dtype, values[i]);
          num_other += own.low != bounds[i].low || own.high != bounds[i].high ? 1 : 0;
          BOOST_REQUIRE_LE(std::fabs(numbers[i] - values[i].value), 1e-6 * std::fabs(values[i].value) + 1e-30);
        }
        // the GPU fuses f64 multiply and add, and has another exp: a bound next to a tie may round the other way
        const bool same_arithmetic = data == Data::exact && kind.activation == Activation::none;
        BOOST_TEST(num_other <= (same_arithmetic ? 0 : values.size() / 1000));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_right_output_passes_and_one_wrong_bit_does_not) {
  Launched launched(Data::exact);
  BOOST_TEST(launched.verdict() == "");
  const OracleRow& row = launched.problem.expected(Data::exact).host_rows.back();
  const uint64_t at = launched.row_byte(row.output_row) + 2 * 17;
  uint16_t bits = 0;
  std::memcpy(&bits, bytes_of_out(launched.problem).data() + at, sizeof bits);
  launched.write(at, bits ^ 1);
  const std::string words = launched.verdict();
  BOOST_TEST(says(words, "output row " + std::to_string(row.output_row) + " "), words);
  BOOST_TEST(says(words, "column 17 is"), words);
}

BOOST_AUTO_TEST_CASE(writes_outside_of_the_rows_are_named) {
  const OutView view = Launched(Data::random).problem.out_view();
  const auto verdict_after = [](uint64_t byte) {
    Launched launched(Data::random);
    launched.write(byte, 0x3C00);
    return launched.verdict();
  };
  std::string words = verdict_after(view.guard_bytes - 2);
  BOOST_TEST(says(words, "2 bytes before its first row"), words);
  words = verdict_after(view.bytes() - view.guard_bytes);
  BOOST_TEST(says(words, "0 bytes past its last row"), words);
  words = verdict_after(view.guard_bytes + uint64_t{view.columns} * 2);
  BOOST_TEST(says(words, "the gap after output row 0"), words);
}

BOOST_AUTO_TEST_CASE(rows_without_a_pair_and_rows_left_out_are_named) {
  Launched remote(Data::random);
  const std::vector<int32_t>& ids = remote.problem.problem().routing.ids;
  const auto pair = static_cast<uint32_t>(std::find(ids.begin(), ids.end(), -1) - ids.begin());
  remote.write(remote.row_byte(pair), 0x3C00);
  std::string words = remote.verdict();
  BOOST_TEST(says(words, "output row " + std::to_string(pair) + ", column 0 was written, and no pair"), words);

  Launched lost(Data::random);
  const uint32_t row = lost.problem.expected(Data::random).host_rows.front().output_row;
  lost.write(lost.row_byte(row), 0xFFFF);
  words = lost.verdict();
  BOOST_TEST(says(words, "output row " + std::to_string(row) + " "), words);
}

BOOST_AUTO_TEST_CASE(launches_and_graph_replays_give_the_same_bits) {
  for (const KernelKind& kind : {plain, silu}) {
    ProblemOnDevice problem(small_problems(kind, 32).back());
    const Plan plan = problem.plan(default_kernel(kind));
    problem.clear_out();
    problem.launch_once(plan, Data::random);
    const std::vector<uint8_t> first = bytes_of_out(problem);
    problem.prepare_timing(plan);
    GraphTimer graph(problem.stream(), 3, [&](cuda_api::Stream, int i) {
      problem.launch_once(plan, Data::random, static_cast<uint32_t>(i));
    });
    for (int replay = 0; replay < 3; ++replay) {
      problem.clear_out();
      graph.warm_up();
      BOOST_TEST((bytes_of_out(problem) == first), "replay " << replay);
    }
    BOOST_TEST(graph.sample_us() > 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
