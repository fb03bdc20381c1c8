// `fulcrum tune`: the whole run - cells, candidates, compiles, then a race on a GPU or the model without one.
//
// Called by the verb. Parts: cells (what is tuned), candidates and variants (what is tried), and the steps after them.
// Invariant: the table on disk is whole and loadable at every moment from the first finished shape on, and after an
// interrupt holds everything known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/cell.hpp"
#include "tuner/journal.hpp"
#include "tuner/target.hpp"
#include "tuner/variants.hpp"

namespace fulcrum::tuner {

struct TuneOptions {
  CellRequest cells;
  std::optional<Arch> arch;  // empty: the GPU's, or 90 without one
  double budget_s = 0;       // wall clock; 0: 240 with a GPU, 60 without
  std::string out = "table.tsv";
  std::string records;  // bench/results/<gpu>.tsv; empty: none are written
  std::string journal;  // empty: `out` + ".journal"
  bool json = false;
  int jobs = 0;    // compile workers; 0: one a core
  size_t top = 0;  // candidates per cell; 0: 40 with a GPU, 3 without
  Pins pins{};
};

// Figures of this run's machine that ratios are held against.
struct Roofs {
  double read_gbps = 0;
  double matrix_tflops = 0;
  bool measured = false;
};

struct SpaceTotals {
  uint64_t points = 0, legal = 0, would_spill = 0, no_room = 0;
  std::vector<std::pair<std::string, uint64_t>> reasons;
};

// Everything that the steps share.
struct TuneRun {
  TuneOptions options;
  Target target;
  bool has_gpu = false;
  Roofs roofs;
  std::vector<Cell> cells;
  SpaceTotals space;
  Variants variants;
  PoolOptions pool;
  Journal journal;
  std::string run_id;
  std::string date;
  double begin_s = 0;         // on the steady clock
  uint64_t num_checked = 0;   // kernels held against the oracle, per cell and time
  uint64_t num_wrong = 0;     // of them
  bool failed_check = false;  // a default was wrong, or the GPU failed

  double seconds_used() const;
  double seconds_left() const { return options.budget_s - seconds_used(); }
};

// Runs it; returns the exit code: 0, 2 when nothing was found or a default is wrong, 130 after an interrupt. Throws
// InputError for options that cannot be used.
int tune(const TuneOptions& options);

}  // namespace fulcrum::tuner
