// Tuning without a GPU: the cost model, with registers, spills and occupancy of what was really compiled.
//
// Called by tune when there is no GPU, or when it is asked for another architecture than the GPU's.
// Invariant: every result says that it is modelled, and was compiled for the target; needs no CUDA driver.
#pragma once

#include "tuner/tune.hpp"

namespace fulcrum::tuner {

void model_cells(TuneRun& run);

}  // namespace fulcrum::tuner
