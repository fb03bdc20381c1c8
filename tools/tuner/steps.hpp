// The steps of a run that come after compiling: results by racing or by the model, then files and words.
//
// Called by tune, in this order. race_cells.cpp, model_cells.cpp, results.cpp and summary.cpp hold one each.
// Invariant: a step reads and fills TuneRun and nothing else; each says below what it promises.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tuner/tune.hpp"

namespace fulcrum::tuner {

// With a GPU: validate, race, neighbours, one Layout a shape, confirm on fresh samples. A kernel is checked against the
// oracle before it is timed for the first time in a cell, and the winner again after its last sample; the default and
// its twin run in every block. Calls `group_done` whenever a shape's cells have their results. After an interrupt,
// cells that were raced and not confirmed get a result that says so.
void race_cells(TuneRun& run, const std::function<void()>& group_done);

// Without a GPU: the cost model again, with registers, spills and occupancy of what was really compiled. Every result
// says that it is modelled. Needs no CUDA driver. May be called again when variants were dropped.
void model_cells(TuneRun& run);

// Without a GPU, after model_cells: runs the twenty best of the ranking on the CPU emulator against the oracle, for at
// most another budget's seconds. One that is wrong is dropped, and the cells are modelled again without it. Every
// result says whether its kernel was run.
void emulate_best(TuneRun& run);

// Throws InputError when what is at `path` is no table, or when no table could be written there.
void check_out(const std::string& path);

// Writes this run's rows into the table that is at options.out at that moment, in one rename: rows that this run did
// not tune again stay, those of a run that goes on at the same time too. Throws InputError when the file cannot be
// written; when it is no table any more, this run's rows are saved beside it first.
void write_table(const TuneRun& run);

// Appends this run's measurements to options.records; nothing without that option. Throws InputError.
void write_records(const TuneRun& run);

// A table for people on stdout, or one JSON document and nothing else.
void print_summary(const TuneRun& run);

// Of one cell's result: rates and the percentage of the floor.
struct Rates {
  double tflops = 0, gbps = 0, floor_us = 0, floor_percent = 0;
};
Rates rates_of(const TuneRun& run, const Cell& cell);

// How much the best Config with each value of a lever loses against the best of all, for levers that move more than
// delta, the strongest first: "tile_k=128 best, 64 +21.3 %". Nothing while too few Configs were tried to tell levers
// apart.
std::vector<std::string> lever_lines(const Cell& cell, size_t most);

// How good the cost model's ranking was: the fastest timed Config of its first ten over the fastest timed at all,
// less 1. Nothing while too few Configs were timed, or where none of the ten was.
std::optional<double> model_loss(const Cell& cell);

}  // namespace fulcrum::tuner
