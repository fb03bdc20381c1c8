// The order of things on a GPU. Invariant: see steps.hpp.
#include "tuner/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/input_error.hpp"
#include "tuner/cell_race.hpp"
#include "tuner/progress.hpp"
#include "tuner/verdict.hpp"

namespace fulcrum::tuner {
namespace {

constexpr size_t survivors_kept = 6;    // after halving
constexpr size_t num_leaders = 3;       // whose neighbours are tried
constexpr size_t neighbours_most = 24;  // of one round, best by the model first
constexpr int neighbour_rounds = 3;
constexpr size_t finalists_most = 4;  // of one Layout
constexpr int confirm_blocks = 40;
constexpr int confirm_blocks_least = 12;  // whatever the budget says
constexpr double least_cell_s = 2;        // likewise
constexpr double admit_share = 0.5;       // of a cell's time until candidates are all admitted
constexpr double confirm_weight = 0.35;   // of a cell's racing time

// Shares what is left of the budget out to what is still to be done.
class Clock {
 public:
  Clock(const TuneRun& run, size_t cells) : run_(run), races_(cells), confirms_(cells) {}
  double race_deadline() { return deadline(1, races_); }
  double confirm_deadline() { return deadline(confirm_weight, confirms_); }

 private:
  double deadline(double weight, size_t& left) {
    const double units = double(races_) + confirm_weight * double(confirms_);
    const double share = run_.seconds_left() * weight / units;
    const double end = run_.seconds_used() + std::max(share, least_cell_s * weight);
    --left;
    return end;
  }
  const TuneRun& run_;
  size_t races_, confirms_;
};

class GroupRace {
 public:
  GroupRace(TuneRun& run, Clock& clock, Progress& progress, uint64_t& done)
      : run_(run), clock_(clock), progress_(progress), done_(done) {}

  void run(const std::vector<Cell*>& cells) {
    for (Cell* cell : cells) {
      try {
        race(*cell);
      } catch (const harness::InputError& error) {  // it does not fit the memory
        cell->problem_words = error.what();
      }
      progress_.update(++done_, harness::problem_name(cell->problem));
    }
    const Layout layout = layout_for(cells);
    for (Cell* cell : cells) {
      if (!cell->tried.empty() && !interrupted()) confirm(*cell, layout);
    }
    settle_unconfirmed(cells);
  }

  // What the race alone knows of cells that were not confirmed: the run was stopped, or the GPU failed.
  void settle_unconfirmed(const std::vector<Cell*>& cells) {
    const Layout layout = layout_for(cells);
    for (Cell* cell : cells) {
      if (!cell->result && cell->problem_words.empty()) settle_unconfirmed(*cell, layout);
    }
  }

 private:
  Layout layout_for(const std::vector<Cell*>& cells) const {
    std::vector<LayoutTimes> times;
    for (const Cell* cell : cells) {
      if (!cell->tried.empty()) times.push_back(times_by_layout(cell->tried, run_.options.pins));
    }
    return choose_layout(times, layout_of(cells.front()->base()));
  }

  bool may_go_on(double deadline, const Cell& cell) {
    progress_.update(done_, harness::problem_name(cell.problem));
    return !interrupted() && run_.seconds_used() < deadline;
  }

  void race(Cell& cell) {
    const double begin = run_.seconds_used();
    const double deadline = clock_.race_deadline();
    if (interrupted()) return;
    CellRace arena(run_, cell);
    Race* race = arena.start(1);
    if (race == nullptr) {
      run_.failed_check = true;
      cell.problem_words = "the default Config failed its check: " +
                           run_.variants.get(cell.base(), cell.kind(), run_.target.device.arch).dropped;
      return;
    }
    const auto go_on = [&] { return may_go_on(deadline, cell); };
    std::vector<Config> wanted = leaders_;  // of the shape's other token counts, then the cell's own candidates
    for (const Variant* variant : cell.candidates) {
      if (variant->usable()) wanted.push_back(variant->job.config);
    }
    std::vector<size_t> entries;
    for (const Config& config : wanted) {
      if (arena.has_met(config)) continue;
      if (!may_go_on(begin + admit_share * (deadline - begin), cell)) break;
      if (const auto entry = arena.enter(config)) entries.push_back(*entry);
    }
    std::vector<size_t> best = halve(*race, entries, survivors_kept, go_on);
    for (int round = 0; round < neighbour_rounds && go_on(); ++round) {
      const std::vector<size_t> fresh = enter_neighbours(cell, arena, best, deadline);
      if (fresh.empty()) break;
      std::vector<size_t> field = best;
      field.insert(field.end(), fresh.begin(), fresh.end());
      const size_t leader = best.empty() ? Race::baseline : best.front();
      best = halve(*race, field, survivors_kept, go_on);
      if (best.empty() || best.front() == leader) break;
    }
    keep_tried(cell, arena, *race);
    for (size_t place = 0; place < std::min(best.size(), num_leaders); ++place) {
      leaders_.push_back(arena.runner(best[place]).config);
    }
  }

