// One variant on all small problems.
//
// Called by the rendered test cases. Invariant: see variant_check.hpp.
#include "harness/variant_check.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <tuple>

#include "harness/cases.hpp"
#include "harness/check.hpp"
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

}  // namespace fulcrum::harness
