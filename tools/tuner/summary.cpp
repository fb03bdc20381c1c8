// The end of a run in words and in JSON. Invariant: see steps.hpp.
#include "tuner/steps.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/json_text.hpp"

namespace fulcrum::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t levers_most = 4;  // in a cell's summary line
constexpr size_t tried_least = 8;  // Configs: of fewer, every lever seems to make the difference
constexpr size_t model_first = 10;
constexpr double model_good = 0.10;

double percent(double log_ratio) { return 100 * std::expm1(log_ratio); }

Json cell_json(const TuneRun& run, const Cell& cell) {
  const harness::Problem& problem = cell.problem;
  Json json{{"workload", problem.workload},       {"case", problem.case_name},        {"item", problem.item},
            {"shape", shape_text(problem.shape)}, {"tokens", problem.routing.tokens}, {"routing", problem.routing.name},
            {"tried", cell.tried.size()}};
  if (!cell.result) {
    json["problem"] = cell.problem_words;
    return json;
  }
  const CellResult& result = *cell.result;
  const Rates rates = rates_of(run, cell);
  json["config"] = config_text(result.config);
  json["source"] = result.source == Source::modelled ? "modelled" : "measured";
  json["chosen"] = result.chosen;
  json["median_us"] = result.median_us.point;
  json["ci_us"] = {result.median_us.low, result.median_us.high};
  json["default_us"] = result.default_us;
  json["change_percent"] = {percent(result.ratio.low), percent(result.ratio.point), percent(result.ratio.high)};
  json["noise_percent"] = percent(result.noise);
  json["samples"] = result.samples;
  json["floor_us"] = rates.floor_us;
  json["floor_percent"] = rates.floor_percent;
  json["registers"] = result.registers;
  json["blocks_per_sm"] = result.blocks_per_sm;
  json["rel_error"] = result.rel_error;
  json["machine"] = result.machine;
  json["levers"] = lever_lines(cell, num_levers);
  if (run.has_gpu) {
    if (const std::optional<double> loss = model_loss(cell)) json["model_loss_percent"] = 100 * *loss;
  }
  return json;
}

void print_json(const TuneRun& run) {
  Json json{{"run", run.run_id},
            {"gpu", run.target.device.name},
            {"arch", arch_name(run.target.device.arch)},
            {"measured", run.has_gpu},
            {"table", run.options.out},
            {"seconds", run.seconds_used()},
            {"read_roof_gbps", run.roofs.read_gbps},
            {"matrix_roof_tflops", run.roofs.matrix_tflops}};
  json["space"] = {{"points", run.space.points},
                   {"legal", run.space.legal},
                   {"would_spill", run.space.would_spill},
                   {"no_room", run.space.no_room}};
  for (const auto& [reason, count] : run.space.reasons) json["space"]["reasons"][reason] = count;
  const CompileTotals& totals = run.variants.totals();
  json["compile"] = {{"asked", totals.asked},
                     {"compiled", totals.compiled},
                     {"from_cache", totals.from_cache},
                     {"failed", totals.failed},
                     {"spilled", totals.spilled},
                     {"duplicates", totals.duplicates},
                     {"seconds", totals.compile_seconds}};
  json["checked"] = run.num_checked;
  json["wrong"] = run.num_wrong;
  json["cells"] = Json::array();
  for (const Cell& cell : run.cells) json["cells"].push_back(cell_json(run, cell));
  fmt::print("{}\n", harness::json_text(json));
}

void print_cell(const TuneRun& run, const Cell& cell) {
  const harness::Problem& problem = cell.problem;
  fmt::print("{:<8} {:>5} {:<8} {:<4} ", problem.workload, problem.case_name, problem.item,
             value_name(problem.shape.dtype));
  if (!cell.result) {
    fmt::print("no result: {}\n", cell.problem_words.empty() ? "not reached" : cell.problem_words);
    return;
  }
  const CellResult& result = *cell.result;
  const Rates rates = rates_of(run, cell);
  fmt::print("{:>8.1f} us  default {:>8.1f}  {:>+7.1f} %  {:>5.1f} % of floor  {:>5.0f} TFLOP/s {:>5.0f} GB/s{}\n",
             result.median_us.point, result.default_us, percent(result.ratio.point), rates.floor_percent, rates.tflops,
             rates.gbps, result.source == Source::modelled ? "  modelled" : "");
  fmt::print("    {} | {} regs, {} blocks an SM | {}\n", difference_text(result.config, cell.base()), result.registers,
             result.blocks_per_sm, result.chosen);
  for (const std::string& line : lever_lines(cell, levers_most)) fmt::print("      {}\n", line);
}

