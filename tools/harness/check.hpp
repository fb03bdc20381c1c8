// Is a kernel right? Runs it on exact and on random data and compares with the oracle.
//
// Called by the tuner before and after timing, by `verify`, by bench and by the device tests.
// Invariant: outputs start as NaN between guards, so a row that is missing, a row that should not have been written and
// a byte outside of the buffer are all found; every run is repeated with two blocks, which makes each block take many
// tiles, and on the workspace that the last run left.
#pragma once

#include <string>

#include "harness/problem_on_device.hpp"

namespace fulcrum::harness {

struct CheckResult {
  bool passed = false;
  std::string what;           // the first difference in one sentence; empty when passed
  double rel_error = 0;       // root mean square of out - oracle over that of the oracle, random data
  uint64_t num_compared = 0;  // values, over all runs
};

// Throws DeviceError when the GPU itself fails (an illegal address ends the process's context).
CheckResult check(ProblemOnDevice& problem, const Kernel& kernel);

// One kind of data only: `exact` must equal bit for bit, `random` lie within the bound.
CheckResult check(ProblemOnDevice& problem, const Kernel& kernel, Data data);

}  // namespace fulcrum::harness
