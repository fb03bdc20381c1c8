// `fulcrum show`: a best-config table for people, or as JSON. Needs no GPU.
//
// Called by main. Invariant: shows what the library would read, warnings included; nothing is guessed.
#include <fulcrum/host/table.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli/run_verb.hpp"
#include "cli/verb_tuner.hpp"
#include "harness/input_error.hpp"
#include "harness/json_text.hpp"
#include "harness/workload.hpp"
#include "tuner/space.hpp"

namespace fulcrum::cli {
namespace {

using harness::InputError;
using harness::Workload;
using Json = nlohmann::ordered_json;

struct Options {
  std::string path;
  std::string workload;
  std::string case_name;
  bool json = false;
};

struct Place {
  std::string workload = "-";
  std::string case_name;
};

// Which cell of a reference workload a row is; rows of other shapes go by their token count.
Place place_of(const Row& row) {
  Place place;
  place.case_name = row.tokens_first == row.tokens_last ? std::to_string(row.tokens_first)
                                                        : fmt::format("{}-{}", row.tokens_first, row.tokens_last);
  for (const Workload& workload : harness::workloads) {
    const Shape& shape = row.shape;
    const bool is_gate_up =  // or one of the two, as the rate probe has them
        (shape.n == 2 * workload.intermediate || shape.n == workload.intermediate) && shape.k == workload.hidden;
    const bool is_down = shape.n == workload.hidden && shape.k == workload.intermediate;
    const bool same_experts = shape.experts == workload.experts && shape.local_experts == workload.local.count;
    if (!(is_gate_up || is_down) || !same_experts || shape.top_k != workload.top_k) continue;
    place.workload = workload.name;
    for (const harness::WorkloadCase& each : workload.cases) {
      if (each.tokens == row.tokens_first && each.tokens == row.tokens_last) place.case_name = each.name;
    }
  }
  return place;
}

std::string change_text(const Row& row) {
  return row.default_us > 0 ? fmt::format("{:+.1f} %", 100 * (row.median_us / row.default_us - 1)) : "";
}

std::string source_text(const Row& row) {
  return std::string(row.source == Source::modelled ? "modelled" : "measured") + (row.stale ? ", stale" : "");
}

// Columns as wide as their widest cell, numbers to the right.
void print_aligned(const std::vector<std::vector<std::string>>& lines, size_t num_left) {
  std::vector<size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (size_t column = 0; column < line.size(); ++column)
      widths[column] = std::max(widths[column], line[column].size());
  }
  for (const auto& line : lines) {
    std::string text;
    for (size_t column = 0; column < line.size(); ++column) {
      const bool is_last = column + 1 == line.size();
      if (column < num_left || is_last) {
        text += fmt::format("{:<{}}", line[column], is_last ? 0 : widths[column]);
      } else {
        text += fmt::format("{:>{}}", line[column], widths[column]);
      }
      if (!is_last) text += "  ";
    }
    fmt::print("{}\n", text);
  }
}

// Of the machine that the row was measured on, or modelled for.
Arch arch_of(const Table& table, const Row& row) {
  const char* cc = table.find_provenance(row.run.c_str(), key_compute_capability);
  return {cc != nullptr ? std::atoi(cc) : 0};
}

void print_text(const Table& table, const std::vector<const Row*>& rows) {
  for (const Provenance& line : table.provenance()) {
    if (line.run.empty()) continue;
    fmt::print("{}  {}: {}\n", line.run, line.key, line.value);
  }
  fmt::print("\n");
  std::vector<std::vector<std::string>> lines = {{"workload", "case", "item", "dtype", "routing", "n", "k", "us",
                                                  "95 % interval", "default", "change", "TFLOP/s", "GB/s", "floor",
                                                  "regs", "smem", "blocks", "how",
                                                  "config: code_word, k_order, then what differs from the default"}};
  for (const Row* row : rows) {
    const Place place = place_of(*row);
    const Config base = default_config(kernel_kind(row->shape), arch_of(table, *row));
    const std::string layout =
        fmt::format("{}, {}", value_name(row->config.code_word), value_name(row->config.k_order));
    lines.push_back(
        {place.workload, place.case_name, value_name(row->shape.projection), value_name(row->shape.dtype), row->routing,
         std::to_string(row->shape.n), std::to_string(row->shape.k), fmt::format("{:.1f}", row->median_us),
         fmt::format("{:.1f}..{:.1f}", row->ci_low_us, row->ci_high_us), fmt::format("{:.1f}", row->default_us),
         change_text(*row), fmt::format("{:.0f}", row->tflops), fmt::format("{:.0f}", row->gbps),
         fmt::format("{:.1f} %", row->roof_percent), std::to_string(row->registers), std::to_string(row->shared_bytes),
         std::to_string(row->blocks_per_sm), source_text(*row),
         layout + "; " + tuner::difference_text(row->config, base)});
  }
  print_aligned(lines, 5);
  fmt::print("\nhow each was chosen\n");
  for (const Row* row : rows) {
    const Place place = place_of(*row);
    fmt::print("  {} {} {}: {}\n", place.workload, place.case_name, value_name(row->shape.projection), row->chosen);
  }
  for (const std::string& warning : table.warnings()) fmt::print(stderr, "warning: {}\n", warning);
}

void print_json(const Table& table, const std::vector<const Row*>& rows) {
  Json json;
  json["provenance"] = Json::object();
  for (const Provenance& line : table.provenance()) json["provenance"][line.run][line.key] = line.value;
  json["warnings"] = table.warnings();
  json["rows"] = Json::array();
  for (const Row* row : rows) {
    const Place place = place_of(*row);
    json["rows"].push_back({{"workload", place.workload},
                            {"case", place.case_name},
                            {"run", row->run},
                            {"shape", shape_text(row->shape)},
                            {"tokens_first", row->tokens_first},
                            {"tokens_last", row->tokens_last},
                            {"routing", row->routing},
                            {"config", tuner::config_text(row->config)},
                            {"median_us", row->median_us},
                            {"ci_low_us", row->ci_low_us},
                            {"ci_high_us", row->ci_high_us},
                            {"samples", row->samples},
                            {"default_us", row->default_us},
                            {"tflops", row->tflops},
                            {"gbps", row->gbps},
                            {"roof_percent", row->roof_percent},
                            {"registers", row->registers},
                            {"shared_bytes", row->shared_bytes},
                            {"blocks_per_sm", row->blocks_per_sm},
                            {"chosen", row->chosen},
                            {"source", row->source == Source::modelled ? "modelled" : "measured"},
                            {"stale", row->stale}});
  }
  fmt::print("{}\n", harness::json_text(json));
}

int run(const Options& options) {
  const Result<Table> table = Table::load(options.path.c_str());
  if (!table.ok()) throw InputError(fmt::format("{}: {}", options.path, message(table.status())));
  std::vector<const Row*> rows;
  for (const Row& row : table->rows()) {
    const Place place = place_of(row);
    const bool wanted = (options.workload.empty() || options.workload == place.workload) &&
                        (options.case_name.empty() || options.case_name == place.case_name);
    if (wanted) rows.push_back(&row);
  }
  if (rows.empty())
    fmt::print(stderr, "fulcrum show: none of the {} rows of {} fits\n", table->rows().size(), options.path);
  if (options.json) {
    print_json(*table, rows);
  } else if (!rows.empty()) {
    print_text(*table, rows);
  }
  return rows.empty() ? 2 : 0;
}

}  // namespace

void add_show(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("show", "Prints a best-config table");
  const auto options = std::make_shared<Options>();
  verb->add_option("table", options->path, "the table")->required();
  verb->add_option("--workload", options->workload, "only rows of prefill or decode")
      ->check(CLI::IsMember({"prefill", "decode"}));
  verb->add_option("--case", options->case_name, "only rows of one case: 512, K3, or a token count");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer("Exit codes: 0 done; 1 wrong usage, or no table; 2 no row fits.");
  verb->callback([options, &exit_code] { exit_code = run_verb("show", [&] { return run(*options); }); });
}

}  // namespace fulcrum::cli
