// Registers, spills and warnings of every variant, checked in per version of ptxas: tests/expect/<version>.tsv.
//
// Called by check_compiles(). Invariant: lines are sorted by kernel and architecture, so a rewritten file differs only
// where a compile does; a file is replaced by rename, under a lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace fulcrum::harness {

struct CompileOutcome {
  uint32_t registers = 0;
  uint32_t spill_store_bytes = 0;
  uint32_t spill_load_bytes = 0;
  uint32_t warnings = 0;  // of NVRTC and ptxas
  bool operator==(const CompileOutcome&) const = default;
};

using CompileKey = std::pair<std::string, std::string>;  // the kernel's entry name, the architecture's name
using Expectations = std::map<CompileKey, CompileOutcome>;

// False when there is no file. Throws InputError with path and line for one that cannot be read.
bool read_expectations(const std::string& path, Expectations& expectations);

// Adds or replaces one line, making file and folder as needed. Throws InputError.
void write_expectation(const std::string& path, const CompileKey& key, const CompileOutcome& outcome);

// Lines of a compiler's log that warn: NVRTC's "warning", ptxas's "Warning" and its "wgmma serialized" remarks.
uint32_t count_warnings(const std::string& log);

std::string outcome_text(const CompileOutcome& outcome);

}  // namespace fulcrum::harness
