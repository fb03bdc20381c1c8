// What a run says at its end: a table for people on stdout, or one JSON document.
//
// Called by tune last.
// Invariant: both forms come from the same results; JSON is the only thing on stdout when it is asked for.
#pragma once

#include "tuner/tune.hpp"

namespace fulcrum::tuner {

void print_summary(const TuneRun& run);

// How much the best Config with each value of a lever loses against the best of all, for levers that move more than
// half a percent: "tile_k 128 best, 64 +21.3 %".
std::vector<std::string> lever_lines(const Cell& cell, size_t most);

}  // namespace fulcrum::tuner
