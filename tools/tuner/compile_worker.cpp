// The worker that compiles. Invariant: see compile_job.hpp.
#include <fulcrum/jit.hpp>

#include "harness/jit_kernels.hpp"
#include "tuner/compile_job.hpp"

namespace fulcrum::tuner {

CompileOutcome compile_job(const CompileJob& job) {
  const jit::Cubin cubin = jit::compile_cubin(job.config, job.kind, job.arch, harness::jit_options());
  CompileOutcome outcome;
  outcome.ok = cubin.status.ok();
  outcome.why = cubin.explanation;
  outcome.registers = cubin.info.registers;
  outcome.spill_bytes = cubin.info.spill_store_bytes + cubin.info.spill_load_bytes;
  outcome.code_bytes = cubin.info.code_bytes;
  outcome.machine = cubin.info.machine;
  outcome.seconds = cubin.compile_seconds;
  outcome.from_cache = cubin.from_cache;
  return outcome;
}

int run_compile_worker() { return answer_jobs(compile_job); }

}  // namespace fulcrum::tuner
