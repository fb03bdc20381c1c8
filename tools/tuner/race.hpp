// The race: entries timed in randomly ordered blocks, and halving - few blocks for many, many for few.
//
// Called by tune with graph timers, and by tests with synthetic noise. Entry 0 is the baseline, entry 1 its A/A twin;
// both run in every block.
// Invariant: within a block every running entry is sampled once, in a fresh random order, so a drift meets all of them
// alike; an entry is only ever compared with the baseline's samples of the very blocks it ran in.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "harness/random.hpp"
#include "tuner/statistics.hpp"

namespace fulcrum::tuner {

class Race {
 public:
  using Sample = std::function<double()>;  // one timed sample in microseconds

  static constexpr size_t baseline = 0;
  static constexpr size_t twin = 1;

  explicit Race(uint64_t seed) : random_(seed), seed_(seed) {}

  // Returns the entry's index. Entries join at the next block. `group` marks what halving must keep one of.
  size_t add(Sample sample, int group = 0);

  // Runs up to `blocks` blocks with the baseline, the twin and `entries`; returns how many before `may_go_on` said no.
  int run(const std::vector<size_t>& entries, int blocks, const std::function<bool()>& may_go_on);

  size_t size() const { return entries_.size(); }
  int group(size_t entry) const { return entries_[entry].group; }
  std::span<const double> times(size_t entry) const { return entries_[entry].times; }

  // log(time / baseline's) in the entry's own blocks.
  std::vector<double> ratios(size_t entry) const;
  // The same against any entry that ran in all of the entry's blocks.
  std::vector<double> ratios(size_t entry, size_t against) const;
  Interval interval(size_t entry) const { return bootstrap(ratios(entry), seed_ + entry); }
  double point(size_t entry) const { return middle_mean(ratios(entry)); }

 private:
  struct Entry {
    Sample sample;
    int group = 0;
    int first_block = 0;
    std::vector<double> times;  // of blocks first_block ..
  };

  std::vector<Entry> entries_;
  int num_blocks_ = 0;
  harness::Random random_;
  uint64_t seed_;
};

// Rounds of 3, 4, 6, 9 ... blocks; after each, the slower half goes, but the best entry of every group stays. Ends with
// `keep` entries (and what groups add), or when `may_go_on` says no. Returns the survivors, fastest first.
std::vector<size_t> halve(Race& race, std::vector<size_t> entries, size_t keep, const std::function<bool()>& may_go_on);

}  // namespace fulcrum::tuner
