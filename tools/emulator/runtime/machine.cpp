// Scheduling of fibers, and the grid; see machine.hpp.
#include "runtime/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/fault.hpp"

namespace fulcrum::emulator {

const Place* place = nullptr;

void fault(const std::string& words) {
  if (place == nullptr) throw Fault{words};
  throw Fault{fmt::format("block {} thread {} (warp {} lane {}): {}", place->block, place->thread, place->thread / 32,
                          place->thread % 32, words)};
}

Argument::Argument(const void* from, uint32_t bytes) : chunks_(bytes / sizeof(Chunk) + 1) {
  std::memcpy(chunks_.data(), from, bytes);
}

Machine& Machine::instance() {
  static Machine& machine = *new Machine;  // never destroyed: statics elsewhere hold its memory
  return machine;
}

uint64_t Machine::random() {  // SplitMix64
  uint64_t x = random_state_ += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

void Machine::wait(const Wait& for_what) {
  Thread& self = *running_;
  self.waits = for_what;
  scheduler_ = std::move(scheduler_).resume();
  self.waits = {};
}

void Machine::queue(Warp& warp) {
  if (warp.queued) return;
  warp.queued = true;
  ready_.push_back(&warp);
}

void Machine::wake(Thread& thread) {
  thread.warp->ready.push_back(&thread);
  queue(*thread.warp);
}

void Machine::pause() {
  if (random() % 4 != 0) return;
  wake(*running_);
  wait({Wait::Kind::turn});
}

void Machine::start_block(const Entry& entry, const Grid& grid, const Argument& argument, uint32_t index) {
  const Place first{0, grid.threads, index, grid.blocks};
  blocks_.push_back(std::make_unique<Block>(
      first, grid.shared_bytes, [&entry, &argument] { entry.run(argument.data()); }, stacks_));
  for (const std::unique_ptr<Warp>& warp : blocks_.back()->warps()) {
    // another lane first for each seed
    std::rotate(warp->ready.begin(), warp->ready.begin() + static_cast<long>(random() % warp->ready.size()),
                warp->ready.end());
    queue(*warp);
  }
}

// One warp's lanes go on until all of them wait, or until another warp's turn has come.
void Machine::run_turn() {
  const size_t at = random() % ready_.size();
  Warp& warp = *ready_[at];
  ready_[at] = ready_.back();
  ready_.pop_back();
  Block* const block = warp.block;
  for (uint64_t left = 32 + random() % 4096; !warp.ready.empty() && left > 0 && fault_.empty(); --left) {
    Thread& thread = *warp.ready.back();
    warp.ready.pop_back();
    running_ = &thread;
    place = &thread.place;
    thread.fiber = std::move(thread.fiber).resume();
    place = nullptr;
    running_ = nullptr;
    if (thread.done) block->thread_done(thread);
  }
  warp.queued = false;  // until now, so that lanes that its own lanes woke do not queue it
  if (!warp.ready.empty()) queue(warp);
}

bool Machine::fire_event() {
  const size_t first = random() % blocks_.size();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = *blocks_[(first + i) % blocks_.size()];
    if (!block.has_events()) continue;
    try {
      block.fire_event(random());
    } catch (const Fault& fault) {
      fault_ = fault.words;
    }
    return true;
  }
  return false;
}

std::string Machine::deadlock() const {
  std::string words = "deadlock: nothing can go on.";
  for (const std::unique_ptr<Block>& block : blocks_) words += block->waiting_threads();
  return words;
}

void Machine::end_finished_blocks() {
  for (const std::unique_ptr<Block>& block : blocks_) {
    if (block->finished() && block->has_events())
      fault_ = "a block has ended while copies into its shared memory were in flight";
    if (block->finished() && block->has_wgmma()) fault_ = "a block has ended with a wgmma that nobody waited for";
  }
  blocks_.erase(std::remove_if(blocks_.begin(), blocks_.end(), [](const auto& block) { return block->finished(); }),
                blocks_.end());
}

std::string Machine::run(const Entry& entry, const Grid& grid, const void* argument) {
  const Argument own(argument, entry.argument_bytes);
  random_state_ = options.seed * 0xD1B54A32D192ED03u;
  fault_.clear();
  memory.begin_launch();
  // half of the seeds let copies land early now and then: an early copy finds a reader that is late
  const bool early = options.seed % 2 == 0;
  uint32_t started = 0;
  while (fault_.empty()) {
    end_finished_blocks();
    if (!fault_.empty()) break;
    while (started < grid.blocks && blocks_.size() < options.resident_blocks) start_block(entry, grid, own, started++);
    if (blocks_.empty()) break;
    if (!ready_.empty())
      run_turn();
    else if (!fire_event())
      fault_ = deadlock();
    if (early && fault_.empty() && random() % 8 == 0) (void)fire_event();
  }
  ready_.clear();
  blocks_.clear();
  return fault_.empty() ? "" : fmt::format("{}: {}", entry.name, fault_);
}

}  // namespace fulcrum::emulator
