// The draws. Invariant: see random_case.hpp.
#include "harness/random_case.hpp"

#include <fmt/format.h>
#include <fulcrum/core/rules.h>
#include <fulcrum_space.hpp>

#include <algorithm>
#include <charconv>

#include "harness/input_error.hpp"

namespace fulcrum::harness {
namespace {

uint32_t between(Random& random, uint32_t least, uint32_t most) {
  return least + static_cast<uint32_t>(random.below(uint64_t{most} - least + 1));
}
bool one_in(Random& random, uint64_t count) { return random.below(count) == 0; }

// Multiples of 16 up to `most`, half of them within the first quarter.
uint32_t extent(Random& random, uint32_t least, uint32_t most) {
  const uint32_t end = one_in(random, 2) ? most : std::max(least, most / 4);
  return between(random, ceil_div(least, 16u), end / 16) * 16;
}

// Id of a pair: `popular` experts get most; what is left goes to all, to nobody (-1) or away from this rank.
struct IdDraw {
  uint32_t experts, popular, first_popular;
  uint32_t percent_missing, percent_popular;

  int32_t operator()(Random& random) const {
    const uint64_t kind = random.below(100);
    if (kind < percent_missing) return -1;
    if (kind < percent_missing + percent_popular)
      return static_cast<int32_t>((first_popular + random.below(popular)) % experts);
    return static_cast<int32_t>(random.below(experts));
  }
};

Routing random_routing(Random& random, uint32_t tokens, uint32_t experts, uint32_t top_k, ExpertRange local) {
  Routing routing;
  routing.name = "random";
  routing.tokens = tokens;
  routing.experts = experts;
  routing.top_k = top_k;
  IdDraw draw{experts, between(random, 1, std::min(experts, 4u)), 0, 0, 0};
  draw.first_popular = local.first + between(random, 0, local.count - 1);
  draw.percent_missing = one_in(random, 8) ? 100 : one_in(random, 2) ? 0 : between(random, 1, 50);
  draw.percent_popular = one_in(random, 4) ? 100 : one_in(random, 2) ? 0 : between(random, 1, 90);
  for (uint64_t pair = 0; pair < routing.num_pairs(); ++pair) {
    routing.ids.push_back(draw(random));
    const double weight = random.unit();
    routing.weights.push_back(routing.ids.back() < 0 ? 0.0f : static_cast<float>(weight));
  }
  return routing;
}

RowOrder random_order(Random& random) {
  constexpr RowOrder orders[] = {RowOrder::token, RowOrder::pair, RowOrder::csr};
  return orders[random.below(3)];
}

}  // namespace

Config random_config(Random& random) {
  Config config;
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    const LeverValues& values = family_spaces[0].levers[lever];
    set_lever(config, lever, values.values[random.below(static_cast<uint64_t>(values.num_values))]);
  }
  return config;
}

RandomVariant random_variant(uint64_t seed, Arch arch) {
  Random random(seed / seeds_per_variant * 2 + 1);
  for (;;) {
    RandomVariant variant;
    variant.config = random_config(random);
    variant.kind.dtype = one_in(random, 2) ? DType::f16 : DType::bf16;
    variant.kind.gate_up = one_in(random, 2);
    if (variant.kind.gate_up && one_in(random, 2)) variant.kind.activation = Activation::silu;
    if (illegal_reason(variant.config, arch, variant.kind) == nullptr) return variant;
  }
}

Problem random_problem(uint64_t seed, const RandomVariant& variant, CaseSize size) {
  Random random(seed * 2);
  const bool tiny = size == CaseSize::tiny;
  const auto parts = static_cast<uint32_t>(variant.config.split_k);
  Problem problem;
  problem.seed = seed + 1;
  problem.workload = "random";
  problem.case_name = std::to_string(seed);
  problem.shape.dtype = variant.kind.dtype;
  problem.shape.projection = variant.kind.gate_up ? Projection::gate_up : Projection::plain;
  problem.shape.activation = variant.kind.activation;
  problem.item = value_name(problem.shape.projection);
  problem.format = one_in(random, 2) ? CheckpointFormat::block36 : CheckpointFormat::modelopt;
  problem.shape.n = extent(random, 16, tiny ? 320 : 1600);
  problem.shape.k = extent(random, (parts - 1) * 64 + 16, tiny ? 400 : 2000);
  problem = with_checkpoint_for(problem, variant.config);
  if (problem.format == CheckpointFormat::block36) problem.shape.k = round_up(problem.shape.k, 64u);

  constexpr uint32_t expert_counts[] = {1, 2, 3, 8, 17, 64, 300, 1024};
  const uint32_t experts = expert_counts[random.below(std::size(expert_counts))];
  // weights of a rank are made and packed, so their number bounds its experts
  const uint64_t most_weights = tiny ? 200000 : 20000000;
  const auto fitting =
      static_cast<uint32_t>(std::max<uint64_t>(1, most_weights / (uint64_t{problem.shape.n} * problem.shape.k)));
  problem.shape.experts = experts;
  problem.shape.local_experts = between(random, 1, std::min(experts, fitting));
  problem.shape.first_expert = between(random, 0, experts - problem.shape.local_experts);
  problem.shape.top_k = one_in(random, 4) ? between(random, 1, 32) : between(random, 1, 8);
  const uint32_t most_pairs = tiny ? 120 : 4000;
  const uint32_t tokens = between(random, 0, std::min(tiny ? 40u : 400u, most_pairs / problem.shape.top_k));
  problem.routing = random_routing(random, tokens, experts, problem.shape.top_k, problem.local());

  problem.input_rows = random_order(random);
  problem.output_rows = one_in(random, 2) ? RowOrder::pair : RowOrder::csr;
  problem.edge_scales = one_in(random, 2);
  problem.row_scales = one_in(random, 2);
  problem.bias = one_in(random, 2);
  problem.pair_weights = one_in(random, 2);
  problem.token_gap_bytes = one_in(random, 2) ? 0 : between(random, 1, 4) * 16;
  problem.out_gap_bytes = one_in(random, 2) ? 0 : between(random, 1, 16) * 4;
  problem.expert_pointers = one_in(random, 2);
  return problem;
}

SeedRange parse_seeds(const std::string& text) {
  const size_t colon = text.find(':');
  const auto number = [&](const std::string& digits) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size())
      throw InputError(fmt::format("'{}' is no range of seeds; write one seed, or FIRST:LAST", text));
    return value;
  };
  if (colon == std::string::npos) return {number(text), number(text)};
  const SeedRange range{number(text.substr(0, colon)), number(text.substr(colon + 1))};
  if (range.last < range.first) throw InputError(fmt::format("the seeds '{}' end before they begin", text));
  return range;
}

}  // namespace fulcrum::harness
