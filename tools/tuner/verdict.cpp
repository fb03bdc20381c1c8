// The choice among finalists. Invariant: see verdict.hpp.
#include "tuner/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::tuner {
namespace {

double percent(double log_ratio) { return 100 * std::expm1(log_ratio); }

// Entries that the run cannot tell from the fastest: within delta of it, or not surely slower and close.
std::vector<size_t> tied_with(const Race& race, const std::vector<size_t>& entries, size_t fastest) {
  std::vector<size_t> tied;
  for (const size_t entry : entries) {
    if (entry == fastest) {
      tied.push_back(entry);
      continue;
    }
    const Interval apart = bootstrap(race.ratios(entry, fastest), entry);
    if (apart.low <= 0 && apart.point <= delta) tied.push_back(entry);
  }
  return tied;
}

}  // namespace

LayoutTimes times_by_layout(const std::vector<Tried>& tried, const Pins& pins) {
  LayoutTimes times;
  for (const auto& [config, us, ratio] : tried) {
    const Layout layout = layout_of(config);
    if (!(layout_of(with_pins(config, pins)) == layout)) continue;
    const auto [place, is_new] = times.try_emplace(layout, us);
    if (!is_new) place->second = std::min(place->second, us);
  }
  return times;
}

Layout choose_layout(const std::vector<LayoutTimes>& cells, Layout base) {
  LayoutTimes totals;
  if (!cells.empty()) totals = cells.front();
  for (auto& [layout, total] : totals) total = 0;
  for (const LayoutTimes& cell : cells) {
    std::erase_if(totals, [&, &cell = cell](const auto& entry) { return !cell.contains(entry.first); });
    for (auto& [layout, total] : totals) total += cell.at(layout);
  }
  if (totals.empty()) return base;
  const auto best =
      std::min_element(totals.begin(), totals.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto own = totals.find(base);
  const bool is_tie = own != totals.end() && own->second <= best->second * (1 + delta);
  return is_tie ? base : best->first;
}

Choice choose_entry(const Race& race, const std::vector<size_t>& entries,
                    const std::function<Config(size_t)>& config_of, Layout layout) {
  const Config base = config_of(Race::baseline);
  Choice choice;
  choice.noise = noise_of(race.interval(Race::twin));
  choice.words = "default";
  const bool default_fits = layout_of(base) == layout;
  if (entries.empty()) {
    choice.words = default_fits ? "default: nothing else was left" : "default: nothing of the chosen layout was left";
    return choice;
  }
  const size_t fastest = *std::min_element(entries.begin(), entries.end(),
                                           [&](size_t a, size_t b) { return race.point(a) < race.point(b); });
  const std::vector<size_t> tied = tied_with(race, entries, fastest);
  const size_t simplest = *std::min_element(tied.begin(), tied.end(), [&](size_t a, size_t b) {
    const int32_t left = levers_apart(config_of(a), base), right = levers_apart(config_of(b), base);
    return left != right ? left < right : race.point(a) < race.point(b);
  });
  const Interval ratio = race.interval(simplest);
  const Verdict verdict = judge(ratio, choice.noise);
  if (verdict != Verdict::gain && default_fits) {
    choice.words = fmt::format("default: the best other is {} at {:+.2f} % [{:+.2f}, {:+.2f}], noise {:.2f} %",
                               verdict_name(verdict), percent(ratio.point), percent(ratio.low), percent(ratio.high),
                               percent(choice.noise));
    return choice;
  }
  choice.entry = simplest;
  choice.ratio = ratio;
  const std::string ties = tied.size() > 1 ? fmt::format(", simplest of {} tied", tied.size()) : "";
  choice.words = fmt::format("{}: {:+.2f} % [{:+.2f}, {:+.2f}], noise {:.2f} %{}{}", verdict_name(verdict),
                             percent(ratio.point), percent(ratio.low), percent(ratio.high), percent(choice.noise), ties,
                             default_fits ? "" : ", in the shape's layout");
  return choice;
}

}  // namespace fulcrum::tuner
