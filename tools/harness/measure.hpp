// One measured figure: a Config on a problem, proved right and then timed.
//
// Called by probe and bench, which print and record it.
// Invariant: nothing is timed that was not checked first; a kernel that is wrong is an exception that names the first
// difference, never a figure.
#pragma once

#include <fulcrum/host/table.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "harness/jit_kernels.hpp"
#include "harness/problem_on_device.hpp"
#include "harness/timer.hpp"

namespace fulcrum::harness {

struct Timing {
  double median_us = 0;
  double best_us = 0;
  double ci_us = 0;  // half of the 95 % interval of the median
  uint64_t samples = 0;
};

// Statistics of samples in microseconds, at least one.
Timing timing_of(const std::vector<double>& samples_us);

// One warm-up replay, then `samples` samples.
Timing time_samples(GraphTimer& timer, int samples);

struct Measurement {
  Config config;
  ProblemSize size;
  Timing timing;
  double rel_error = 0;
  double padding = 1;   // rows multiplied over rows useful, tiles rounded up to token_granularity
  std::string machine;  // hash of the machine code

  double tflops() const { return size.flop / timing.median_us * 1e-6; }
  // of the packed bytes of active experts
  double gbps() const { return static_cast<double>(size.weight_bytes) / timing.median_us * 1e-3; }
};

// Compiles, checks and times. Throws InputError, DeviceError, or std::runtime_error for a wrong result.
Measurement measure(ProblemOnDevice& problem, const Config& config, int samples);

// gate_up and down one after the other in one graph, down reading what gate_up wrote. Both must be checked already,
// have pair-ordered rows between them, and be on one device. Times are of both together.
Timing measure_two_gemms(ProblemOnDevice& gate_up, const Config& gate_up_config, ProblemOnDevice& down,
                         const Config& down_config, int samples);

// What a table says about a problem: its layout for the shape, then its Config for the token count.
Choice choose_config(const Table& table, const Problem& problem, const Device& device);

// Reads a table; throws InputError with the file's words. Prints its warnings on stderr, once.
Table read_table(const std::string& path);

}  // namespace fulcrum::harness