// Whether compiling only the model's first ten would have done.
void print_model(const TuneRun& run) {
  size_t num_known = 0, num_good = 0;
  std::string losses;
  for (const Cell& cell : run.cells) {
    const std::optional<double> loss = model_loss(cell);
    if (!loss) continue;
    ++num_known;
    if (*loss <= model_good) ++num_good;
    losses += fmt::format("{} {} {} {:+.1f} %", losses.empty() ? "" : ",", cell.problem.case_name, cell.problem.item,
                          100 * *loss);
  }
  if (num_known == 0) return;
  fmt::print("\ncost model: the best of its first {} is within {:.0f} % of the fastest timed in {} of {} cells:{}\n",
             model_first, 100 * model_good, num_good, num_known, losses);
}

void print_text(const TuneRun& run) {
  const CompileTotals& totals = run.variants.totals();
  fmt::print(
      "\n{}{}: {} of {} points legal; {} compiled ({} from the cache), {} spilled, {} duplicates, {} failed; "
      "{} checks, {} wrong; {:.0f} s\n",
      run.target.device.name, run.has_gpu ? "" : " (modelled)", run.space.legal, run.space.points, totals.compiled,
      totals.from_cache, totals.spilled, totals.duplicates, totals.failed, run.num_checked, run.num_wrong,
      run.seconds_used());
  fmt::print("roofs: read {:.0f} GB/s, matrix {:.0f} TFLOP/s{}\n\n", run.roofs.read_gbps, run.roofs.matrix_tflops,
             run.has_gpu ? "" : " (data sheets and shares measured on H200)");
  for (const Cell& cell : run.cells) print_cell(run, cell);
  if (run.has_gpu) print_model(run);
  fmt::print("\ntable: {}\n", run.options.out);
}

}  // namespace

std::vector<std::string> lever_lines(const Cell& cell, size_t most) {
  if (cell.tried.size() < tried_least) return {};
  struct Line {
    double spread;
    std::string text;
  };
  std::vector<Line> lines;
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    std::map<int32_t, double> best;  // of each value
    for (const Tried& tried : cell.tried) {
      const auto [place, is_new] = best.try_emplace(get_lever(tried.config, lever), tried.us);
      if (!is_new) place->second = std::min(place->second, tried.us);
    }
    if (best.size() < 2) continue;
    std::vector<std::pair<double, int32_t>> order;
    for (const auto& [value, us] : best) order.emplace_back(us, value);
    std::sort(order.begin(), order.end());
    const double spread = order.back().first / order.front().first - 1;
    if (spread <= delta) continue;
    std::string text = lever_text(lever, order.front().second) + " best";
    for (size_t place = 1; place < order.size(); ++place) {
      const std::string named = lever_text(lever, order[place].second);
      text += fmt::format(", {} {:+.1f} %", named.substr(named.find('=') + 1),
                          100 * (order[place].first / order.front().first - 1));
    }
    lines.push_back({spread, text});
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.spread > b.spread; });
  std::vector<std::string> texts;
  for (size_t place = 0; place < std::min(lines.size(), most); ++place) texts.push_back(lines[place].text);
  return texts;
}

std::optional<double> model_loss(const Cell& cell) {
  if (cell.tried.size() < tried_least) return {};
  std::optional<double> best_of_ten;
  double best = cell.tried.front().us;
  for (const Tried& tried : cell.tried) {
    best = std::min(best, tried.us);
    const auto end = cell.ranking.best.begin() + long(std::min(model_first, cell.ranking.best.size()));
    const bool is_first = std::any_of(cell.ranking.best.begin(), end,
                                      [&](const Candidate& candidate) { return candidate.config == tried.config; });
    if (is_first) best_of_ten = std::min(best_of_ten.value_or(tried.us), tried.us);
  }
  if (!best_of_ten) return {};
  return *best_of_ten / best - 1;
}

void print_summary(const TuneRun& run) {
  if (run.options.json) {
    print_json(run);
  } else {
    print_text(run);
  }
}

}  // namespace fulcrum::tuner
