// The frame around a verb that may touch a GPU: exceptions become one sentence on stderr and an exit code.
//
// Used by the verbs. Exit codes: 0 done; 1 what the user gave cannot be used, or the machine failed; 2 something was
// measured or verified and is wrong; 3 there is no GPU.
// Invariant: no exception leaves a verb.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "harness/device_memory.hpp"

namespace fulcrum::cli {

// `verb` returns an exit code, or throws.
template <class Verb>
int run_verb(const char* name, const Verb& verb) {
  try {
    return verb();
  } catch (const harness::DeviceError& error) {
    fmt::print(stderr, "fulcrum {}: {}\n", name, error.what());
    return error.code == Code::no_device ? 3 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fulcrum {}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace fulcrum::cli
