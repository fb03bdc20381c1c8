// Variants on the CPU emulator, in worker processes: is each one right, on a machine without a GPU?
//
// Called by `verify --emulate` and, as a step of tune without a GPU, by emulate_best().
// Invariant: a worker is the program fulcrum_emulator beside this one; what goes wrong with it is an outcome with
// words.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tuner/compile_pool.hpp"

namespace fulcrum::tuner {

// Why variants cannot be run here, or "".
std::string why_no_emulator();

// As compile_all(), with `ok` for a variant that is right.
size_t emulate_all(const std::vector<CompileJob>& jobs, int num_workers, double seconds,
                   const std::function<bool(size_t, const CompileOutcome&)>& done);

}  // namespace fulcrum::tuner
