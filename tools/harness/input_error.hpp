// The one exception of the tools: what the user gave cannot be used, said in one sentence.
//
// Thrown by readers and builders of tools/harness; verbs of tools/cli print what() on stderr and exit with 1.
// Invariant: what() names the value, the limit and, for a file, "path:line", and ends without a full stop or newline.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace fulcrum::harness {

struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The beginning of a text from a file, what is not printable ASCII as '?': a message must not send a binary file to the
// terminal.
inline std::string printable(std::string_view text) {
  std::string words(text.substr(0, 80));
  for (char& letter : words)
    if (letter < ' ' || letter > '~') letter = '?';
  return words;
}

}  // namespace fulcrum::harness
