// The built-in default on the reference workloads at full size, in both checkpoint formats and on every routing, and
// one bank of more than 2^31 bytes.
//
// Run by ctest as device.device_workloads; needs a GPU.
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>

#include "harness/check.hpp"
#include "harness/jit_kernels.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

void check_default(const Problem& problem) {
  const Device device = current_device();
  const uint64_t needed = ProblemOnDevice::bytes_needed(problem, 1, device.l2_bytes);
  if (needed > require(cuda_api::free_memory()) / 10 * 9) {
    BOOST_TEST_MESSAGE(problem_name(problem) << " is left out: it needs " << (needed >> 20) << " MiB");
    return;
  }
  const KernelKind kind = kernel_kind(problem.shape);
  CompiledKernel compiled = compile_kernel(default_config(kind, device.arch), kind, device.arch);
  ProblemOnDevice memory(problem);
  const CheckResult result = check(memory, compiled.kernel);
  BOOST_TEST(result.passed, result.what);
  require(unload_kernel(compiled.kernel));
}

void check_formats(std::vector<Problem> problems) {
  for (Problem& problem : problems) {
    for (const CheckpointFormat format : {CheckpointFormat::block36, CheckpointFormat::modelopt}) {
      problem.format = format;
      check_default(problem);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device_workloads, *boost::unit_test::precondition(needs_gpu))

BOOST_AUTO_TEST_CASE(prefill_in_both_formats) {
  check_formats(workload_problems("prefill", {}));
  check_formats(probe_problems(512));
}

BOOST_AUTO_TEST_CASE(decode_in_both_formats) { check_formats(workload_problems("decode", {})); }

BOOST_AUTO_TEST_CASE(the_other_type_of_each_workload) {
  for (const Problem& problem : workload_problems("prefill", {"2048"}, {}, DType::bf16)) check_default(problem);
  for (const Problem& problem : workload_problems("decode", {"K3"}, {}, DType::f16)) check_default(problem);
}

BOOST_AUTO_TEST_CASE(every_routing) {
  for (const char* routing : {"receipt", "uniform", "one_hot"}) {
    for (const Problem& problem : workload_problems("prefill", {"512"}, routing)) check_default(problem);
    for (const Problem& problem : workload_problems("decode", {"K3"}, routing)) check_default(problem);
  }
}

BOOST_AUTO_TEST_CASE(one_token_and_epilogue_factors_at_full_size) {
  for (Problem problem : workload_problems("prefill", {"1", "513"})) {
    problem.row_scales = problem.bias = problem.pair_weights = true;
    check_default(problem);
  }
}

BOOST_AUTO_TEST_CASE(a_bank_of_more_than_2_31_bytes) {
  // 288 experts of 4096 x 4096: 2.7e9 packed bytes, and as many of the checkpoint
  Problem problem = workload_problems("prefill", {"128"}, "uniform").front();
  problem.shape.n = 4096;
  problem.item = "large bank";
  BOOST_REQUIRE_GT(packed_bytes(problem.shape), uint64_t{1} << 31);
  check_default(problem);
}

BOOST_AUTO_TEST_SUITE_END()
