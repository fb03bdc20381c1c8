// Seeded random numbers that are the same on every machine, unlike the distributions of <random>.
//
// Used by everything in the harness that draws: routings, trace batches, test data.
// Invariant: the sequence depends on the seed alone, so a seed in a record names its data for ever.
#pragma once

#include <cstdint>

namespace fulcrum::harness {

// SplitMix64 (Steele, Lea, Flood 2014): a Weyl sequence through the finalizer of Stafford's variant 13.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio, odd: the sequence visits all 2^64 states
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  // 0 .. bound-1; the bias of a multiply-high is below bound / 2^64.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

  // (0, 1]: the 53 bits that a double holds, moved off zero so that it can divide.
  double unit() { return (static_cast<double>(next() >> 11) + 1.0) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace fulcrum::harness
