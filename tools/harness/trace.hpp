// Batches from a recorded routing: a CSV file of expert ids per token, or of counts per expert.
//
// Called by make_routing(). The file is read line by line and once, however large it is and however many batches are
// wanted; memory is what the batches take.
// Invariant: a batch of the tokens form consists of rows that stand next to each other in the file (same layer), since
// one sequence of tokens touches fewer experts than as many tokens drawn from everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fulcrum::harness {

struct RoutingSize {
  uint32_t tokens = 0;
  uint32_t experts = 0;
  uint32_t top_k = 0;
};

enum class TraceForm : uint8_t {
  tokens,  // header token[,layer],e0,e1,...   one row per token (and layer), ids in the order of choice, -1: none
  counts,  // header layer,expert,count        how many tokens of the recording chose the expert
};

struct TraceReport {
  TraceForm form = TraceForm::tokens;
  std::optional<uint32_t> layer;  // the layer that was sampled; none when the file has no layer column
  uint32_t experts = 0;           // asked for, or the largest id + 1
  uint32_t top_k = 0;
  uint64_t rows = 0;          // token rows (or counted experts) of that layer, warm-up rows left out
  uint64_t warm_up_rows = 0;  // rows of runs in which every token names the same experts; never sampled
  uint64_t warm_up_line = 0;  // line of the first of them
  bool repeated = false;      // a run was longer than the recording, which was then read round and round
};

struct TraceRequest {
  std::string path;
  std::optional<uint32_t> layer;  // absent: the layer of the first row
  uint64_t seed = 0;              // batch i draws with seed + i
  uint32_t runs = 1;              // runs per batch, each of tokens / runs rows at a place of its own
  uint32_t batches = 1;
  RoutingSize size;  // experts or top_k of 0: what the file has
};

struct TraceSample {
  TraceReport report;
  std::vector<std::vector<int32_t>> batches;  // [batches][tokens][top_k]
};

// At least this many rows in a row that name the same set of experts are a warm-up (an engine's dummy batch: all its
// tokens are alike). Recorded text repeats a row at most three times in tests/data/routing, and dummy batches of
// graph captures start at 16 rows or more.
inline constexpr uint32_t warm_up_run = 16;

// Throws InputError "path:line: ..." for a wrong column, an id out of range, a blank line or CR LF, and without a line
// where the file has too little for the request: rows, or a row that names any expert.
TraceSample sample_trace(const TraceRequest& request);

}  // namespace fulcrum::harness
