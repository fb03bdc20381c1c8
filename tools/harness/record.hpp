// The record of benchmarks: one line per measurement in bench/results/<gpu>.tsv, a file that is committed.
//
// Called by bench; read by whatever renders tables from it.
// Invariant: a file has the one header below; a number that was not measured is an empty field; lines are only ever
// appended, so a file is a history and the last line of a key is its newest figure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fulcrum::harness {

struct Record {
  std::string workload;   // prefill, decode, models, repack, jit ...
  std::string case_name;  // 512, K0, or a shape
  std::string routing;
  std::string item;    // gate, up, down, gate_up, two_gemms ...
  std::string config;  // canonical text; several kernels joined by " + "
  std::string dtype;
  std::optional<double> median_us, best_us, ci_us;  // ci: half of the 95 % interval of the median
  std::optional<double> floor_us, ratio;            // ratio: floor / median
  std::optional<double> tflops, gbps;
  std::optional<double> read_roof_gbps, matrix_roof_tflops;
  std::optional<double> rel_error;
  std::optional<uint64_t> samples;
  std::string machine;  // hash of the machine code, with the version of ptxas
  std::string date;     // ISO 8601, UTC
};

// Column names in order, separated by tabs.
std::string record_header();

// One line without its end. Throws InputError for a text field with a tab or a line end in it.
std::string record_line(const Record& record);

// Reads a line of a file with the present header. Throws InputError with `where` ("path:line") in front.
Record parse_record(const std::string& line, const std::string& where);

// All records of a file; none when there is no such file. Throws InputError.
std::vector<Record> read_records(const std::string& path);

// Does the history hold a figure of this key (workload, case, routing, item, dtype) with the same Config?
bool is_recorded(const std::vector<Record>& history, const Record& key);

// Appends to the file, which is made with its header when it does not exist; its folder must. Throws InputError.
void append_records(const std::string& path, const std::vector<Record>& records);

// "NVIDIA H200" -> "h200": the file's name without .tsv.
std::string gpu_file_name(const std::string& gpu);

// The present time, "2026-11-30T21:50:00Z".
std::string date_now();

}  // namespace fulcrum::harness
