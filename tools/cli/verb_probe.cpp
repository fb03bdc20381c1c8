// `fulcrum probe`: the prefill workload as its rate probe reports it, with a table's Configs and the built-in default.
//
// Called by main through add_probe(). Invariant: text and --json come from the same lines; a figure is printed only for
// a kernel that equalled the oracle in the same run.
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_verb.hpp"
#include "cli/verb_measure.hpp"
#include "harness/json_text.hpp"
#include "harness/measure.hpp"
#include "harness/roofs.hpp"
#include "harness/routing_stats.hpp"

namespace fulcrum::cli {
namespace {

using namespace fulcrum::harness;

struct Options {
  std::string table;
  std::vector<uint32_t> tokens{512, 2048, 4096};
  std::string routing;
  std::string dtype = "f16";
  int samples = 40;
  bool json = false;
};

struct Line {
  std::string item;    // gate, up, down; gate_up, down of the fused layer
  std::string source;  // default, or the table and how well it fits
  Measurement measured;
  double floor_us = 0;
};

// One token count: the three projections as probed, then the two of the fused layer; each with both Configs.
struct Case {
  uint32_t tokens = 0;
  RoutingStats stats;
  std::vector<Line> probed, fused;
};

struct Roofs {
  ReadRoof read;
  MatrixRoof matrix;
};

Roofs measure_roofs() {
  RoofMeter meter;
  return {meter.read(), meter.matrix()};
}

std::vector<Line> measure_lines(const Problem& problem, const std::optional<Table>& table, const Options& options,
                                const Roofs& roofs) {
  ProblemOnDevice memory(problem);
  std::vector<Line> lines;
  const auto add = [&](const std::string& source, const Config& config) {
    Line line{problem.item, source, measure(memory, config, options.samples), 0};
    line.floor_us = floor_us(line.measured.size, roofs.read.gbps(), roofs.matrix.tflops);
    lines.push_back(std::move(line));
  };
  if (table) {
    const Choice choice = choose_config(*table, problem, memory.device());
    std::string source = fmt::format("table ({})", match_name(choice.match));
    if (choice.stale) source += ", stale";
    if (choice.other_routing) source += ", other routing";
    add(source, choice.config);
  }
  add("default", default_config(kernel_kind(problem.shape), memory.device().arch));
  return lines;
}

Case measure_case(uint32_t tokens, const std::optional<Table>& table, const Options& options, const Roofs& roofs) {
  const std::optional<DType> dtype = options.dtype == "bf16" ? DType::bf16 : DType::f16;
  Case result;
  result.tokens = tokens;
  for (const Problem& problem : probe_problems(tokens, options.routing, dtype)) {
    result.stats = routing_stats(problem.routing, problem.local());
    for (Line& line : measure_lines(problem, table, options, roofs)) result.probed.push_back(std::move(line));
  }
  for (const Problem& problem : workload_problems("prefill", {std::to_string(tokens)}, options.routing, dtype)) {
    for (Line& line : measure_lines(problem, table, options, roofs)) result.fused.push_back(std::move(line));
  }
  return result;
}

bool is_default(const Line& line) { return line.source == "default"; }

// Sums over the lines of one source.
struct Total {
  double median_us = 0, best_us = 0, flop = 0, bytes = 0, floor_us = 0;
};
Total total_of(const std::vector<Line>& lines, bool of_default) {
  Total total;
  for (const Line& line : lines) {
    if (is_default(line) != of_default) continue;
    total.median_us += line.measured.timing.median_us;
    total.best_us += line.measured.timing.best_us;
    total.flop += line.measured.size.flop;
    total.bytes += static_cast<double>(line.measured.size.weight_bytes);
    total.floor_us += line.floor_us;
  }
  return total;
}

void print_total(const char* name, const char* source, const Total& total) {
  if (total.median_us <= 0) return;
  fmt::print("  {:<9} {:<24} {:>9.4f} {:>9.4f} {:>10.1f} {:>8.1f} {:>8.0f} {:>6} {:>7.2f}\n", name, source,
             total.best_us * 1e-3, total.median_us * 1e-3, total.flop * 1e-9, total.flop / total.median_us * 1e-6,
             total.bytes / total.median_us * 1e-3, "", total.floor_us / total.median_us);
}

void print_lines(const std::vector<Line>& lines, const char* total_name) {
  for (const Line& line : lines) {
    const Measurement& m = line.measured;
    fmt::print("  {:<9} {:<24} {:>9.4f} {:>9.4f} {:>10.1f} {:>8.1f} {:>8.0f} {:>6.3f} {:>7.2f}\n", line.item,
               line.source, m.timing.best_us * 1e-3, m.timing.median_us * 1e-3, m.size.flop * 1e-9, m.tflops(),
               m.gbps(), m.padding, line.floor_us / m.timing.median_us);
  }
  print_total(total_name, "table", total_of(lines, false));
  print_total(total_name, "default", total_of(lines, true));
}

void print_case(const Case& each) {
  fmt::print("\ntokens {}   pairs {}   n_active {}   max_m {}   mean_m {:.2f}  ", each.tokens, each.stats.pairs,
             each.stats.active, each.stats.max_m, each.stats.mean_m);
  for (const uint32_t step : padding_granularities) fmt::print(" pad@{} {:.3f}", step, padding(each.stats, step));
  fmt::print("\n\n  {:<9} {:<24} {:>9} {:>9} {:>10} {:>8} {:>8} {:>6} {:>7}\n", "item", "config", "best ms",
             "median ms", "GFLOP", "TFLOP/s", "GB/s", "pad", "floor/t");
  print_lines(each.probed, "layer");
  fmt::print("\n  fused: activation in the epilogue of gate_up\n");
  print_lines(each.fused, "layer");
  fmt::print("\n");
  for (const std::vector<Line>* lines : {&each.probed, &each.fused}) {
    for (const Line& line : *lines)
      if (!is_default(line)) fmt::print("  {:<9} {}\n", line.item, config_text(line.measured.config));
  }
}

nlohmann::ordered_json lines_json(const std::vector<Line>& lines) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Line& line : lines) {
    const Measurement& m = line.measured;
    json.push_back({{"item", line.item},
                    {"source", line.source},
                    {"config", config_text(m.config)},
                    {"best_ms", m.timing.best_us * 1e-3},
                    {"median_ms", m.timing.median_us * 1e-3},
                    {"ci_ms", m.timing.ci_us * 1e-3},
                    {"samples", m.timing.samples},
                    {"gflop", m.size.flop * 1e-9},
                    {"tflops", m.tflops()},
                    {"gbps", m.gbps()},
                    {"pad", m.padding},
                    {"floor_ms", line.floor_us * 1e-3},
                    {"rel_error", m.rel_error},
                    {"machine", m.machine}});
  }
  return json;
}

