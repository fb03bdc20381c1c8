// The pool with the emulator's worker, and tune's step. Invariant: see emulate.hpp and steps.hpp.
#include "tuner/emulate.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "harness/run_program.hpp"
#include "tuner/progress.hpp"
#include "tuner/space.hpp"
#include "tuner/steps.hpp"

namespace fulcrum::tuner {
namespace {

constexpr double variant_timeout_s = 300;  // the largest take 20 s on a busy core
constexpr size_t num_emulated = 20;        // of a run's ranking

std::string worker_path() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string own(path, length > 0 ? static_cast<size_t>(length) : 0);
  return own.substr(0, own.rfind('/') + 1) + "fulcrum_emulator";
}

// The run's best: every cell's winner, then every cell's next, and so on; each piece of device code once.
std::vector<Variant*> best_variants(TuneRun& run) {
  std::vector<std::vector<const Tried*>> orders;
  for (const Cell& cell : run.cells) {
    std::vector<const Tried*>& order = orders.emplace_back();
    for (const Tried& tried : cell.tried) order.push_back(&tried);
    const auto first = [&](const Tried* tried) { return cell.result && tried->config == cell.result->config ? 0 : 1; };
    std::stable_sort(order.begin(), order.end(), [&](const Tried* a, const Tried* b) {
      return std::pair(first(a), a->us) < std::pair(first(b), b->us);
    });
  }
  std::vector<Variant*> best;
  for (size_t place = 0; best.size() < num_emulated; ++place) {
    bool any = false;
    for (size_t c = 0; c < orders.size() && best.size() < num_emulated; ++c) {
      if (place >= orders[c].size()) continue;
      any = true;
      Variant* variant = &run.variants.get(orders[c][place]->config, run.cells[c].kind(), run.target.device.arch);
      if (std::find(best.begin(), best.end(), variant) == best.end()) best.push_back(variant);
    }
    if (!any) break;
  }
  return best;
}

}  // namespace

std::string why_no_emulator() {
  if (::access(worker_path().c_str(), X_OK) != 0) return fmt::format("{} is not there", worker_path());
  if (harness::run_program({"g++", "--version"}).exit_code != 0) return "there is no g++ to compile variants for it";
  const harness::ProgramRun check = harness::run_program({worker_path(), "check"});
  if (check.exit_code == 0) return "";
  return check.output.empty() ? "it ends without a word" : check.output.substr(0, check.output.find('\n'));
}

size_t emulate_all(const std::vector<CompileJob>& jobs, int num_workers, double seconds,
                   const std::function<bool(size_t, const CompileOutcome&)>& done) {
  return compile_all(jobs, {{worker_path()}, num_workers, variant_timeout_s, "the emulator"}, seconds, done);
}

void emulate_best(TuneRun& run) {
  if (const std::string why = why_no_emulator(); !why.empty()) {
    fmt::print(stderr, "nothing was run on the emulator: {}\n", why);
    return;
  }
  std::set<const Variant*> asked;
  for (bool again = true; again && !interrupted();) {
    again = false;
    std::vector<Variant*> wanted;
    std::vector<CompileJob> jobs;
    for (Variant* variant : best_variants(run)) {
      if (!asked.insert(variant).second) continue;
      wanted.push_back(variant);
      jobs.push_back(variant->job);
    }
    Progress progress(fmt::format("emulator, {} workers", run.pool.num_workers), wanted.size(), run.options.budget_s);
    size_t finished = 0;
    (void)emulate_all(jobs, run.pool.num_workers, run.options.budget_s,
                      [&](size_t index, const CompileOutcome& outcome) {
                        Variant& variant = *wanted[index];
                        ++run.num_checked;
                        variant.emulated = outcome.ok;
                        run.journal.write("emulated", {{"config", config_text(variant.job.config)},
                                                       {"ok", outcome.ok},
                                                       {"why", outcome.why},
                                                       {"seconds", outcome.seconds}});
                        if (!outcome.ok) {
                          variant.dropped = "the emulator: " + outcome.why;
                          ++run.num_wrong;
                          run.failed_check = true;
                          again = true;
                          fmt::print(stderr, "wrong on the emulator, and dropped: {}\n", outcome.why);
                        }
                        progress.update(++finished);
                        return true;
                      });
    if (again) model_cells(run);
  }
  for (Cell& cell : run.cells) {
    if (!cell.result) continue;
    const Variant& winner = run.variants.get(cell.result->config, cell.kind(), run.target.device.arch);
    cell.result->chosen += winner.emulated ? "; right on the emulator" : "; not run";
  }
}

}  // namespace fulcrum::tuner
