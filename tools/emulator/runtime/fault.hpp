// A fault of the kernel under test, found while it runs.
//
// Thrown by the runtime inside of the faulting thread's fiber, caught where the fiber began.
// Invariant: it is about the kernel, never about the emulator or its caller.
#pragma once

#include <string>

namespace fulcrum::emulator {

struct Fault {
  std::string words;
};

/// Throws a Fault whose words begin with the block, thread, warp and lane that is running.
[[noreturn]] void fault(const std::string& words);

}  // namespace fulcrum::emulator
