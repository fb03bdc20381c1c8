// `fulcrum routing`: active experts, rows per expert, padding per granularity and skew of a routing.
//
// Called by main through add_routing(). Needs no GPU.
// Invariant: the table and --json come from the same rows, and the table has the columns of the reference workloads.
#include "cli/verb_routing.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

#include "cli/run_verb.hpp"
#include "harness/input_error.hpp"
#include "harness/json_text.hpp"
#include "harness/routing.hpp"
#include "harness/routing_stats.hpp"
#include "harness/workload.hpp"

namespace fulcrum::cli {
namespace {

using namespace fulcrum::harness;

struct Options {
  std::string workload = "prefill";
  std::string routing;           // empty: the workload's own
  std::vector<uint32_t> tokens;  // empty: the workload's cases
  uint32_t experts = 0;          // 0: the workload's, or for a trace what the file has
  uint32_t top_k = 0;            // likewise
  uint32_t first_expert = 0;
  uint32_t local_experts = 0;         // 0: the workload's, or all when sizes are given
  std::vector<uint32_t> granularity;  // empty: 8 to 256
  bool json = false;
};

struct Row {
  std::string name;  // of the case: K0, 512
  Routing routing;
  RoutingStats stats;
  TraceReport trace;
};

struct Table {
  RoutingSpec spec;
  uint32_t experts = 0;
  uint32_t top_k = 0;
  ExpertRange local;
  std::vector<Row> rows;
};

// Sizes that the user did not give are the workload's; a trace brings its own, unless the user insists.
RoutingSize size_of(const Options& options, const Workload& workload, RoutingKind kind) {
  RoutingSize size{0, options.experts, options.top_k};
  if (kind == RoutingKind::trace) return size;
  if (size.experts == 0) size.experts = workload.experts;
  if (size.top_k == 0) size.top_k = workload.top_k;
  return size;
}

ExpertRange range_of(const Options& options, const Workload& workload, uint32_t experts) {
  const bool as_workload = experts == workload.experts && options.first_expert == 0 && options.local_experts == 0;
  if (as_workload) return workload.local;
  if (options.first_expert >= experts) {
    throw InputError(fmt::format("--first-expert {} must be below the {} experts", options.first_expert, experts));
  }
  const uint32_t rest = experts - options.first_expert;
  if (options.local_experts > rest) {
    throw InputError(fmt::format("--first-expert {} and --local-experts {} reach past the {} experts",
                                 options.first_expert, options.local_experts, experts));
  }
  return {options.first_expert, options.local_experts == 0 ? rest : options.local_experts};
}

Table compute(const Options& options) {
  const Workload* workload = find_workload(options.workload);
  if (workload == nullptr) {
    throw InputError(fmt::format("workload '{}' is not one of prefill, decode", options.workload));
  }
  Table table;
  table.spec.kind = workload->routing;
  if (!options.routing.empty()) table.spec = parse_routing_spec(options.routing);
  RoutingSize size = size_of(options, *workload, table.spec.kind);
  std::vector<std::pair<std::string, uint32_t>> cases;
  for (const uint32_t tokens : options.tokens) cases.emplace_back(std::to_string(tokens), tokens);
  if (cases.empty()) {
    for (const WorkloadCase& each : workload->cases) cases.emplace_back(each.name, each.tokens);
  }
  for (const auto& [name, tokens] : cases) {
    size.tokens = tokens;
    Row row{name, {}, {}, {}};
    row.routing = make_routing(table.spec, size, &row.trace);
    table.experts = row.routing.experts;
    table.top_k = row.routing.top_k;
    table.local = range_of(options, *workload, table.experts);
    row.stats = routing_stats(row.routing, table.local);
    table.rows.push_back(std::move(row));
  }
  return table;
}

nlohmann::ordered_json trace_json(const TraceReport& report) {
  nlohmann::ordered_json json;
  json["form"] = report.form == TraceForm::tokens ? "tokens" : "counts";
  if (report.layer) json["layer"] = *report.layer;
  json["rows"] = report.rows;
  json["warm_up_rows"] = report.warm_up_rows;
  if (report.warm_up_rows > 0) json["warm_up_line"] = report.warm_up_line;
  json["repeated"] = report.repeated;
  return json;
}

void print_json(const Options& options, const Table& table, const std::vector<uint32_t>& granularity) {
  nlohmann::ordered_json json;
  json["workload"] = options.workload;
  json["routing"] = table.rows.empty() ? spec_text(table.spec) : table.rows.front().routing.name;
  json["experts"] = table.experts;
  json["top_k"] = table.top_k;
  json["first_expert"] = table.local.first;
  json["local_experts"] = table.local.count;
  json["cases"] = nlohmann::ordered_json::array();
  for (const Row& row : table.rows) {
    const RoutingStats& stats = row.stats;
    nlohmann::ordered_json each{{"case", row.name},       {"tokens", row.routing.tokens},
                                {"pairs", stats.pairs},   {"local_pairs", stats.local_pairs},
                                {"active", stats.active}, {"max_m", stats.max_m},
                                {"mean_m", stats.mean_m}, {"min_m", stats.min_m},
                                {"skew", stats.skew},     {"hash", fmt::format("{:016x}", routing_hash(row.routing))}};
    for (const uint32_t step : granularity) each["pad"][std::to_string(step)] = padding(stats, step);
    if (table.spec.kind == RoutingKind::trace) each["trace"] = trace_json(row.trace);
    each["rows_per_expert"] = stats.rows;
    json["cases"].push_back(std::move(each));
  }
  fmt::print("{}\n", json_text(json));
}

// What the reader of a trace must know about the batches that follow.
void print_trace_notes(const Table& table) {
  for (const Row& row : table.rows) {
    const TraceReport& report = row.trace;
    if (report.warm_up_rows > 0 && &row == &table.rows.front()) {
      fmt::print("warm-up: {} rows from line {} on all name the same experts and were left out\n", report.warm_up_rows,
                 report.warm_up_line);
    }
    if (report.repeated) {
      fmt::print("repeated: {} tokens is more than the {} rows recorded; the recording was read again from its start\n",
                 row.routing.tokens, report.rows);
    }
  }
}

void print_text(const Table& table, const std::vector<uint32_t>& granularity) {
  if (table.rows.empty()) return;
  fmt::print("routing {}   experts {}   top_k {}   local experts {}..{}\n", table.rows.front().routing.name,
             table.experts, table.top_k, table.local.first, table.local.first + table.local.count - 1);
  print_trace_notes(table);
  const bool all_local = table.local.count == table.experts;
  if (all_local) {
    fmt::print("\n{:>6} {:>7} {:>6} {:>6} {:>8} {:>6}", "tokens", "pairs", "active", "max_m", "mean_m", "min_m");
    for (const uint32_t step : granularity) fmt::print(" {:>7}", fmt::format("pad@{}", step));
    fmt::print(" {:>6}  {}\n", "skew", "hash");
  } else {
    fmt::print("\n{:>6} {:>6} {:>12} {:>20} {:>17} {:>6}  {}\n", "case", "rows", "local routes", "unique local experts",
               "routes per expert", "skew", "hash");
  }
  for (const Row& row : table.rows) {
    const RoutingStats& stats = row.stats;
    if (all_local) {
      fmt::print("{:>6} {:>7} {:>6} {:>6} {:>8.2f} {:>6}", row.routing.tokens, stats.pairs, stats.active, stats.max_m,
                 stats.mean_m, stats.min_m);
      for (const uint32_t step : granularity) fmt::print(" {:>7.3f}", padding(stats, step));
    } else {
      fmt::print("{:>6} {:>6} {:>12} {:>20} {:>17}", row.name, row.routing.tokens, stats.local_pairs, stats.active,
                 fmt::format("{} / {:.2f} / {}", stats.min_m, stats.mean_m, stats.max_m));
    }
    fmt::print(" {:>6.2f}  {:016x}\n", stats.skew, routing_hash(row.routing));
  }
  if (!all_local) fmt::print("routes per expert: least / mean / most over experts that have any\n");
}

int run(const Options& options) {
  const Table table = compute(options);
  std::vector<uint32_t> granularity = options.granularity;
  if (granularity.empty()) granularity.assign(std::begin(padding_granularities), std::end(padding_granularities));
  if (options.json) {
    print_json(options, table, granularity);
  } else {
    print_text(table, granularity);
  }
  return 0;
}

}  // namespace

void add_routing(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("routing", "Statistics of a routing: active experts, rows, padding, skew");
  const auto options = std::make_shared<Options>();
  verb->add_option("--workload", options->workload, "prefill or decode: sizes, token counts and routing")
      ->capture_default_str();
  verb->add_option("--routing", options->routing,
                   "probe, receipt, decode, uniform, one_hot or trace:PATH[:layer=L][:seed=S][:runs=R]");
  verb->add_option("--tokens", options->tokens, "token counts, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(0u, most_tokens));
  verb->add_option("--experts", options->experts, "experts of the global id space")->check(CLI::Range(1, 65536));
  verb->add_option("--top-k", options->top_k, "experts per token")->check(CLI::Range(1, 32));
  verb->add_option("--first-expert", options->first_expert, "first expert of this rank");
  verb->add_option("--local-experts", options->local_experts,
                   "experts of this rank; 0: the workload's, or all from the first on");
  verb->add_option("--granularity", options->granularity, "token steps of the padding columns, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536));
  verb->add_flag("--json", options->json, "print JSON, with the rows of every expert");
  verb->callback([options, &exit_code] { exit_code = run_verb("routing", [&] { return run(*options); }); });
}

}  // namespace fulcrum::cli
