// Totals by Layout. Invariant: see layout_choice.hpp.
#include "tuner/layout_choice.hpp"

#include <algorithm>

#include "tuner/statistics.hpp"

namespace fulcrum::tuner {

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

}  // namespace fulcrum::tuner
