// Drawing top_k distinct experts per token with given popularities, in integers throughout.
//
// Called by the builders of receipt, uniform and counts traces.
// Invariant: a draw never gives a token the same expert twice, and an expert's share is met exactly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/random.hpp"

namespace fulcrum::harness {

// Cuts a line of top_k * stride into one interval per expert, as long as its weight asks, none longer than `stride`:
// what would be longer is held at `stride` and the rest shared among the others (water-filling). Lengths are rounded
// so that every prefix is within 1 of its exact share and the sum is exact.
//   weights  [experts], zero for an expert that nobody chooses; each below 2^48
//   returns  [experts], empty when fewer than top_k weights are above zero
std::vector<uint64_t> apportion(std::span<const uint64_t> weights, uint32_t top_k, uint64_t stride);

// Systematic sampling (Madow 1949): lays the intervals end to end in a random order and takes the experts under the
// points start, start + stride, ... An interval of at most `stride` holds at most one of them, so the ids are
// distinct, and it holds one with probability length / stride.
//   lengths  [experts], sum = ids.size() * stride
//   ids      [top_k], written
void draw_token(std::span<const uint64_t> lengths, uint64_t stride, Random& random, std::span<int32_t> ids);

}  // namespace fulcrum::harness
