// Runs another program to its end and takes what it prints, with no shell between: a name may hold any character.
//
// Called by the emulator's compiler and by whoever asks whether the emulator works.
// Invariant: the program's stdin is empty; its stdout and stderr come back as one text.
#pragma once

#include <string>
#include <vector>

namespace fulcrum::harness {

struct ProgramRun {
  int exit_code = -1;  // -1: it could not be started, or a signal ended it
  std::string output;
};

// `command[0]` is looked for on PATH when it has no '/'.
ProgramRun run_program(const std::vector<std::string>& command);

}  // namespace fulcrum::harness