  // Compiles and admits what lies one lever from the leaders.
  std::vector<size_t> enter_neighbours(Cell& cell, CellRace& arena, const std::vector<size_t>& best, double deadline) {
    const Arch arch = run_.target.device.arch;
    std::vector<Config> wanted;
    for (size_t place = 0; place < std::min(best.size(), num_leaders); ++place) {
      for (const Config& next : neighbours(arena.runner(best[place]).config, arch, cell.kind(), run_.options.pins)) {
        const bool known = arena.has_met(next) || std::find(wanted.begin(), wanted.end(), next) != wanted.end();
        if (!known && cell.model->predict(next).blocks_per_sm > 0) wanted.push_back(next);
      }
    }
    std::stable_sort(wanted.begin(), wanted.end(), [&](const Config& a, const Config& b) {
      return cell.model->predict(a).us < cell.model->predict(b).us;
    });
    if (wanted.size() > neighbours_most) wanted.resize(neighbours_most);
    std::vector<Variant*> variants;
    for (const Config& config : wanted) variants.push_back(&run_.variants.get(config, cell.kind(), arch));
    const double seconds = std::max(1.0, (deadline - run_.seconds_used()) / 2);
    run_.variants.compile(variants, run_.pool, seconds, [&](size_t, const Variant&) { may_go_on(deadline, cell); });
    std::vector<size_t> entries;
    for (size_t index = 0; index < wanted.size(); ++index) {
      if (!variants[index]->usable()) continue;
      if (!may_go_on(deadline, cell)) break;
      if (const auto entry = arena.enter(wanted[index])) entries.push_back(*entry);
    }
    return entries;
  }

  void keep_tried(Cell& cell, CellRace& arena, const Race& race) {
    const auto base = race.times(Race::baseline);
    const double default_us = median({base.begin(), base.end()});
    for (size_t entry = 0; entry < race.size(); ++entry) {
      if (entry == Race::twin || race.times(entry).empty()) continue;
      const double ratio = race.point(entry);
      cell.tried.push_back({arena.runner(entry).config, default_us * std::exp(ratio), ratio});
      run_.journal.write("raced", {{"cell", harness::problem_name(cell.problem)},
                                   {"config", config_text(cell.tried.back().config)},
                                   {"us", cell.tried.back().us},
                                   {"blocks", uint64_t{race.times(entry).size()}}});
    }
  }

  // Fastest first, of one Layout.
  static std::vector<Config> finalists(const Cell& cell, Layout layout) {
    std::vector<Tried> own;
    for (const Tried& tried : cell.tried) {
      if (layout_of(tried.config) == layout) own.push_back(tried);
    }
    std::stable_sort(own.begin(), own.end(), [](const Tried& a, const Tried& b) { return a.ratio < b.ratio; });
    std::vector<Config> configs;
    for (const Tried& tried : own) {
      if (configs.size() < finalists_most) configs.push_back(tried.config);
    }
    return configs;
  }

