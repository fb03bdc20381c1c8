// What the rendered test cases of the compile tier call: one variant through the compiler.
//
// Called by compile_cases.cpp, which codegen renders from the regression set.
// Invariant: returns when all is well, else throws std::runtime_error with one sentence, which Boost.Test reports.
#pragma once

#include <fulcrum/core/config.h>

#include <string>

namespace fulcrum::harness {

// Compiles for `arch` and compares registers, spills and warnings with `folder`/<version of ptxas>.tsv. Without such a
// file only that it compiles is checked. FULCRUM_EXPECT=write in the environment writes the line instead; many
// processes may do so at once.
void check_compiles(const char* config_text, const KernelKind& kind, Arch arch, const std::string& folder);

#if defined(FULCRUM_TEST_DATA)
inline void check_compiles(const char* config_text, const KernelKind& kind, Arch arch) {
  check_compiles(config_text, kind, arch, FULCRUM_TEST_DATA "/../expect");
}
#endif

}  // namespace fulcrum::harness
