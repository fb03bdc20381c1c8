// The emulated device's memory: every allocation with, for each byte, whether it was ever written.
//
// Called by the twin of cuda_api.hpp (allocate, copy, set) and by block.cpp for every access of a kernel.
// Invariant: an access of a kernel lies inside of one live allocation, is aligned, reads only what was written, never
// writes what the same launch reads as constant, never stores where another thread of the launch did, and never reads
// what another stored unless barriers and acquiring atomics order the two; else it does not return.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/clocks.hpp"

namespace fulcrum::emulator {

// Who accesses: its block and epoch, and what its thread knows of its own block and of others.
struct GridAccessor {
  uint32_t block = 0;
  Epoch epoch;
  const Clocks* clocks = nullptr;
  const BlockClocks* others = nullptr;

  bool knows(uint32_t other_block, Epoch other) const {
    if (other_block == block && clocks->knows(other)) return true;
    return others != nullptr && others->knows(other_block, other);
  }
};

class GlobalMemory {
 public:
  // 256-byte aligned, as cudaMalloc; empty of values.
  void* allocate(uint64_t bytes);
  bool release(void* memory);

  // For the host. Bytes outside of any allocation are the host's own, and count as written.
  void copy(void* to, const void* from, uint64_t bytes);
  void set(void* memory, int byte, uint64_t bytes);

  // For kernels.
  void begin_launch();
  void load(const char* what, const void* address, void* to, uint32_t bytes, bool constant);
  // A load that is not part of an atomic operation, of memory that may change while the kernel runs.
  void load_ordered(const char* what, const void* address, void* to, uint32_t bytes, const GridAccessor& by);
  void store(const char* what, void* address, const void* from, uint32_t bytes, const GridAccessor& by);
  // Writes for an atomic operation, which any thread may do.
  void update(const char* what, void* address, const void* from, uint32_t bytes);
  // What this launch's acquiring and releasing atomic operations on the address have released.
  BlockClocks& released_at(const void* address) { return released_[address]; }
  // Reads for a copy: no alignment of its own.
  void read(const char* what, const void* address, void* to, uint32_t bytes);

 private:
  struct Free {
    void operator()(uint8_t* memory) const;
  };
  struct Granule {  // 16 bytes
    uint32_t constant_launch = 0, write_launch = 0;
  };
  struct Store {
    uint32_t launch = 0, block = 0;
    Epoch epoch;

    bool is_by(const GridAccessor& thread) const { return block == thread.block && epoch.agent == thread.epoch.agent; }
  };
  struct Allocation {
    std::unique_ptr<uint8_t, Free> block;  // a gap, the memory, a gap
    uint64_t bytes = 0;
    std::vector<uint8_t> written;  // [byte]
    std::vector<Granule> granules;
    std::vector<Store> stores;  // the last one to each 2 bytes; single bytes are not looked at

    uint8_t* memory() const;
    uint64_t offset_of(const void* address) const {
      return static_cast<uint64_t>(static_cast<const uint8_t*>(address) - memory());
    }
  };

  Allocation* find(const void* address);
  Allocation& find_checked(const char* what, const void* address, uint32_t bytes, uint32_t alignment);
  [[noreturn]] void report_outside(const char* what, const void* address, uint32_t bytes) const;
  Allocation& put(const char* what, void* address, const void* from, uint32_t bytes);
  void note_write(void* to, uint64_t bytes, const uint8_t* written);

  std::map<const uint8_t*, Allocation> allocations_;
  std::map<const void*, BlockClocks> released_;
  Allocation* last_ = nullptr;  // found
  uint32_t launch_ = 0;
};

}  // namespace fulcrum::emulator
