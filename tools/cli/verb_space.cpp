// `fulcrum space`: how many variants are legal, which they are, why the others are not. Needs no GPU.
//
// Called by main. Invariant: every reason is in the words of rules.h.
#include <fulcrum/core/rules.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/run_verb.hpp"
#include "cli/verb_tuner.hpp"
#include "harness/input_error.hpp"
#include "harness/jit_kernels.hpp"
#include "harness/json_text.hpp"
#include "tuner/cost_model.hpp"
#include "tuner/space.hpp"

namespace fulcrum::cli {
namespace {

using tuner::SpaceCounts;
using Json = nlohmann::ordered_json;

struct Options {
  std::optional<Arch> arch;
  std::optional<DType> dtype;
  Projection projection = Projection::gate_up;
  std::string config;
  tuner::Pins pins{};
  size_t limit = 10;
  bool json = false;
};

KernelKind kind_of(const Options& options) {
  KernelKind kind;
  kind.dtype = options.dtype.value_or(DType::f16);
  kind.gate_up = options.projection == Projection::gate_up;
  kind.activation = kind.gate_up ? Activation::silu : Activation::none;
  return kind;
}

// One Config: legal with its resources, or the reason. 2 when it is illegal.
int explain_config(const Options& options, Arch arch) {
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    if (options.pins[static_cast<size_t>(lever)])
      throw harness::InputError(
          fmt::format("write {} in --config; levers held still are for the whole space", lever_infos[lever].name));
  }
  const Config config = harness::read_config(options.config);
  const char* reason = illegal_reason(config, arch, kind_of(options));
  const tuner::Target target = tuner::named_target(arch);
  const uint32_t shared = shared_memory(config).total_bytes;
  Json json{{"config", tuner::config_text(config)}, {"arch", arch_name(arch)}, {"legal", reason == nullptr}};
  if (reason != nullptr) {
    json["reason"] = reason;
  } else {
    const auto limit = static_cast<uint32_t>(register_limit(config));
    const uint32_t expected = tuner::expected_registers(config);
    json["threads"] = block_threads(config);
    json["shared_bytes"] = shared;
    json["register_limit"] = limit;
    json["expected_registers"] = expected;
    json["blocks_per_sm"] =
        tuner::resident_blocks(target.device, block_threads(config), std::min(limit, expected), shared);
  }
  if (options.json) {
    fmt::print("{}\n", harness::json_text(json));
  } else if (reason != nullptr) {
    fmt::print("illegal for {}: {}\n", arch_name(arch), reason);
  } else {
    fmt::print(
        "legal for {}: {} threads, {} bytes of shared memory, at most {} registers a thread ({} expected), {} blocks "
        "an SM\n",
        arch_name(arch), block_threads(config), shared, register_limit(config), tuner::expected_registers(config),
        json["blocks_per_sm"].get<uint32_t>());
  }
  return reason == nullptr ? 0 : 2;
}

void print_text(const SpaceCounts& counts, const std::vector<Config>& first, const Options& options, Arch arch) {
  const KernelKind kind = kind_of(options);
  fmt::print("{} legal variants of {} points for {} {} on {}, each with {} settings of run levers\n", counts.legal,
             counts.points, value_name(kind.dtype), value_name(options.projection), arch_name(arch),
             counts.run_settings);
  if (!first.empty()) {
    fmt::print("\nthe first {}, by what they change of the default\n", first.size());
    for (const Config& config : first) fmt::print("  {}\n", tuner::difference_text(config, default_config(kind, arch)));
  }
  if (counts.reasons.empty()) return;
  fmt::print("\n{:>12}  why a point is illegal\n", "points");
  for (const auto& [reason, count] : counts.reasons) fmt::print("{:>12}  {}\n", count, reason);
}

void print_json(const SpaceCounts& counts, const std::vector<Config>& first, const Options& options, Arch arch) {
  const KernelKind kind = kind_of(options);
  Json json{
      {"arch", arch_name(arch)}, {"dtype", value_name(kind.dtype)}, {"projection", value_name(options.projection)},
      {"points", counts.points}, {"legal", counts.legal},           {"run_settings", counts.run_settings}};
  json["reasons"] = Json::array();
  for (const auto& [reason, count] : counts.reasons) json["reasons"].push_back({{"reason", reason}, {"points", count}});
  json["variants"] = Json::array();
  for (const Config& config : first) json["variants"].push_back(tuner::config_text(config));
  fmt::print("{}\n", harness::json_text(json));
}

int run(const Options& options) {
  const Arch arch = options.arch.value_or(Arch{90});
  if (!options.config.empty()) return explain_config(options, arch);
  std::vector<Config> first;
  const SpaceCounts counts = tuner::enumerate_space(arch, kind_of(options), options.pins, [&](const Config& config) {
    if (first.size() < options.limit) first.push_back(config);
    return first.size() < options.limit;
  });
  if (options.json) {
    print_json(counts, first, options, arch);
  } else {
    print_text(counts, first, options, arch);
  }
  return 0;
}

}  // namespace

void add_space(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("space", "Lists legal variants, or says why one is illegal; needs no GPU");
  const auto options = std::make_shared<Options>();
  add_arch(verb, options->arch, "architecture, sm_90a by default");
  add_dtype(verb, options->dtype, "f16 (the default) or bf16");
  add_projection(verb, options->projection, "plain, gate_up (the default) or down");
  add_config(verb, options->config, "one Config, as in tile_n=128,stages=4: is it legal?");
  verb->add_option("--limit", options->limit, "legal variants to list")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "print JSON");
  add_lever_flags(verb, options->pins);
  verb->footer("Exit codes: 0 done, or legal; 1 wrong usage; 2 the Config is illegal.");
  verb->callback([options, &exit_code] { exit_code = run_verb("space", [&] { return run(*options); }); });
}

}  // namespace fulcrum::cli
