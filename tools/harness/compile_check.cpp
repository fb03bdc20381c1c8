// A variant's registers, spills and warnings against the file of expectations.
//
// Called by the rendered test cases. Invariant: see compile_check.hpp.
#include "harness/compile_check.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "harness/expectation_file.hpp"
#include "harness/jit_kernels.hpp"

namespace fulcrum::harness {
namespace {

bool asked_to_write() {
  const char* value = std::getenv("FULCRUM_EXPECT");
  return value != nullptr && std::strcmp(value, "write") == 0;
}

}  // namespace

void check_compiles(const char* config_text, const KernelKind& kind, Arch arch, const std::string& folder) {
  const jit::Cubin cubin = jit::compile_cubin(read_config(config_text), kind, arch, jit_options());
  if (!cubin.status.ok()) throw std::runtime_error(cubin.explanation);
  const CompileOutcome outcome{cubin.info.registers, cubin.info.spill_store_bytes, cubin.info.spill_load_bytes,
                               count_warnings(cubin.log)};
  const CompileKey key{cubin.entry, arch_name(arch)};
  const std::string path = fmt::format("{}/{}.tsv", folder, cubin.info.ptxas);
  if (asked_to_write()) return write_expectation(path, key, outcome);
  Expectations expectations;
  if (!read_expectations(path, expectations)) return;
  const auto expected = expectations.find(key);
  if (expected == expectations.end()) {
    throw std::runtime_error(
        fmt::format("{} for {} is not in {}; run the compile tests with FULCRUM_EXPECT=write to add it", key.first,
                    key.second, path));
  }
  if (outcome == expected->second) return;
  throw std::runtime_error(fmt::format("{} for {}: {}; expected {} ({}; FULCRUM_EXPECT=write accepts the change)",
                                       key.first, key.second, outcome_text(outcome), outcome_text(expected->second),
                                       path));
}

}  // namespace fulcrum::harness
