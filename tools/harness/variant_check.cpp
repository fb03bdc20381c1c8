// One variant on all small problems.
//
// Called by the rendered test cases. Invariant: see variant_check.hpp.
#include "harness/variant_check.hpp"

#include <fmt/format.h>
#include <fulcrum/jit.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <tuple>

#include "harness/cases.hpp"
#include "harness/check.hpp"
#include "harness/emulated_outputs.hpp"
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

// The emulator's outputs of the tiny problems against this device's, as one printed line.
void compare_with_emulator(const std::string& folder, const CompiledKernel& compiled, const KernelKind& kind) {
  const Config& config = compiled.kernel.config;
  const Arch arch = current_device().arch;
  EmulatedOutputsReader emulated(emulated_outputs_path(folder, config, kind));
  std::array<EmulatedOutputsReader::Agreement, 2> total;  // [Data]
  for (const Problem& tiny : small_problems(kind, static_cast<uint32_t>(config.tile_m), CaseSize::tiny)) {
    if (illegal_reason(config, arch, tiny) != nullptr) continue;
    ProblemOnDevice problem(tiny);
    for (const Data data : {Data::exact, Data::random}) {
      const CheckResult result = check(problem, compiled.kernel, data);
      if (!result.passed) throw std::runtime_error(result.what);
      const EmulatedOutputsReader::Agreement part = emulated.compare(problem, data);
      EmulatedOutputsReader::Agreement& sum = total[static_cast<size_t>(data)];
      sum = {sum.num_compared + part.num_compared, sum.num_equal + part.num_equal,
             std::max(sum.largest_ulp, part.largest_ulp)};
    }
  }
  const auto& exact = total[static_cast<size_t>(Data::exact)];
  const auto& random = total[static_cast<size_t>(Data::random)];
  fmt::print("agreement: exact {} of {} equal; random {} of {} equal, at most {} ulp apart; {}\n", exact.num_equal,
             exact.num_compared, random.num_equal, random.num_compared, random.largest_ulp,
             jit::entry_name(config, kind));
  // SiLU's ex2.approx and rcp.approx are a GPU's own, within the bound that check() allows
  if (kind.activation == Activation::none && exact.num_equal != exact.num_compared)
    throw std::runtime_error(
        "exact outputs differ from the emulator's, and both equal the oracle: the problems differ");
}

}  // namespace

void check_variant(const char* config_text, const KernelKind& kind) {
  const Config config = read_config(config_text);
  const Arch arch = current_device().arch;
  CompiledKernel compiled = compile_kernel(config, kind, arch);
  for (const std::unique_ptr<ProblemOnDevice>& problem : problems_for(kind, static_cast<uint32_t>(config.tile_m))) {
    if (illegal_reason(config, arch, problem->problem()) != nullptr) continue;
    const CheckResult result = check(*problem, compiled.kernel);
    if (!result.passed) throw std::runtime_error(fmt::format("{}\nconfig: {}", result.what, config_text));
  }
  if (const std::string folder = emulated_outputs_folder(); !folder.empty())
    compare_with_emulator(folder, compiled, kind);
  require(unload_kernel(compiled.kernel));
}

}  // namespace fulcrum::harness
