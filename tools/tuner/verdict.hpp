// Which entry of a confirming race wins, and in which words.
//
// Called by race_cells, and by tests on synthetic noise.
// Invariant: whatever does not beat the default by more than the A/A twin's noise says default; ties go to the Config
// that pulls the fewest levers; a Layout that was chosen for the whole shape binds, even where it gains nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tuner/race.hpp"
#include "tuner/space.hpp"

namespace fulcrum::tuner {

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
