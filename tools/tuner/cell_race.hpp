// One cell on the GPU: its problem in memory, and the kernels that were found right and may be timed.
//
// Called by race_cells, once to race and once to confirm.
// Invariant: admit() has checked a kernel bit for bit and on random data before its first timed launch; code that it
// loaded is unloaded with the object.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/check.hpp"
#include "harness/jit_kernels.hpp"
#include "harness/timer.hpp"
#include "tuner/race.hpp"
#include "tuner/tune.hpp"

namespace fulcrum::tuner {

// A kernel that may be timed.
struct Runner {
  Config config{};
  harness::CompiledKernel compiled;
  harness::CheckResult check;
  uint32_t blocks_per_sm = 0;
  std::optional<harness::GraphTimer> timer;
};

class CellRace {
 public:
  CellRace(TuneRun& run, Cell& cell);
  ~CellRace();
  CellRace(const CellRace&) = delete;
  CellRace& operator=(const CellRace&) = delete;

  // Loads, checks and prepares `config`; null when it does not compile, does not fit or is wrong, which is noted.
  // Throws DeviceError when the GPU itself failed, which ends the run.
  Runner* admit(const Config& config);

  // Checks again; a runner that is wrong now was lucky before.
  bool still_right(Runner& runner);

  // The race of this cell with the default as its baseline and twin. Null when the default is wrong.
  Race* start(uint64_t seed);

  // Admits and adds to the race; the entry's runner is runner(entry). Nothing when it was not admitted.
  std::optional<size_t> enter(const Config& config);

  bool has_met(const Config& config) const;
  Runner& runner(size_t entry) { return *entrants_[entry]; }

 private:
  void note_drop(const Config& config, const std::string& why);

  TuneRun& run_;
  Cell& cell_;
  harness::ProblemOnDevice problem_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Config> met_;
  std::unique_ptr<Race> race_;
  std::vector<Runner*> entrants_;  // by entry
  std::optional<harness::GraphTimer> twin_timer_;
};

}  // namespace fulcrum::tuner
