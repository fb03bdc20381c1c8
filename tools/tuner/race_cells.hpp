// Tuning on a GPU: validate, race, neighbours, one Layout a shape, confirm on fresh samples.
//
// Called by tune once candidates are compiled.
// Invariant: a kernel is checked against the oracle before it is timed for the first time in a cell, and the winner
// again after its last sample; the default and its twin run in every block.
#pragma once

#include <functional>

#include "tuner/tune.hpp"

namespace fulcrum::tuner {

// Calls `group_done` whenever a shape's cells have their results. After an interrupt the cells that were raced and not
// confirmed get a result that says so.
void race_cells(TuneRun& run, const std::function<void()>& group_done);

}  // namespace fulcrum::tuner
