// Admission of kernels and their entries in a race. Invariant: see cell_race.hpp.
#include "tuner/cell_race.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/input_error.hpp"

namespace fulcrum::tuner {
namespace {

int layout_group(const Config& config) { return int(config.code_word) * 2 + int(config.k_order); }

// Errors after which this process's CUDA context is lost.
bool is_fatal(Code code) { return code == Code::cuda || code == Code::foreign_cuda || code == Code::no_device; }

}  // namespace

CellRace::CellRace(TuneRun& run, Cell& cell) : run_(run), cell_(cell), problem_(cell.problem) {}

CellRace::~CellRace() {
  twin_timer_.reset();
  for (const std::unique_ptr<Runner>& runner : runners_) {
    runner->timer.reset();  // before its code
    (void)unload_kernel(runner->compiled.kernel);
  }
}

void CellRace::note_drop(const Config& config, const std::string& why) {
  Variant& variant = run_.variants.get(config, cell_.kind(), run_.target.device.arch);
  variant.dropped = why;
  run_.journal.write("dropped",
                     {{"cell", harness::problem_name(cell_.problem)}, {"config", config_text(config)}, {"why", why}});
}

Runner* CellRace::admit(const Config& config) {
  met_.push_back(config);
  auto runner = std::make_unique<Runner>();
  runner->config = config;
  // before the launch, so that a run that dies shows what it died of
  run_.journal.write("check", {{"cell", harness::problem_name(cell_.problem)}, {"config", config_text(config)}});
  try {
    runner->compiled = harness::compile_kernel(config, cell_.kind(), run_.target.device.arch);
    runners_.push_back(std::move(runner));
    Runner& kept = *runners_.back();
    kept.blocks_per_sm = problem_.plan(kept.compiled.kernel).blocks_per_sm;
    ++run_.num_checked;
    kept.check = harness::check(problem_, kept.compiled.kernel);
    if (!kept.check.passed) {
      ++run_.num_wrong;
      note_drop(config, "wrong: " + kept.check.what);
      return nullptr;
    }
    kept.timer.emplace(harness::kernel_timer(problem_, kept.compiled.kernel));
    kept.timer->warm_up();
    return &kept;
  } catch (const harness::InputError& error) {
    note_drop(config, error.what());
  } catch (const harness::DeviceError& error) {
    note_drop(config, error.what());
    if (is_fatal(error.code)) throw;
  }
  return nullptr;
}

bool CellRace::still_right(Runner& runner) {
  runner.check = harness::check(problem_, runner.compiled.kernel);
  ++run_.num_checked;
  if (!runner.check.passed) {
    ++run_.num_wrong;
    note_drop(runner.config, "wrong after it was timed: " + runner.check.what);
  }
  return runner.check.passed;
}

Race* CellRace::start(uint64_t seed) {
  Runner* base = admit(cell_.base());
  if (base == nullptr) return nullptr;
  race_ = std::make_unique<Race>(seed);
  (void)race_->add([base] { return base->timer->sample_us(); }, layout_group(base->config));
  twin_timer_.emplace(harness::kernel_timer(problem_, base->compiled.kernel));
  twin_timer_->warm_up();
  (void)race_->add([this] { return twin_timer_->sample_us(); }, layout_group(base->config));
  entrants_ = {base, base};
  return race_.get();
}

std::optional<size_t> CellRace::enter(const Config& config) {
  Runner* runner = admit(config);
  if (runner == nullptr) return std::nullopt;
  entrants_.push_back(runner);
  return race_->add([runner] { return runner->timer->sample_us(); }, layout_group(config));
}

bool CellRace::has_met(const Config& config) const { return std::find(met_.begin(), met_.end(), config) != met_.end(); }

}  // namespace fulcrum::tuner
