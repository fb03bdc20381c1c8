// Reservoir sampling of runs and the warm-up filter.
//
// Called by sample_trace(). Invariant: see run_sampler.hpp.
#include "harness/run_sampler.hpp"

#include <algorithm>
#include <cmath>

#include "harness/trace.hpp"

namespace fulcrum::harness {

RunSampler::RunSampler(uint32_t top_k, uint32_t tokens, uint32_t runs, uint64_t seed, uint32_t batches)
    : top_k_(top_k), batches_(batches, std::vector<int32_t>(size_t{tokens} * top_k)) {
  for (uint32_t batch = 0; batch < batches; ++batch) {
    Random seeds(seed + batch);
    for (uint64_t run = 0; run < runs; ++run) {
      const auto begin = static_cast<uint32_t>(run * tokens / runs);
      const auto end = static_cast<uint32_t>((run + 1) * tokens / runs);
      if (begin == end) continue;  // more runs than tokens
      // The first complete run is always taken: it ends at row num_rows - 1.
      runs_.push_back({batch, begin, end - begin, end - begin - 1, Random(seeds.next())});
      ring_rows_ = std::max<uint64_t>(ring_rows_, end - begin);
    }
  }
  ring_.resize(ring_rows_ * top_k);
}

void RunSampler::copy_run(const Run& run, uint64_t first_row) {
  int32_t* out = batches_[run.batch].data() + size_t{run.row_begin} * top_k_;
  for (uint64_t row = first_row; row < first_row + run.num_rows; ++row, out += top_k_) {
    std::copy_n(&ring_[row % ring_rows_ * top_k_], top_k_, out);
  }
}

void RunSampler::add(std::span<const int32_t> ids) {
  const uint64_t row = num_rows_++;
  if (ring_rows_ == 0) return;
  std::copy(ids.begin(), ids.end(), &ring_[row % ring_rows_ * top_k_]);
  for (Run& run : runs_) {
    if (run.next_row != row) continue;
    copy_run(run, row + 1 - run.num_rows);
    // The j-th candidate replaces the drawn one with probability 1/j. From candidate j on, the next that does is beyond
    // candidate x with probability j/x, so it is floor(j / u) + 1 for u uniform in (0, 1].
    const uint64_t candidate = row + 2 - run.num_rows;
    const double next = std::floor(static_cast<double>(candidate) / run.random.unit()) + 1.0;
    run.next_row = row + static_cast<uint64_t>(std::min(next, 0x1p62)) - candidate;  // 2^62: no file is that long
  }
}

std::vector<std::vector<int32_t>> RunSampler::take() {
  for (Run& run : runs_) {
    if (num_rows_ >= run.num_rows) continue;
    // Shorter than the run: the whole stream is in the ring's first rows. Start anywhere in it and go round.
    const uint64_t first = run.random.below(num_rows_);
    int32_t* out = batches_[run.batch].data() + size_t{run.row_begin} * top_k_;
    for (uint64_t i = 0; i < run.num_rows; ++i, out += top_k_) {
      std::copy_n(&ring_[(first + i) % num_rows_ * top_k_], top_k_, out);
    }
  }
  return std::move(batches_);
}

void WarmUpFilter::add(std::span<const int32_t> ids, uint64_t line) {
  std::vector<int32_t> set(ids.begin(), ids.end());
  std::sort(set.begin(), set.end());
  if (set != held_set_) {
    finish();
    held_set_ = std::move(set);
    held_line_ = line;
  }
  if (++held_rows_ < warm_up_run) held_.insert(held_.end(), ids.begin(), ids.end());
}

void WarmUpFilter::finish() {
  if (held_rows_ >= warm_up_run) {
    if (warm_up_rows_ == 0) first_line_ = held_line_;
    warm_up_rows_ += held_rows_;
  } else {
    for (size_t at = 0; at < held_.size(); at += top_k_) sampler_.add({&held_[at], top_k_});
  }
  held_.clear();
  held_rows_ = 0;
}

}  // namespace fulcrum::harness
