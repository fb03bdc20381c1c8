// The emulated device: its memory, its options, and the execution of a grid.
//
// Called by the twin of cuda_api.hpp; block.cpp asks it to switch between threads.
// Invariant: one host thread uses it. The same options give the same execution, step by step.
#pragma once

#include <emulator/host.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/block.hpp"
#include "runtime/global_memory.hpp"

namespace fulcrum::emulator {

struct Options {
  uint64_t seed = 1;             // of the order in which threads and copies go on
  uint32_t resident_blocks = 2;  // that run at once; the others wait
};

// A kernel's parameters, aligned for any type that they may hold.
class Argument {
 public:
  Argument(const void* from, uint32_t bytes);
  const void* data() const { return chunks_.data(); }

 private:
  struct alignas(128) Chunk {
    uint8_t bytes[128];
  };
  std::vector<Chunk> chunks_;
};

struct Grid {
  uint32_t blocks = 0, threads = 0, shared_bytes = 0;
};

class Machine {
 public:
  static Machine& instance();

  Options options;
  GlobalMemory memory;

  // Runs a grid to its end. Returns what is wrong with the kernel, or "".
  std::string run(const Entry& entry, const Grid& grid, const void* argument);

  // For the runtime.
  Thread& running() { return *running_; }
  void wait(const Wait& for_what);  // of the running thread; returns when somebody wakes it
  void wake(Thread& thread);
  void pause();  // gives others a turn, if the seed wants it
  uint64_t random();

 private:
  Machine() = default;
  void start_block(const Entry& entry, const Grid& grid, const Argument& argument, uint32_t index);
  void run_turn();
  bool fire_event();
  void end_finished_blocks();
  std::string deadlock() const;
  void queue(Warp& warp);

  StackPool stacks_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Warp*> ready_;
  Thread* running_ = nullptr;
  boost::context::fiber scheduler_;
  std::string fault_;
  uint64_t random_state_ = 0;
  friend class Block;
};

}  // namespace fulcrum::emulator
