// One compile, or one check on the emulator, as it crosses the pipe between the tuner and a worker: a line of JSON each
// way.
//
// Called by the pool (parent), by run_compile_worker() and by the emulator's worker (children).
// Invariant: a line never contains a line end, and reading what was written gives an equal value; anything else on the
// pipe reads as no value at all.
#pragma once

#include <fulcrum/core/config.h>
#include <fulcrum/core/shape.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fulcrum::tuner {

struct CompileJob {
  Config config{};
  KernelKind kind{};
  Arch arch{0};
};

struct CompileOutcome {
  bool ok = false;
  std::string why;         // of a failure, one sentence
  uint32_t registers = 0;  // per thread
  uint32_t spill_bytes = 0;
  uint64_t code_bytes = 0;
  std::string machine;  // hash of the machine code
  double seconds = 0;   // of NVRTC; 0 from the cache
  bool from_cache = false;
};

std::string write_job(const CompileJob& job);
std::optional<CompileJob> read_job(const std::string& line);
std::string write_outcome(const CompileOutcome& outcome);
std::optional<CompileOutcome> read_outcome(const std::string& line);

// Compiles into the cache on disk, from where the tuner loads it.
CompileOutcome compile_job(const CompileJob& job);

// A child's whole life: answers lines on stdin until it ends. Returns the exit code.
int answer_jobs(const std::function<CompileOutcome(const CompileJob&)>& answer);
int run_compile_worker();  // with compile_job()

}  // namespace fulcrum::tuner
