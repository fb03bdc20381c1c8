// Counting of routes: rows per expert, and what follows from them.
//
// Called by the verbs routing and probe, problem_size() and the tuner. Invariant: see routing_stats.hpp.
#include "harness/routing_stats.hpp"

#include <algorithm>

namespace fulcrum::harness {

RoutingStats routing_stats(const Routing& routing, ExpertRange range) {
  RoutingStats stats;
  stats.pairs = routing.num_pairs();
  stats.rows.assign(range.count, 0);
  for (const int32_t id : routing.ids) {
    const int64_t local = int64_t{id} - range.first;
    if (id >= 0 && local >= 0 && local < range.count) ++stats.rows[static_cast<size_t>(local)];
  }
  for (const uint64_t rows : stats.rows) {
    if (rows == 0) continue;
    stats.local_pairs += rows;
    stats.max_m = std::max(stats.max_m, rows);
    stats.min_m = stats.active == 0 ? rows : std::min(stats.min_m, rows);
    ++stats.active;
  }
  if (stats.active > 0) {
    const auto local_pairs = static_cast<double>(stats.local_pairs);
    stats.mean_m = local_pairs / stats.active;
    stats.skew = static_cast<double>(stats.max_m) * range.count / local_pairs;
  }
  return stats;
}

RoutingStats routing_stats(const Routing& routing) { return routing_stats(routing, {0, routing.experts}); }

double padding(const RoutingStats& stats, uint32_t granularity) {
  if (stats.local_pairs == 0) return 1.0;
  uint64_t processed = 0;
  for (const uint64_t rows : stats.rows) processed += (rows + granularity - 1) / granularity * granularity;
  return static_cast<double>(processed) / static_cast<double>(stats.local_pairs);
}

std::vector<uint32_t> rows_histogram(const RoutingStats& stats) {
  std::vector<uint32_t> experts(stats.max_m + 1, 0);
  for (const uint64_t rows : stats.rows) ++experts[rows];
  return experts;
}

}  // namespace fulcrum::harness
