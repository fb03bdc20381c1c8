// Hands many candidates to worker processes, so that a compiler that crashes or hangs costs one candidate.
//
// Called by tune with the program itself as worker, by emulate_all() with the emulator, and by tests with shell scripts
// in their place.
// Invariant: every job gets exactly one outcome, unless the run stops early; a worker that dies, answers nonsense or
// takes longer than `timeout_s` is killed with all its children and replaced.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tuner/compile_job.hpp"

namespace fulcrum::tuner {

struct PoolOptions {
  std::vector<std::string> command;  // what a worker runs; empty: this program's hidden verb
  int num_workers = 1;
  double timeout_s = 60;                     // of one compile: the largest variants take 4 s
  const char* worker_name = "the compiler";  // in words about one that dies
};

// Calls `done(index, outcome)` as jobs finish, in any order; stops handing out jobs when it returns false or an
// interrupt came, and when `seconds` have passed (0: no limit). Returns the number of outcomes.
size_t compile_all(const std::vector<CompileJob>& jobs, const PoolOptions& options, double seconds,
                   const std::function<bool(size_t, const CompileOutcome&)>& done);

}  // namespace fulcrum::tuner