nlohmann::ordered_json case_json(const Case& each) {
  nlohmann::ordered_json json{{"tokens", each.tokens},
                              {"pairs", each.stats.pairs},
                              {"n_active", each.stats.active},
                              {"max_m", each.stats.max_m},
                              {"mean_m", each.stats.mean_m}};
  for (const uint32_t step : padding_granularities) json["pad"][std::to_string(step)] = padding(each.stats, step);
  json["probed"] = lines_json(each.probed);
  json["fused"] = lines_json(each.fused);
  for (const bool of_default : {false, true}) {
    const Total probed = total_of(each.probed, of_default), fused = total_of(each.fused, of_default);
    if (probed.median_us <= 0) continue;
    json["layer"][of_default ? "default" : "table"] = {{"probed_median_ms", probed.median_us * 1e-3},
                                                       {"probed_best_ms", probed.best_us * 1e-3},
                                                       {"fused_median_ms", fused.median_us * 1e-3},
                                                       {"fused_best_ms", fused.best_us * 1e-3}};
  }
  return json;
}

int run(const Options& options) {
  std::optional<Table> table;
  if (!options.table.empty()) table = read_table(options.table);
  for (const uint32_t tokens : options.tokens)  // a routing that cannot be is said before a GPU is looked for
    (void)probe_problems(tokens, options.routing);
  const Device device = current_device();
  const Roofs roofs = measure_roofs();
  nlohmann::ordered_json json{{"gpu", device.name},
                              {"workload", "prefill"},
                              {"dtype", options.dtype},
                              {"read_roof_gbps", roofs.read.gbps()},
                              {"matrix_roof_tflops", roofs.matrix.tflops}};
  if (!options.json) {
    fmt::print("prefill on {}: {} rows, one f32 scale a row, 64 values in 36 bytes\n", device.name, options.dtype);
    fmt::print("roofs: read {:.0f} GB/s; matrix {}\n", roofs.read.gbps(),
               roofs.matrix.tflops > 0 ? fmt::format("{:.1f} TFLOP/s", roofs.matrix.tflops)
                                       : "not measured, " + roofs.matrix.problem);
    if (!table) fmt::print("no --table: the built-in default alone\n");
  }
  for (const uint32_t tokens : options.tokens) {
    const Case each = measure_case(tokens, table, options, roofs);
    if (options.json) {
      json["cases"].push_back(case_json(each));
    } else {
      print_case(each);
    }
  }
  if (options.json) fmt::print("{}\n", json_text(json));
  return 0;
}

}  // namespace

void add_probe(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("probe", "The prefill workload's rate probe, with a table and with the default");
  const auto options = std::make_shared<Options>();
  verb->add_option("--table", options->table, "a table that tune wrote")->check(CLI::ExistingFile);
  verb->add_option("--tokens", options->tokens, "token counts, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1u, most_tokens))
      ->capture_default_str();
  verb->add_option("--routing", options->routing,
                   "probe, receipt, uniform, one_hot or trace:PATH; the workload's own: probe");
  verb->add_option("--dtype", options->dtype, "f16 or bf16 rows")
      ->check(CLI::IsMember({"f16", "bf16"}))
      ->capture_default_str();
  verb->add_option("--samples", options->samples, "samples of each figure")
      ->check(CLI::Range(3, 10000))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "GFLOP is useful work, 2 * pairs * k * n; GB/s counts the packed bytes of active experts; pad is rows multiplied "
      "over\n"
      "rows useful; floor/t is the larger of the two roofs' times over the median.");
  verb->callback([options, &exit_code] { exit_code = run_verb("probe", [&] { return run(*options); }); });
}

}  // namespace fulcrum::cli
