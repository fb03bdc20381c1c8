// From results to files: the table that engines load and the record of benchmarks.
//
// Called by tune, after every finished group of cells and at the end.
// Invariant: files are replaced whole; rows of an earlier table that this run did not tune again stay.
#pragma once

#include "tuner/tune.hpp"

namespace fulcrum::tuner {

// The table that is already at `path`, or an empty one. Throws InputError for a file that is no table.
Table load_earlier(const std::string& path);

// Writes `earlier` with this run's rows. Throws InputError when the file cannot be written.
void write_table(const TuneRun& run, const Table& earlier);

// Appends this run's measurements to options.records; nothing without that option. Throws InputError.
void write_records(const TuneRun& run);

// Of one cell's result: rates and the percentage of the floor.
struct Rates {
  double tflops = 0, gbps = 0, floor_us = 0, floor_percent = 0;
};
Rates rates_of(const TuneRun& run, const Cell& cell);

}  // namespace fulcrum::tuner
