// The built-in routing `receipt`: a skewed popularity curve fitted to one production batch.
//
// Called by make_routing(). The receipt says: 4,096 tokens, top 8 of 288 experts, 284 active, the busiest has 934 rows.
// Invariant: deterministic; the top_k ids of a token are distinct; every expert's row count is its share of the pairs,
// rounded up or down, at every token count.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/trace.hpp"

namespace fulcrum::harness {

// Popularity of the expert of rank r among `active`, relative to the first: exp(-decay * (r / (active - 1)) ^ bend).
// The two numbers are what the receipt leaves open once the form is chosen (the counts of recorded models in
// tests/data/routing fall off like this: near straight on a log scale, steeper at the head):
//   decay  the last active expert expects 1.5 rows where the first has 934, so rounding leaves it at least one:
//          exp(-decay) = 1.5 / 934
//   bend   makes the whole add up: the sum over 284 ranks is 32768 / 934 = 35.0835 (solved by bisection; a test
//          repeats it)
inline constexpr double receipt_decay = 6.434011;
inline constexpr double receipt_bend = 0.853270;

// 4 of 288 experts are idle; the same share for other counts, and never fewer active ones than top_k.
uint32_t receipt_active(uint32_t experts, uint32_t top_k);

// Popularity by expert id, scaled to 2^40 for the most popular: ranks are dealt to ids by a fixed shuffle, so that
// popular experts do not sit side by side. [experts]
std::vector<uint64_t> receipt_popularity(uint32_t experts, uint32_t top_k);

// ids [tokens][top_k]. Rows per expert are fixed first; then every token draws with the rows that are still to be given
// as lengths and the tokens still to come as stride. The sum of what is left is always top_k times the tokens left, and
// an expert with as many rows left as tokens is drawn for certain, so the counts come out exactly.
std::vector<int32_t> receipt_ids(RoutingSize size, uint64_t seed);

}  // namespace fulcrum::harness
