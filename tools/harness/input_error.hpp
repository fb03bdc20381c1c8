// The one exception of the tools: what the user gave cannot be used, said in one sentence.
//
// Thrown by readers and builders of tools/harness; verbs of tools/cli print what() on stderr and exit with 1.
// Invariant: what() names the value, the limit and, for a file, "path:line", and ends without a full stop or newline.
#pragma once

#include <stdexcept>

namespace fulcrum::harness {

struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace fulcrum::harness
