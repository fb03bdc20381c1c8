// Paired statistics. Invariant: see statistics.hpp.
#include "tuner/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/random.hpp"

namespace fulcrum::tuner {
namespace {

constexpr int num_resamples = 1000;

// Of sorted values: all but the outer quarters on both sides.
double middle_of_sorted(const std::vector<double>& sorted) {
  const size_t cut = sorted.size() / 4;
  const auto begin = sorted.begin() + static_cast<std::ptrdiff_t>(cut);
  const auto end = sorted.end() - static_cast<std::ptrdiff_t>(cut);
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

}  // namespace

double middle_mean(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return middle_of_sorted(values);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<double> log_ratios(std::span<const double> times, std::span<const double> base) {
  std::vector<double> ratios;
  for (size_t block = 0; block < std::min(times.size(), base.size()); ++block) {
    ratios.push_back(std::log(times[block] / base[block]));
  }
  return ratios;
}

Interval bootstrap(const std::vector<double>& values, uint64_t seed) {
  Interval interval;
  interval.point = middle_mean(values);
  interval.low = interval.high = interval.point;
  if (values.size() < 2) return interval;
  harness::Random random(seed);
  std::vector<double> means;
  std::vector<double> drawn(values.size());
  for (int resample = 0; resample < num_resamples; ++resample) {
    for (double& value : drawn) value = values[random.below(values.size())];
    std::sort(drawn.begin(), drawn.end());
    means.push_back(middle_of_sorted(drawn));
  }
  std::sort(means.begin(), means.end());
  // A resample of n values varies by (n - 1) / n less than a new sample would; small runs are widened by its root.
  const double size = static_cast<double>(values.size());
  const double widen = std::sqrt(size / (size - 1));
  interval.low = interval.point + (means[num_resamples * 25 / 1000] - interval.point) * widen;
  interval.high = interval.point + (means[num_resamples * 975 / 1000 - 1] - interval.point) * widen;
  return interval;
}

Interval median_interval(std::vector<double> times) {
  Interval interval;
  if (times.empty()) return interval;
  std::sort(times.begin(), times.end());
  const double size = static_cast<double>(times.size());
  const double reach = 0.98 * std::sqrt(size);  // 1.96 standard deviations of a binomial with p = 1/2
  const auto at = [&](double place) {
    const double inside = std::clamp(place, 0.0, size - 1);
    return times[static_cast<size_t>(inside)];
  };
  interval.point = median(times);
  interval.low = at(std::floor(size / 2 - reach));
  interval.high = at(std::ceil(size / 2 + reach));
  return interval;
}

Verdict judge(const Interval& ratio, double noise) {
  if (ratio.high < 0 && -ratio.point > noise) return Verdict::gain;
  if (ratio.low > 0 && ratio.point > noise) return Verdict::loss;
  if (ratio.low > -delta && ratio.high < delta) return Verdict::null;
  return Verdict::unresolved;
}

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::gain: return "gain";
    case Verdict::loss: return "loss";
    case Verdict::null: return "null";
    default: return "unresolved";
  }
}

double noise_of(const Interval& twin) { return std::max(std::abs(twin.low), std::abs(twin.high)); }

}  // namespace fulcrum::tuner
