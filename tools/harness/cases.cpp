// The small problems as a table, and a routing with given rows per expert.
//
// Called by check_variant() and the tests. Invariant: see cases.hpp; the same arguments give the same problems.
#include "harness/cases.hpp"

#include <algorithm>
#include <utility>

#include "harness/random.hpp"

namespace fulcrum::harness {
namespace {

constexpr uint32_t num_experts = 10, first_expert = 2, case_top_k = 3;

struct Case {
  const char* name;
  uint32_t n, k, tiny_k;
  CheckpointFormat format;
  RowOrder input_rows, output_rows;
  bool row_scales, bias, pair_weights;
  bool gaps;  // between rows of tokens and of out
  bool expert_pointers;
};

constexpr CheckpointFormat block36 = CheckpointFormat::block36, modelopt = CheckpointFormat::modelopt;

constexpr Case cases[] = {
    // n: 10 units, a last group of 2; k: 10 units and a half
    {"n_and_k_tails", 160, 672, 208, modelopt, RowOrder::token, RowOrder::pair, false, false, false, true, false},
    // the shortest tiles: one unit of k and a quarter, ring stages that outlive a tile
    {"short_k_row_scales", 64, 80, 80, modelopt, RowOrder::pair, RowOrder::csr, true, false, false, false, true},
    {"bias", 192, 640, 320, block36, RowOrder::csr, RowOrder::pair, false, true, false, true, false},
    // n: 33 units, one more than four groups of 128; k: 16 units wrap every ring
    {"pair_weights", 528, 1024, 256, block36, RowOrder::token, RowOrder::csr, false, false, true, false, true},
    {"all_factors", 160, 672, 208, modelopt, RowOrder::token, RowOrder::pair, true, true, true, true, true},
};

}  // namespace

Routing routing_with_rows(const std::vector<uint32_t>& rows, ExpertRange local, uint32_t experts, uint32_t top_k,
                          uint64_t seed) {
  Routing routing;
  routing.experts = experts;
  routing.top_k = top_k;
  routing.name = "rows";
  for (uint32_t e = 0; e < rows.size(); ++e)
    routing.ids.insert(routing.ids.end(), rows[e], static_cast<int32_t>(local.first + e));
  for (uint32_t e = 0; e < experts; ++e)
    if (e < local.first || e >= local.first + local.count) routing.ids.push_back(static_cast<int32_t>(e));
  do routing.ids.push_back(-1);
  while (routing.ids.size() % top_k != 0);
  Random random(seed);
  for (size_t i = routing.ids.size(); i > 1; --i) std::swap(routing.ids[i - 1], routing.ids[random.below(i)]);
  // top_k equal neighbours at the front: one token that names its expert twice, wherever the shuffle put the others
  const auto busiest = static_cast<int32_t>(local.first + (std::max_element(rows.begin(), rows.end()) - rows.begin()));
  for (size_t i = 0, at = 0; i < 2 && at < routing.ids.size(); ++at)
    if (routing.ids[at] == busiest) std::swap(routing.ids[i++], routing.ids[at]);
  routing.tokens = static_cast<uint32_t>(routing.ids.size() / top_k);
  for (const int32_t id : routing.ids) {
    const double weight = random.unit();
    routing.weights.push_back(id < 0 ? 0.0f : static_cast<float>(weight));
  }
  return routing;
}

std::vector<Problem> small_problems(const KernelKind& kind, uint32_t tile_m, CaseSize size) {
  const bool tiny = size == CaseSize::tiny;
  std::vector<uint32_t> rows{0, 1, tile_m, tile_m + 1};
  if (!tiny) rows.push_back(2 * tile_m + 3);
  rows.push_back(5);
  const ExpertRange local{first_expert, static_cast<uint32_t>(rows.size())};
  std::vector<Problem> problems;
  for (const Case& each : cases) {
    Problem problem;
    problem.seed = problems.size() + 1;
    problem.routing = routing_with_rows(rows, local, num_experts, case_top_k, problem.seed);
    problem.shape = {each.n,         tiny ? each.tiny_k : each.k,
                     num_experts,    local.count,
                     local.first,    case_top_k,
                     kind.dtype,     kind.gate_up ? Projection::gate_up : Projection::plain,
                     kind.activation};
    problem.input_rows = each.input_rows;
    problem.output_rows = each.output_rows;
    problem.workload = tiny ? "tiny" : "small";
    problem.case_name = each.name;
    problem.item = value_name(problem.shape.projection);
    problem.format = each.format;
    problem.edge_scales = each.format == block36;  // bytes that a reader in place must make canonical
    problem.row_scales = each.row_scales;
    problem.bias = each.bias;
    problem.pair_weights = each.pair_weights;
    problem.token_gap_bytes = each.gaps ? 48 : 0;
    problem.out_gap_bytes = each.gaps ? 20 : 0;
    problem.expert_pointers = each.expert_pointers;
    problems.push_back(problem);
  }
  return problems;
}

}  // namespace fulcrum::harness
