// Statistics of paired timings: what a run may claim about two Configs, and how sure it is.
//
// Called by the race and by the tests on synthetic noise. A block times every entry once, close together, so drift and
// heat are common to a block; everything is therefore computed on log-ratios within blocks.
// Invariant: pure functions of their samples and a seed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fulcrum::tuner {

struct Interval {
  double low = 0, point = 0, high = 0;
};

// The mean of the middle half: as robust as the median against outliers, and 1.3 times as efficient on normal noise.
// 0 for no values.
double middle_mean(std::vector<double> values);
double median(std::vector<double> values);

// [block] log(time / base time). The two have equal lengths.
std::vector<double> log_ratios(std::span<const double> times, std::span<const double> base);

// middle_mean and its 95 % interval by a bootstrap over blocks (basic percentile, 1,000 resamples).
Interval bootstrap(const std::vector<double>& values, uint64_t seed);

// The median of times with its 95 % interval: order statistics n/2 -+ 0.98 sqrt(n).
Interval median_interval(std::vector<double> times);

// What may be said of a candidate against the default. `noise` is what the A/A twin shows: the larger magnitude of its
// interval's ends, the effect that this run would see where there is none.
enum class Verdict : uint8_t {
  gain,        // faster, by more than the noise
  loss,        // slower, by more than the noise
  null,        // the interval lies inside +-delta
  unresolved,  // none of these
};
inline constexpr double delta = 0.005;  // half a percent, fixed before any run
Verdict judge(const Interval& ratio, double noise);
const char* verdict_name(Verdict verdict);
double noise_of(const Interval& twin);

}  // namespace fulcrum::tuner
