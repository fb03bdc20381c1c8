// Formulas of the built-in routings.
//
// Called by make_routing(). Invariant: ids[token * top_k + choice], all in [0, experts).
#include "harness/routing_builtin.hpp"

#include <algorithm>
#include <cmath>

#include "harness/random.hpp"

namespace fulcrum::harness {

std::vector<int32_t> probe_ids(RoutingSize size) {
  std::vector<int32_t> ids(size_t{size.tokens} * size.top_k);
  for (uint64_t pair = 0; pair < ids.size(); ++pair) {
    uint64_t hash = pair * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
    hash *= 0xBF58476D1CE4E5B9u;
    hash ^= hash >> 32;
    const double u = static_cast<double>(hash >> 11) / 0x1p53;
    // The exponent 1.35 skews towards low ids; pow(u) may round to 1, hence the minimum.
    const auto expert = static_cast<int32_t>(std::pow(u, 1.35) * size.experts);
    ids[pair] = std::min(expert, static_cast<int32_t>(size.experts) - 1);
  }
  return ids;
}

std::vector<int32_t> decode_ids(RoutingSize size) {
  std::vector<int32_t> ids;
  ids.reserve(size_t{size.tokens} * size.top_k);
  // First halves round up, of the experts and of a token's choices, so a half never has more choices than experts.
  const uint64_t experts_of_half[2] = {size.experts - size.experts / 2, size.experts / 2};
  const uint64_t choices_of_half[2] = {size.top_k - size.top_k / 2, size.top_k / 2};
  for (uint64_t token = 0; token < size.tokens; ++token) {
    for (uint32_t choice = 0; choice < size.top_k; ++choice) {
      const uint32_t half = choice % 2;
      const uint64_t index = choices_of_half[half] * token + choice / 2;
      ids.push_back(static_cast<int32_t>(half * experts_of_half[0] + index % experts_of_half[half]));
    }
  }
  return ids;
}

std::vector<int32_t> uniform_ids(RoutingSize size, uint64_t seed) {
  std::vector<int32_t> ids(size_t{size.tokens} * size.top_k);
  Random random(seed);
  for (size_t begin = 0; begin < ids.size(); begin += size.top_k) {
    // Floyd's sampling: choice c draws from the first `bound` experts; an expert that is already there is replaced by
    // the newest one, which cannot be. Bentley and Floyd (1987) show that all sets come out equally likely.
    int32_t* const token = &ids[begin];
    for (uint32_t c = 0; c < size.top_k; ++c) {
      const uint32_t bound = size.experts - size.top_k + c + 1;
      const auto drawn = static_cast<int32_t>(random.below(bound));
      token[c] = std::find(token, token + c, drawn) == token + c ? drawn : static_cast<int32_t>(bound - 1);
    }
  }
  return ids;
}

std::vector<int32_t> one_hot_ids(RoutingSize size, uint32_t expert) {
  std::vector<int32_t> ids(size_t{size.tokens} * size.top_k);
  for (size_t pair = 0; pair < ids.size(); ++pair) {
    ids[pair] = static_cast<int32_t>((expert + pair % size.top_k) % size.experts);
  }
  return ids;
}

}  // namespace fulcrum::harness
