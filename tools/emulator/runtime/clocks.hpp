// Vector clocks: what each thread of a block knows of the others (Mattern 1989; the epochs are those of FastTrack,
// Flanagan and Freund 2009).
//
// Used by block.hpp and the two memories. Invariant: an access with epoch (agent, time) comes before everything done
// by a thread whose clocks say at least `time` for that agent, and is concurrent with all else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace fulcrum::emulator {

// Agents are a block's threads and, behind them, the copies of each mbarrier.
struct Epoch {
  uint16_t agent = 0;
  uint32_t time = 0;  // 0: never
};

class Clocks {
 public:
  explicit Clocks(uint32_t agents) : times_(agents, 0) {}

  uint32_t& operator[](uint32_t agent) { return times_[agent]; }
  uint32_t operator[](uint32_t agent) const { return times_[agent]; }
  bool knows(Epoch epoch) const { return times_[epoch.agent] >= epoch.time; }

  void join(const Clocks& other) {
    const uint32_t* from = other.times_.data();
    uint32_t* to = times_.data();
    for (size_t i = 0; i < times_.size(); ++i) to[i] = std::max(to[i], from[i]);
  }

 private:
  std::vector<uint32_t> times_;
};

// What threads know of other blocks: the clocks that a thread there had when it released what they acquired.
class BlockClocks {
 public:
  bool knows(uint32_t block, Epoch epoch) const {
    const auto found = blocks_.find(block);
    return found != blocks_.end() && found->second.knows(epoch);
  }

  void join(uint32_t block, const Clocks& clocks) {
    const auto [place, is_new] = blocks_.try_emplace(block, clocks);
    if (!is_new) place->second.join(clocks);
  }

  void join(const BlockClocks& other) {
    for (const auto& [block, clocks] : other.blocks_) join(block, clocks);
  }

 private:
  std::map<uint32_t, Clocks> blocks_;
};

}  // namespace fulcrum::emulator
