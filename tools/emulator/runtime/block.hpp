// One block: its threads as fibers, how they meet, its shared memory, mbarriers and copies in flight.
//
// Made and driven by machine.cpp; the functions of device.h act on the running thread's block.
// Invariant: one thread runs at a time, from one of its calls into the runtime to the next that must wait. What is
// asynchronous happens as late as it can: a cp.async lands when its thread waits for it, a bulk copy when no thread
// of any block can go on without it.
#pragma once

#include <emulator/device.h>

#include <boost/context/fiber.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/clocks.hpp"
#include "runtime/global_memory.hpp"
#include "runtime/shared_memory.hpp"
#include "runtime/stacks.hpp"
#include "runtime/wgmma.hpp"

namespace fulcrum::emulator {

class Block;
struct Warp;

// A copy into shared memory that has begun.
struct Copy {
  uint32_t to = 0;
  const uint8_t* from = nullptr;
  uint32_t bytes = 0;  // that are read; the rest of `size` becomes zeros
  uint32_t size = 0;
  bool landed = false;
};
using Copies = std::vector<std::shared_ptr<Copy>>;

// What a waiting thread waits for; put into words only when nothing can go on.
struct Wait {
  enum class Kind : uint8_t { none, turn, warp, barrier, mbarrier } kind = Kind::none;
  const char* what = "";  // warp: the function at which its lanes meet
  uint32_t number = 0;    // of the barrier, or the mbarrier's address
  uint32_t count = 0;     // threads of the barrier, or the mbarrier's parity
};

struct Thread {
  Thread(const Place& where, uint32_t agents) : place(where), clocks(agents), fenced(agents) {
    clocks[place.thread] = 1;
  }

  Epoch epoch() const { return {static_cast<uint16_t>(place.thread), clocks[place.thread]}; }
  Accessor accessor() const { return {epoch(), &clocks, &fenced}; }
  GridAccessor grid_accessor() const { return {place.block, epoch(), &clocks, others.get()}; }
  // What this thread did so far is over for whoever learns its clocks now.
  void tick() { ++clocks[place.thread]; }

  Place place;
  Block* block = nullptr;
  Warp* warp = nullptr;
  boost::context::fiber fiber;
  Clocks clocks, fenced;
  std::shared_ptr<const BlockClocks> others;  // null: nothing of other blocks
  Wait waits;
  bool done = false;
  Copies uncommitted;
  std::deque<Copies> groups;  // oldest first
};

struct Warp {
  uint32_t index = 0;
  Block* block = nullptr;
  std::vector<Thread*> lanes;
  std::vector<Thread*> ready;
  bool queued = false;  // among the machine's warps that can run
  const char* meeting = nullptr;
  uint32_t arrived = 0;
  void* records[32] = {};
  WgmmaQueue wgmma;
};

struct Mbarrier {
  Mbarrier(uint32_t agents, uint32_t copies)
      : copies_agent(copies), arriving(agents), completed(agents), arriving_fenced(agents), completed_fenced(agents) {}

  uint32_t copies_agent;  // of the copies that complete on it
  uint32_t expected = 0;  // arrivals of a phase
  uint32_t pending = 0;
  int64_t bytes = 0;  // that copies still owe
  uint32_t phase = 0;
  Epoch init;
  Clocks arriving, completed;  // what waiters of this and of the last phase learn
  Clocks arriving_fenced, completed_fenced;
  std::vector<Thread*> waiters;
};

// Threads that wait at a barrier of the block.
struct Meeting {
  std::vector<Thread*> threads;
  uint32_t expected = 0;
};

class Block {
 public:
  // `start` is called on every thread's fiber.
  Block(const Place& first, uint32_t shared_bytes, const std::function<void()>& start, StackPool& stacks);

  bool finished() const { return num_done_ == threads_.size(); }
  bool has_events() const { return !events_.empty(); }
  bool has_wgmma() const;            // issued and not waited for
  void fire_event(uint64_t random);  // one thing that was put off happens
  std::string waiting_threads() const;
  std::vector<std::unique_ptr<Warp>>& warps() { return warps_; }
  void thread_done(Thread& thread);

  // For device.h; `thread` is the running one.
  SharedMemory& memory() { return memory_; }
  void meet_warp(Thread& thread, const char* what, void* record, void (*complete)(void* const*));
  void sync_warp(Thread& thread);
  void sync_threads(Thread& thread, uint32_t barrier, uint32_t count);
  void cp_async(Thread& thread, const char* what, uint32_t to, const void* from, uint32_t size, uint32_t bytes);
  void wait_cp_async(Thread& thread, uint32_t pending_groups);
  void init_mbarrier(Thread& thread, uint32_t address, uint32_t arrivals);
  void arrive(Thread& thread, uint32_t address, uint32_t expected_bytes);
  void arrive_when_copied(Thread& thread, uint32_t address);
  void wait(Thread& thread, uint32_t address, uint32_t parity);
  void bulk_copy(Thread& thread, uint32_t to, const void* from, uint32_t bytes, uint32_t barrier);
  void tensor_copy(Thread& thread, uint32_t to, const void* map, int32_t x, int32_t y, uint32_t barrier);
  void order(const std::vector<Thread*>& threads);  // everybody learns what everybody did
  // The thread learns what others released at the address, and releases what it knows.
  void acquire_and_release(Thread& thread, const void* address);

 private:
  Mbarrier& mbarrier(const char* what, uint32_t address);
  void land(Copy& copy, const char* what, Epoch writer);
  void arrive_once(Mbarrier& barrier, uint32_t address);
  void complete_phase(Mbarrier& barrier);
  Epoch next_copy_epoch(Mbarrier& barrier);
  std::string words_of(const Wait& wait) const;
  void check_copy_barrier(Thread& thread, const char* what, uint32_t address);

  uint32_t num_agents_;
  SharedMemory memory_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Warp>> warps_;
  std::map<uint32_t, Mbarrier> mbarriers_;
  std::map<uint32_t, Meeting> meetings_;
  std::vector<std::function<void()>> events_;
  size_t num_done_ = 0;
};

}  // namespace fulcrum::emulator
