// The choices at the end: one packed Layout for a shape, and which entry of a confirming race wins, in which words.
//
// Called by race_cells and model_cells, and by tests on synthetic noise.
// Invariant: whatever does not beat the default by more than the A/A twin's noise says default; ties go to the Config
// that pulls the fewest levers; a Layout that was chosen for the whole shape binds, even where it gains
// nothing, and is the default's unless another is faster in total by more than delta.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tuner/cell.hpp"
#include "tuner/race.hpp"
#include "tuner/space.hpp"

namespace fulcrum::tuner {

struct LayoutLess {
  bool operator()(const Layout& a, const Layout& b) const {
    return a.code_word != b.code_word ? a.code_word < b.code_word : a.k_order < b.k_order;
  }
};
using LayoutTimes = std::map<Layout, double, LayoutLess>;  // best microseconds of a cell in each Layout

// Of what was tried, less what the pins do not allow: the default is tried whatever they are.
LayoutTimes times_by_layout(const std::vector<Tried>& tried, const Pins& pins);

// The Layout of least total time, all cells weighing the same, among those that every cell has a time for; `base` where
// there is none.
Layout choose_layout(const std::vector<LayoutTimes>& cells, Layout base);

struct Choice {
  size_t entry = Race::baseline;
  std::string words;
  Interval ratio;
  double noise = 0;
};

// `entries` without the baseline, all of `layout`; config_of(Race::baseline) is the default.
Choice choose_entry(const Race& race, const std::vector<size_t>& entries,
                    const std::function<Config(size_t)>& config_of, Layout layout);

}  // namespace fulcrum::tuner
