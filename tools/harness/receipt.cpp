// The popularity curve of `receipt` and the dealing of its rows to tokens.
//
// Called by make_routing(). Invariant: see receipt.hpp.
#include "harness/receipt.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "harness/draw.hpp"

namespace fulcrum::harness {

uint32_t receipt_active(uint32_t experts, uint32_t top_k) { return std::max(top_k, experts - experts / 72); }

std::vector<uint64_t> receipt_popularity(uint32_t experts, uint32_t top_k) {
  std::vector<uint32_t> expert_of_rank(experts);
  std::iota(expert_of_rank.begin(), expert_of_rank.end(), 0u);
  Random shuffle(288);  // fixed: which expert is popular must not change between two records
  for (uint32_t left = experts; left > 1; --left)
    std::swap(expert_of_rank[left - 1], expert_of_rank[shuffle.below(left)]);

  std::vector<uint64_t> popularity(experts, 0);
  const uint32_t active = receipt_active(experts, top_k);
  for (uint32_t rank = 0; rank < active; ++rank) {
    const double place = active == 1 ? 0.0 : static_cast<double>(rank) / (active - 1);
    const double share = std::exp(-receipt_decay * std::pow(place, receipt_bend));
    popularity[expert_of_rank[rank]] = static_cast<uint64_t>(std::llround(share * 0x1p40));
  }
  return popularity;
}

std::vector<int32_t> receipt_ids(RoutingSize size, uint64_t seed) {
  std::vector<int32_t> ids(size_t{size.tokens} * size.top_k);
  std::vector<uint64_t> rows_left = apportion(receipt_popularity(size.experts, size.top_k), size.top_k, size.tokens);
  Random random(seed);
  for (uint32_t token = 0; token < size.tokens; ++token) {
    const std::span<int32_t> choices(&ids[size_t{token} * size.top_k], size.top_k);
    draw_token(rows_left, size.tokens - token, random, choices);
    for (const int32_t expert : choices) --rows_left[static_cast<size_t>(expert)];
  }
  return ids;
}

}  // namespace fulcrum::harness
