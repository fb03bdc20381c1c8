// `fulcrum roof`: what this GPU reads, copies and multiplies at best.
//
// Called by main through add_roof(). Invariant: text and --json come from the same measurements; without cuBLAS the
// matrix roof is left out, and the reason printed.
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

#include "cli/run_verb.hpp"
#include "cli/verb_measure.hpp"
#include "harness/json_text.hpp"
#include "harness/jit_kernels.hpp"
#include "harness/problem.hpp"
#include "harness/roofs.hpp"

namespace fulcrum::cli {
namespace {

using namespace fulcrum::harness;

struct Options {
  std::vector<uint64_t> bytes;  // besides the whole buffer and the workloads' layers
  bool json = false;
};

struct NamedRead {
  std::string name;
  ReadRoof roof;
};

// The packed bytes that the two GEMMs of a case read.
std::vector<std::pair<std::string, uint64_t>> layer_bytes() {
  std::vector<std::pair<std::string, uint64_t>> layers;
  for (const char* workload : {"prefill", "decode"}) {
    for (const Problem& problem : workload_problems(workload, {})) {
      const std::string name = problem.workload + " " + problem.case_name;
      if (layers.empty() || layers.back().first != name) layers.emplace_back(name, 0);
      layers.back().second += problem_size(problem).weight_bytes;
    }
  }
  return layers;
}

void print_text(const Device& device, const std::vector<NamedRead>& reads, double copy_gbps, const MatrixRoof& matrix) {
  fmt::print("{}, {} SMs\n\n{:<16} {:>14} {:>10} {:>9} {:>10}\n", device.name, device.num_sms, "read", "bytes", "us",
             "GB/s", "blocks/SM");
  for (const NamedRead& read : reads) {
    fmt::print("{:<16} {:>14} {:>10.1f} {:>9.0f} {:>10}\n", read.name, read.roof.bytes, read.roof.median_us,
               read.roof.gbps(), read.roof.blocks_per_sm);
  }
  fmt::print("\ncopy, read + write: {:.0f} GB/s\n", copy_gbps);
  if (matrix.tflops > 0) {
    fmt::print("matrix, bf16 8192^3 by {}: {:.1f} TFLOP/s\n", matrix.library, matrix.tflops);
  } else {
    fmt::print("matrix: not measured, {}\n", matrix.problem);
  }
}

void print_json(const Device& device, const std::vector<NamedRead>& reads, double copy_gbps, const MatrixRoof& matrix) {
  nlohmann::ordered_json json;
  json["gpu"] = device.name;
  json["sms"] = device.num_sms;
  for (const NamedRead& read : reads) {
    json["read"].push_back({{"name", read.name},
                            {"bytes", read.roof.bytes},
                            {"median_us", read.roof.median_us},
                            {"gbps", read.roof.gbps()},
                            {"blocks_per_sm", read.roof.blocks_per_sm}});
  }
  json["copy_gbps"] = copy_gbps;
  if (matrix.tflops > 0) {
    json["matrix_tflops"] = matrix.tflops;
    json["matrix_library"] = matrix.library;
  } else {
    json["matrix_tflops"] = nullptr;
    json["matrix_problem"] = matrix.problem;
  }
  fmt::print("{}\n", json_text(json));
}

int run(const Options& options) {
  const Device device = current_device();
  RoofMeter meter;
  std::vector<NamedRead> reads{{"large", meter.read()}};
  for (const auto& [name, bytes] : layer_bytes()) reads.push_back({name, meter.read_bytes(bytes)});
  for (const uint64_t bytes : options.bytes) reads.push_back({"given", meter.read_bytes(bytes)});
  const double copy_gbps = meter.copy_gbps();
  const MatrixRoof matrix = meter.matrix();
  (options.json ? print_json : print_text)(device, reads, copy_gbps, matrix);
  return 0;
}

}  // namespace

void add_roof(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("roof", "Measures this GPU's read, copy and matrix roofs");
  const auto options = std::make_shared<Options>();
  verb->add_option("--bytes", options->bytes, "more sizes to read, in bytes, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(uint64_t{1} << 16, uint64_t{1} << 40));
  verb->add_flag("--json", options->json, "print JSON");
  verb->callback([options, &exit_code] { exit_code = run_verb("roof", [&] { return run(*options); }); });
}

}  // namespace fulcrum::cli
