// One variant on all small problems, or its registers, spills and warnings against the file of expectations.
//
// Called by the rendered test cases and by verify. Invariant: see variant_check.hpp.
#include "harness/variant_check.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>

#include "harness/cases.hpp"
#include "harness/check.hpp"
#include "harness/expectation_file.hpp"
#include "harness/input_error.hpp"
#include "harness/jit_kernels.hpp"

namespace fulcrum::harness {
namespace {

using ProblemSet = std::vector<std::unique_ptr<ProblemOnDevice>>;

// Variants of one kind and tile_m share their problems: checkpoints, packed banks and expected results.
ProblemSet& problems_for(const KernelKind& kind, uint32_t tile_m) {
  static std::map<std::tuple<DType, bool, Activation, uint32_t>, ProblemSet> made;
  ProblemSet& set = made[{kind.dtype, kind.gate_up, kind.activation, tile_m}];
  if (set.empty()) {
    for (const Problem& problem : small_problems(kind, tile_m))
      set.push_back(std::make_unique<ProblemOnDevice>(problem));
  }
  return set;
}

bool asked_to_write() {
  const char* value = std::getenv("FULCRUM_EXPECT");
  return value != nullptr && std::strcmp(value, "write") == 0;
}

}  // namespace

void check_variant(const char* config_text, const KernelKind& kind) {
  const Config config = read_config(config_text);
  CompiledKernel compiled = compile_kernel(config, kind, current_device().arch);
  for (const std::unique_ptr<ProblemOnDevice>& problem : problems_for(kind, static_cast<uint32_t>(config.tile_m))) {
    const CheckResult result = check(*problem, compiled.kernel);
    if (!result.passed) throw std::runtime_error(fmt::format("{}\nconfig: {}", result.what, config_text));
  }
  require(unload_kernel(compiled.kernel));
}

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
