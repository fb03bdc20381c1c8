// The wgmma instructions of one warp that are in flight.
//
// A warp computes rows 16w to 16w + 15 of its warpgroup's 64, so its part is executed alone, when it waits.
// Invariant: operands are read at the wait, by what the warp knew at the issue: memory that was written again since is
// a fault. An accumulator is poison from issue to wait; one that no longer is at the wait was touched, another fault.
#pragma once

#include <emulator/device.h>

#include <deque>
#include <map>
#include <vector>

#include "runtime/clocks.hpp"

namespace fulcrum::emulator {

struct Thread;

class WgmmaQueue {
 public:
  void fence() { fenced_ = true; }
  // `lanes`: all 32 of the warp.
  void issue(const std::vector<Thread*>& threads, const std::vector<WgmmaLane>& lanes);
  void commit();
  void wait(const std::vector<Thread*>& threads, uint32_t pending_groups);
  bool empty() const { return open_.empty() && groups_.empty(); }

 private:
  struct Instruction {
    std::vector<WgmmaLane> lanes;
    Clocks clocks, fenced;  // of the issue
  };
  // The accumulators of one d, kept here while its registers are poison.
  struct Accumulators {
    uint32_t in_flight = 0;
    std::vector<std::vector<float>> values;  // [lane][n / 2]
  };

  void execute(const std::vector<Thread*>& threads, const Instruction& instruction);
  void give_back(const Instruction& instruction);

  bool fenced_ = false;
  std::vector<Instruction> open_;
  std::deque<std::vector<Instruction>> groups_;        // oldest first
  std::map<const float*, Accumulators> accumulators_;  // by lane 0's d
};

}  // namespace fulcrum::emulator
