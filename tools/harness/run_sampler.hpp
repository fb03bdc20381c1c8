// Draws contiguous runs from a stream of token rows whose length is not known beforehand.
//
// Called by sample_trace(): rows go through WarmUpFilter into RunSampler.
// Invariant: every run of the wanted length is equally likely to be drawn, and memory does not grow with the stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/random.hpp"

namespace fulcrum::harness {

class RunSampler {
 public:
  // Each of `batches` batches has `tokens` rows in `runs` runs, as equal as they can be; batch i draws with seed + i.
  RunSampler(uint32_t top_k, uint32_t tokens, uint32_t runs, uint64_t seed, uint32_t batches);

  void add(std::span<const int32_t> ids);  // [top_k]

  uint64_t num_rows() const { return num_rows_; }

  // Some run is longer than the stream so far; take() then goes round and round through the stream.
  bool repeats() const { return num_rows_ > 0 && num_rows_ < ring_rows_; }

  // [batches][tokens][top_k]; num_rows() must not be 0. Ends the sampler's work.
  std::vector<std::vector<int32_t>> take();

 private:
  struct Run {
    uint32_t batch, row_begin, num_rows;  // where it goes
    uint64_t next_row;                    // the run that ends at this row is taken, in place of the one before
    Random random;
  };
  void copy_run(const Run& run, uint64_t first_row);

  uint32_t top_k_;
  uint64_t ring_rows_ = 0;  // of the longest run
  uint64_t num_rows_ = 0;
  std::vector<int32_t> ring_;  // [ring_rows][top_k], row r at r % ring_rows
  std::vector<Run> runs_;
  std::vector<std::vector<int32_t>> batches_;
};

// Holds back rows while they repeat, and drops runs of at least `warm_up_run` rows that name the same set of experts.
class WarmUpFilter {
 public:
  WarmUpFilter(uint32_t top_k, RunSampler& sampler) : top_k_(top_k), sampler_(sampler) {}

  void add(std::span<const int32_t> ids, uint64_t line);
  void finish();  // after the last row

  uint64_t warm_up_rows() const { return warm_up_rows_; }
  uint64_t first_line() const { return first_line_; }

 private:
  uint32_t top_k_;
  RunSampler& sampler_;
  std::vector<int32_t> held_;      // rows of the current run, none beyond warm_up_run - 1
  std::vector<int32_t> held_set_;  // their experts, sorted
  uint64_t held_rows_ = 0;         // length of the current run
  uint64_t held_line_ = 0;         // where it began
  uint64_t warm_up_rows_ = 0;
  uint64_t first_line_ = 0;
};

}  // namespace fulcrum::harness
