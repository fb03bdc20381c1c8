// Results by the model. Invariant: see steps.hpp.
#include "tuner/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/verdict.hpp"

namespace fulcrum::tuner {
namespace {

// Predictions again, now with the registers that ptxas gave.
void predict_compiled(Cell& cell) {
  cell.tried.clear();
  cell.result.reset();
  double default_us = 0;
  for (const Variant* variant : cell.candidates) {
    if (!variant->usable()) continue;
    const Prediction prediction = cell.model->predict(variant->job.config, variant->outcome.registers);
    if (prediction.blocks_per_sm == 0) continue;
    if (variant->is_default) default_us = prediction.us;
    cell.tried.push_back({variant->job.config, prediction.us, 0});
  }
  for (Tried& tried : cell.tried) tried.ratio = default_us > 0 ? std::log(tried.us / default_us) : 0;
}

const Variant* find_variant(const Cell& cell, const Config& config) {
  const auto found = std::find_if(cell.candidates.begin(), cell.candidates.end(),
                                  [&](const Variant* variant) { return variant->job.config == config; });
  return found == cell.candidates.end() ? nullptr : *found;
}

// The first reason that a candidate was dropped for, such as what NVRTC lacks; without one, time ended too early.
std::string why_nothing_compiled(const Cell& cell) {
  for (const Variant* variant : cell.candidates)
    if (!variant->dropped.empty()) return "no candidate is usable; the first: " + variant->dropped;
  return "the budget ended before a candidate was compiled: give a longer --budget";
}

// The best of `layout`; of those within delta of it the one nearest to the default, which may be the default itself.
void choose(Cell& cell, Layout layout) {
  std::vector<const Tried*> own;
  for (const Tried& tried : cell.tried) {
    if (layout_of(tried.config) == layout) own.push_back(&tried);
  }
  if (own.empty()) {
    cell.problem_words = why_nothing_compiled(cell);
    return;
  }
  const auto faster = [](const Tried* a, const Tried* b) { return a->us < b->us; };
  const double best_us = (*std::min_element(own.begin(), own.end(), faster))->us;
  const Config base = cell.base();
  const Tried* winner = nullptr;
  for (const Tried* tried : own) {
    if (tried->us > best_us * (1 + delta)) continue;
    const int32_t apart = levers_apart(tried->config, base);
    if (winner == nullptr || apart < levers_apart(winner->config, base)) winner = tried;
  }
  const Variant* variant = find_variant(cell, winner->config);
  const Prediction prediction = cell.model->predict(winner->config, variant->outcome.registers);
  CellResult result;
  result.config = winner->config;
  result.source = Source::modelled;
  result.chosen = fmt::format("model: {:+.1f} %, not measured", 100 * std::expm1(winner->ratio));
  if (winner->config == base) {
    result.chosen = cell.tried.size() > 1 ? "default: the model sees no gain"
                                          : "default: nothing else was compiled within the budget";
  }
  result.median_us = {winner->us, winner->us, winner->us};
  result.best_us = winner->us;
  result.default_us = winner->us / std::exp(winner->ratio);
  result.ratio = {winner->ratio, winner->ratio, winner->ratio};
  result.registers = variant->outcome.registers;
  result.blocks_per_sm = prediction.blocks_per_sm;
  result.machine = variant->outcome.machine;
  cell.result = result;
}

}  // namespace

void model_cells(TuneRun& run) {
  for (size_t group = 0; group < num_groups(run.cells); ++group) {
    std::vector<Cell*> cells;
    std::vector<LayoutTimes> times;
    for (Cell& cell : run.cells) {
      if (cell.group != group) continue;
      predict_compiled(cell);
      times.push_back(times_by_layout(cell.tried, run.options.pins));
      cells.push_back(&cell);
    }
    const Layout layout = choose_layout(times, layout_of(cells.front()->base()));
    for (Cell* cell : cells) choose(*cell, layout);
  }
}

}  // namespace fulcrum::tuner
