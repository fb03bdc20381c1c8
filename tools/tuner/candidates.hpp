// Which Configs are worth compiling: the cost model over the whole legal space, thinned so that the few differ.
//
// Called by tune for every cell. Levers that the model cannot tell apart stay at their default here (held_levers in
// candidates.cpp); the race's neighbour rounds try them.
// Invariant: needs no GPU and no compiler; the same input gives the same list.
#pragma once

#include <vector>

#include "tuner/cost_model.hpp"
#include "tuner/space.hpp"

namespace fulcrum::tuner {

struct Candidate {
  Config config{};
  Prediction prediction;
};

// The legal points of a kind, enumerated once and shared by its cells.
struct LegalSpace {
  std::vector<Config> configs;
  SpaceCounts counts;
};
LegalSpace legal_space(Arch arch, KernelKind kind, const Pins& pins);

struct Ranking {
  std::vector<Candidate> best;  // fastest first
  size_t legal = 0;             // points that came in
  size_t no_room = 0;           // no block fits an SM
  size_t would_spill = 0;       // the register limit is below what the Config is expected to need
  size_t slower = 0;            // the rest
};

// The `top` best by the model. Of Configs that share tiles, warps, copies and layout at most three stay, with different
// stages; equal predictions are represented by the one nearest to the default, and every layout keeps at least a tenth
// of the places.
Ranking rank(const LegalSpace& space, CostModel& model, KernelKind kind, Arch arch, size_t top);

}  // namespace fulcrum::tuner
