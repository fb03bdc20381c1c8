// Random problems on random variants, each against the oracle: exact data at even seeds, random data at odd ones.
//
// Built twice, as test_programs.cpp: ctest runs emulator.random_problems on the CPU, and device.random_problems on a
// GPU. FULCRUM_RANDOM_SEEDS=FIRST:LAST, or the one seed of a failure, says which.
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>

#include "harness/check.hpp"
#include "harness/jit_kernels.hpp"
#include "harness/problem_on_device.hpp"
#include "harness/random_case.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

constexpr CaseSize case_size = on_emulator ? CaseSize::tiny : CaseSize::small;
constexpr const char* default_seeds = on_emulator ? "0:99" : "0:999";

}  // namespace

BOOST_AUTO_TEST_SUITE(random_problems, *boost::unit_test::precondition(needs_gpu))

BOOST_AUTO_TEST_CASE(equal_the_oracle) {
  const char* asked = std::getenv("FULCRUM_RANDOM_SEEDS");
  const SeedRange seeds = parse_seeds(asked != nullptr ? asked : default_seeds);
  const Arch arch = current_device().arch;
  std::optional<CompiledKernel> compiled;
  uint64_t num_passed = 0, num_values = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    const RandomVariant variant = random_variant(seed, arch);
    try {
      if (!compiled || seed % seeds_per_variant == 0) {
        if (compiled) require(unload_kernel(compiled->kernel));
        compiled.reset();
        compiled = compile_kernel(variant.config, variant.kind, arch);
      }
      ProblemOnDevice problem(random_problem(seed, variant, case_size));
      const CheckResult result = check(problem, compiled->kernel, seed % 2 == 0 ? Data::exact : Data::random);
      if (!result.passed) throw std::runtime_error(result.what);
      num_values += result.num_compared;
      ++num_passed;
    } catch (const std::exception& error) {
      BOOST_ERROR("seed " << seed << ": " << error.what() << "\nconfig: " << config_text(variant.config));
    }
  }
  if (compiled) require(unload_kernel(compiled->kernel));
  BOOST_TEST_MESSAGE("random problems " << seeds.first << " to " << seeds.last << ": " << num_passed << " passed, "
                                        << num_values << " outputs compared");
  BOOST_TEST(num_passed == seeds.last - seeds.first + 1);
}

BOOST_AUTO_TEST_SUITE_END()
