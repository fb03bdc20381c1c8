// Runs a kernel on one kind of data, with its own grid and with two blocks, and compares each run.
//
// Called by the tuner, verify, bench and the device tests. Invariant: see check.hpp.
#include "harness/check.hpp"

#include <fmt/format.h>

#include <cmath>

namespace fulcrum::harness {
namespace {

// Work above which two blocks alone would take too long: 2 GFLOP are about 2 ms on two SMs of an H200.
constexpr double most_two_block_flop = 2e9;

struct Run {
  const char* name;
  Plan plan;
};

std::vector<Run> runs_of(const ProblemOnDevice& problem, const Kernel& kernel) {
  const Plan plan = problem.plan(kernel);
  std::vector<Run> runs{{"", plan}};
  if (problem.size().flop > most_two_block_flop) return runs;
  Plan small = plan;  // grid_extent is a Run lever: the same machine code
  small.kernel.config.grid_extent = GridExtent::persistent;
  small.resident_blocks = 2;
  runs.push_back({" with two blocks", small});
  return runs;
}

}  // namespace

CheckResult check(ProblemOnDevice& problem, const Kernel& kernel, Data data) {
  const Expected& expected = problem.expected(data);
  const OutView out = problem.out_view();
  CheckResult result;
  for (const Run& run : runs_of(problem, kernel)) {
    problem.clear_out();
    problem.launch_once(run.plan, data);
    require(cuda_api::synchronize(problem.stream()), "running a kernel: ");
    const Comparison comparison = compare(expected, out, problem.stream());
    result.num_compared += expected.bounds.size();
    if (comparison.squared_value > 0) result.rel_error = std::sqrt(comparison.squared_error / comparison.squared_value);
    const std::string difference = describe(comparison, expected, out, problem.stream());
    if (difference.empty()) continue;
    result.what =
        fmt::format("{}, {} data{}: {}", problem_name(problem.problem()), data_name(data), run.name, difference);
    return result;
  }
  result.passed = true;
  return result;
}

CheckResult check(ProblemOnDevice& problem, const Kernel& kernel) {
  CheckResult exact = check(problem, kernel, Data::exact);
  if (!exact.passed) return exact;
  CheckResult random = check(problem, kernel, Data::random);
  random.num_compared += exact.num_compared;
  return random;
}

}  // namespace fulcrum::harness
