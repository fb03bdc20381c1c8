// The built-in routings that are a formula, as expert ids [tokens][top_k]; receipt.hpp has the fitted one.
//
// Called by make_routing(), which has checked the size. Each is deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/receipt.hpp"
#include "harness/trace.hpp"

namespace fulcrum::harness {

// The rate probe's hash of the pair index. Choices are independent: a token may name an expert twice.
std::vector<int32_t> probe_ids(RoutingSize size);

// The decode workload: even choices walk through the first half of the experts, odd ones through the second, each half
// one after the other, so every rank of two gets half of the pairs. With an odd count the first half is the larger.
std::vector<int32_t> decode_ids(RoutingSize size);

// top_k distinct experts per token, every set equally likely.
std::vector<int32_t> uniform_ids(RoutingSize size, uint64_t seed);

// Every token names the same top_k experts, `expert` and the ones after it (around the end).
std::vector<int32_t> one_hot_ids(RoutingSize size, uint32_t expert);

}  // namespace fulcrum::harness
