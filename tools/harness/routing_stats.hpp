// What a routing costs: rows per expert, skew, and how much padding each token granularity adds.
//
// Called by the `routing` verb, the tuner's cost model and reports.
// Invariant: only pairs whose expert is in the range count; max, min and mean are over active experts (those with a
// row), skew is against the mean over all experts of the range.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/routing.hpp"

namespace fulcrum::harness {

struct RoutingStats {
  uint64_t pairs = 0;        // tokens * top_k
  uint64_t local_pairs = 0;  // those whose expert is in the range
  uint32_t active = 0;       // experts of the range with at least one row: the unique local experts
  uint64_t max_m = 0;
  uint64_t min_m = 0;          // 0 when nothing is active
  double mean_m = 0.0;         // local_pairs / active
  double skew = 0.0;           // max_m / (local_pairs / experts of the range); 1 when all are equal
  std::vector<uint64_t> rows;  // [range.count] rows per expert
};

RoutingStats routing_stats(const Routing& routing, ExpertRange range);
RoutingStats routing_stats(const Routing& routing);  // all experts

// Rows processed over rows useful when each expert's rows are rounded up to `granularity`; 1 when there are none.
double padding(const RoutingStats& stats, uint32_t granularity);

// Spread of routes per expert: how many experts have how many rows, [max_m + 1], index 0 the idle ones.
std::vector<uint32_t> rows_histogram(const RoutingStats& stats);

// The granularities of the padding table.
inline constexpr uint32_t padding_granularities[] = {8, 16, 32, 64, 128, 256};

}  // namespace fulcrum::harness
