// A block's shared memory with, for every byte, whether it holds a value, and for every word, who touched it last.
//
// Called by block.cpp for every access of a thread and every copy that lands.
// Invariant: an access that is out of bounds, misaligned, in a place where a copy is still to land, or concurrent with
// another access of which one writes, does not return. Bytes that nobody wrote read as poison.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/clocks.hpp"

namespace fulcrum::emulator {

// A NaN in f16, bf16 and f32 alike; a stored word of it came from memory that nobody wrote.
inline constexpr uint32_t poison_word = 0x7FC57FC5;
inline constexpr uint16_t poison_half = 0x7FC5;

// Who accesses: what its thread knows, and which ordinary accesses it knows to be fenced.
struct Accessor {
  Epoch epoch;
  const Clocks* clocks = nullptr;
  const Clocks* fenced = nullptr;  // of each thread, what the asynchronous proxy comes after
};

class SharedMemory {
 public:
  explicit SharedMemory(uint32_t bytes);

  void load(const char* what, uint32_t address, void* to, uint32_t bytes, const Accessor& by);
  void store(const char* what, uint32_t address, const void* from, uint32_t bytes, const Accessor& by);
  uint32_t atomic_add(const char* what, uint32_t address, uint32_t operand, const Accessor& by);

  // A copy begins: its destination must be free, and reads as in flight from now on. `async` copies go past the
  // ordinary proxy, so accesses to the place must have been fenced: a read that is under way may find the copy's bytes.
  void begin_copy(const char* what, uint32_t address, uint32_t bytes, const Accessor& by, bool async);
  // It lands, as a write of `writer`.
  void land_copy(uint32_t address, const void* from, uint32_t bytes, Epoch writer);

  // An operation of the asynchronous proxy reads.
  void load_async(const char* what, uint32_t address, void* to, uint32_t bytes, const Accessor& by);

  // The 8 bytes become an mbarrier, which only mbarrier operations may touch.
  void make_mbarrier(uint32_t address, const Accessor& by);

  void check_place(const char* what, uint32_t address, uint32_t bytes, uint32_t alignment) const;

 private:
  enum class State : uint8_t { empty, value, in_flight, mbarrier };
  enum class Access : uint8_t { read, async_read, write, atomic };
  struct Cell {
    Epoch write;
    bool write_by_copy = false;
    std::vector<Epoch> reads;        // since the last write
    std::vector<Epoch> async_reads;  // likewise
    std::vector<Epoch> atomics;      // likewise
  };

  uint32_t offset_of(uint32_t address) const;
  void copy_values(uint32_t offset, void* to, uint32_t bytes) const;  // poison where there are none
  void check_states(const char* what, uint32_t address, uint32_t bytes) const;
  void note(const char* what, uint32_t address, uint32_t bytes, const Accessor& by, Access access);
  void note_cell(const char* what, uint32_t address, Cell& cell, const Accessor& by, Access access);
  void check_fenced(const char* what, uint32_t address, uint32_t bytes, const Accessor& by, Access access);
  template <class F>
  void for_each_cell(uint32_t offset, uint32_t bytes, const F& visit);

  std::vector<uint8_t> memory_;
  std::vector<State> states_;                                     // [byte]
  std::vector<Cell> cells_;                                       // [word]
  std::unordered_map<uint32_t, std::array<Cell, 4>> byte_cells_;  // of words that were ever touched in part
};

}  // namespace fulcrum::emulator
