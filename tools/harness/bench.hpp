// The benchmarks whose figures are kept: one question a call, one Record a figure.
//
// Called by the verb bench. Invariant: every Record was measured in this call, beside roofs of this call; ratios use
// the larger of this call's roof and 0.98 of the best on record for the same workload, case and item.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure.hpp"
#include "harness/models.hpp"
#include "harness/record.hpp"

namespace fulcrum::harness {

struct BenchRequest {
  std::string workload;            // prefill, decode, models or growth
  std::vector<std::string> cases;  // empty: all
  SweepRequest sweep;              // models, in place of cases
  bool resume = false;             // a sweep: leave out what `history` has with the same Config
  std::string routing;             // empty: the workload's own
  std::optional<DType> dtype;      // empty: the workload's own
  std::optional<Table> table;      // none: the built-in default everywhere
  std::optional<Config> config;    // in place of both, where it is legal
  int samples = 40;
  std::vector<Record> history;  // what the results file holds already
};

// Called with each Record as it is made.
using Report = std::function<void(const Record&)>;

// gate_up, down and two_gemms of every case; prefill also gate, up and down as probed ("down_probed").
void bench_workload(const BenchRequest& request, const Report& report);

// What a sweep tells its caller.
struct SweepEvents {
  std::function<bool(size_t done, size_t total, const Problem& next)> before;    // false ends the sweep
  std::function<void(const Problem& problem, const std::string& why)> left_out;  // not measured
};

// The first GEMM and down of every model, or of every layer of growth_problems(), each alone on the GPU while it is
// measured. A cell that needs more memory than there is, or has no right kernel, is left out and the sweep goes on.
// Returns how many had no right kernel.
size_t bench_sweep(const BenchRequest& request, const SweepEvents& events, const Report& report);

// Packing on the GPU, both directions, for the weights of both workloads.
void bench_repack(int samples, const Report& report);

// NVRTC: the Config, or each kind's default, compiled without a cache ("cold") and loaded from one ("warm"), for every
// kind that it is legal for. Needs no GPU.
void bench_jit(Arch arch, const std::optional<Config>& config, int samples, const std::function<bool()>& stopped,
               const Report& report);

}  // namespace fulcrum::harness
