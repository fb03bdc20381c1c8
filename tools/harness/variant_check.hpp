// What the rendered test cases call: one variant against the oracle.
//
// Called by device_cases.cpp and emulator_cases.cpp, which codegen renders from the regression set. The emulator has an
// implementation of its own, which runs smaller problems under several seeds.
// Invariant: returns when all is well, else throws std::runtime_error with one sentence, which Boost.Test reports.
#pragma once

#include <fulcrum/core/config.h>

#include <string>

namespace fulcrum::harness {

// Every small problem of the kind, exact and random data.
void check_variant(const char* config_text, const KernelKind& kind);

// Of the emulator: throws InputError when its settings in the environment or its headers cannot be used.
void check_emulator_settings();

}  // namespace fulcrum::harness