  void confirm(Cell& cell, Layout layout) {
    const double deadline = clock_.confirm_deadline();
    CellRace arena(run_, cell);
    Race* race = arena.start(2);
    if (race == nullptr) {
      run_.failed_check = true;
      cell.problem_words = "the default Config failed its check after it was timed";
      return;
    }
    std::vector<size_t> entries;
    for (const Config& config : finalists(cell, layout)) {
      if (config == cell.base()) continue;
      if (const auto entry = arena.enter(config)) entries.push_back(*entry);
    }
    int blocks = race->run(entries, confirm_blocks_least, [] { return !interrupted(); });
    blocks += race->run(entries, confirm_blocks - blocks, [&] { return may_go_on(deadline, cell); });
    if (blocks < 2) return settle_unconfirmed(cell, layout);
    while (true) {
      const Choice choice = choose_entry(
          *race, entries, [&](size_t entry) { return arena.runner(entry).config; }, layout);
      Runner& winner = arena.runner(choice.entry);
      if (arena.still_right(winner)) return settle(cell, *race, winner, choice);
      std::erase(entries, choice.entry);
      if (choice.entry == Race::baseline) {
        run_.failed_check = true;
        cell.problem_words = "the default Config failed its check after it was timed";
        return;
      }
    }
  }

  void settle(Cell& cell, const Race& race, const Runner& winner, const Choice& choice) {
    CellResult result;
    const auto times = race.times(choice.entry);
    const auto base = race.times(Race::baseline);
    result.config = winner.config;
    result.chosen = choice.words;
    result.median_us = median_interval({times.begin(), times.end()});
    result.best_us = *std::min_element(times.begin(), times.end());
    result.default_us = median({base.begin(), base.end()});
    result.ratio = choice.ratio;
    result.noise = choice.noise;
    result.samples = times.size();
    result.registers = winner.compiled.info.registers;
    result.blocks_per_sm = winner.blocks_per_sm;
    result.rel_error = winner.check.rel_error;
    result.machine = winner.compiled.info.machine;
    cell.result = result;
    run_.journal.write("chosen", {{"cell", harness::problem_name(cell.problem)},
                                  {"config", config_text(result.config)},
                                  {"how", result.chosen},
                                  {"us", result.median_us.point}});
  }

  // What the race alone knows, for a run that was stopped.
  void settle_unconfirmed(Cell& cell, Layout layout) {
    const std::vector<Config> best = finalists(cell, layout);
    if (best.empty()) return;
    const auto tried = std::find_if(cell.tried.begin(), cell.tried.end(),
                                    [&](const Tried& each) { return each.config == best.front(); });
    const Variant& variant = run_.variants.get(tried->config, cell.kind(), run_.target.device.arch);
    CellResult result;
    result.config = tried->config;
    result.chosen = fmt::format("unconfirmed: stopped early, {:+.1f} %", 100 * std::expm1(tried->ratio));
    result.median_us = {tried->us, tried->us, tried->us};
    result.best_us = tried->us;
    result.default_us = tried->us / std::exp(tried->ratio);
    result.ratio = {tried->ratio, tried->ratio, tried->ratio};
    result.registers = variant.outcome.registers;
    result.machine = variant.outcome.machine;
    result.blocks_per_sm = cell.model->predict(tried->config, result.registers).blocks_per_sm;
    cell.result = result;
  }

  TuneRun& run_;
  Clock& clock_;
  Progress& progress_;
  uint64_t& done_;
  std::vector<Config> leaders_;  // of the group's cells so far
};

}  // namespace

void race_cells(TuneRun& run, const std::function<void()>& group_done) {
  Clock clock(run, run.cells.size());
  Progress progress("race", run.cells.size(), run.seconds_left());
  uint64_t done = 0;
  for (size_t group = 0; group < num_groups(run.cells) && !interrupted(); ++group) {
    std::vector<Cell*> cells;
    for (Cell& cell : run.cells) {
      if (cell.group == group) cells.push_back(&cell);
    }
    GroupRace group_race(run, clock, progress, done);
    try {
      group_race.run(cells);
    } catch (const harness::DeviceError& error) {
      // the CUDA context is gone: what is known is written, nothing more can be measured in this process
      group_race.settle_unconfirmed(cells);
      run.failed_check = true;
      for (Cell& cell : run.cells) {
        if (!cell.result && cell.problem_words.empty()) cell.problem_words = error.what();
      }
      return;
    }
    group_done();
  }
}

}  // namespace fulcrum::tuner
