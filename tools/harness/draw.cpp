// Apportionment and systematic sampling.
//
// Called by receipt.cpp and trace.cpp. Invariant: see draw.hpp; 128-bit products keep both exact at any size.
#include "harness/draw.hpp"

#include <numeric>

namespace fulcrum::harness {

using Wide = unsigned __int128;

std::vector<uint64_t> apportion(std::span<const uint64_t> weights, uint32_t top_k, uint64_t stride) {
  std::vector<uint64_t> lengths(weights.size(), 0);
  std::vector<bool> full(weights.size(), false);
  uint64_t choices_left = top_k;
  Wide weight_left = 0;
  for (const uint64_t weight : weights) weight_left += weight;
  // An expert whose share of what is left reaches a whole stride is taken by every token. Taking one raises the share
  // of the others, so the search starts over until nobody overflows.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t e = 0; e < weights.size(); ++e) {
      if (full[e] || weights[e] == 0 || choices_left == 0 || weights[e] * Wide{choices_left} < weight_left) continue;
      full[e] = changed = true;
      lengths[e] = stride;
      weight_left -= weights[e];
      --choices_left;
    }
  }
  if (choices_left > 0 && weight_left == 0) return {};
  const Wide rest = Wide{choices_left} * stride;
  Wide weight_before = 0;
  for (size_t e = 0; e < weights.size(); ++e) {
    if (full[e] || weight_left == 0) continue;
    const Wide begin = rest * weight_before / weight_left;
    weight_before += weights[e];
    lengths[e] = static_cast<uint64_t>(rest * weight_before / weight_left - begin);
  }
  return lengths;
}

void draw_token(std::span<const uint64_t> lengths, uint64_t stride, Random& random, std::span<int32_t> ids) {
  const uint64_t experts = lengths.size();
  // A walk e, e + step, e + 2 step ... modulo `experts` visits everyone once when the step shares no factor with it.
  uint64_t expert = random.below(experts);
  uint64_t step = 1 + random.below(experts);
  while (std::gcd(step, experts) != 1) step = 1 + random.below(experts);
  uint64_t point = random.below(stride);
  uint64_t end = 0;
  for (size_t choice = 0; choice < ids.size();) {
    end += lengths[expert];
    if (point < end) {
      ids[choice++] = static_cast<int32_t>(expert);
      point += stride;
    }
    expert = (expert + step) % experts;
  }
}

}  // namespace fulcrum::harness
