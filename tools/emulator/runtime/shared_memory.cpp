// Shared memory's checks; see shared_memory.hpp.
#include "runtime/shared_memory.hpp"

#include <emulator/device.h>
#include <fmt/format.h>

#include <cstring>

#include "runtime/fault.hpp"

namespace fulcrum::emulator {
namespace {

std::string agent_name(Epoch epoch) { return fmt::format("thread {}", epoch.agent); }

// Adds an epoch to those of its kind, over one that came before it.
void add_epoch(std::vector<Epoch>& epochs, const Accessor& by) {
  for (Epoch& epoch : epochs) {
    if (epoch.agent == by.epoch.agent || by.clocks->knows(epoch)) {
      epoch = by.epoch;
      return;
    }
  }
  epochs.push_back(by.epoch);
}

}  // namespace

SharedMemory::SharedMemory(uint32_t bytes) : memory_(bytes), states_(bytes, State::empty), cells_((bytes + 3) / 4) {}

uint32_t SharedMemory::offset_of(uint32_t address) const { return address - shared_base; }

void SharedMemory::check_place(const char* what, uint32_t address, uint32_t bytes, uint32_t alignment) const {
  const uint64_t offset = uint64_t{address} - shared_base;  // wraps below the first byte
  if (address < shared_base || offset + bytes > memory_.size()) {
    fault(fmt::format("{}: {} bytes at shared memory {:#x} are outside of the block's {} bytes", what, bytes,
                      static_cast<int64_t>(offset), memory_.size()));
  }
  if (address % alignment != 0) {
    fault(fmt::format("{}: shared memory {:#x} is not a multiple of {} bytes", what, offset, alignment));
  }
}

void SharedMemory::check_states(const char* what, uint32_t address, uint32_t bytes) const {
  for (uint32_t i = 0; i < bytes; ++i) {
    const State state = states_[offset_of(address) + i];
    if (state == State::in_flight) {
      fault(fmt::format("{}: a copy to shared memory {:#x} is still in flight", what, offset_of(address) + i));
    }
    if (state == State::mbarrier) {
      fault(fmt::format("{}: shared memory {:#x} is an mbarrier", what, offset_of(address) + i));
    }
  }
}

template <class F>
void SharedMemory::for_each_cell(uint32_t offset, uint32_t bytes, const F& visit) {
  for (uint32_t at = offset; at < offset + bytes;) {
    const uint32_t word = at / 4, end = std::min(offset + bytes, 4 * word + 4);
    const bool whole = at % 4 == 0 && end == 4 * word + 4;
    const auto split = byte_cells_.empty() ? byte_cells_.end() : byte_cells_.find(word);
    if (whole && split == byte_cells_.end()) {
      visit(at, cells_[word]);
    } else {
      auto& cells =
          split != byte_cells_.end()
              ? split->second
              : byte_cells_.emplace(word, std::array<Cell, 4>{cells_[word], cells_[word], cells_[word], cells_[word]})
                    .first->second;
      for (uint32_t byte = at; byte < end; ++byte) visit(byte, cells[byte % 4]);
    }
    at = end;
  }
}

void SharedMemory::note_cell(const char* what, uint32_t offset, Cell& cell, const Accessor& by, Access access) {
  const auto race = [&](Epoch other, const char* did) {
    fault(fmt::format("{}: shared memory {:#x} was {} by {}, and nothing orders the two", what, offset, did,
                      agent_name(other)));
  };
  if (cell.write.time != 0 && !by.clocks->knows(cell.write)) {
    if (cell.write_by_copy)
      fault(fmt::format("{}: shared memory {:#x} was filled by a copy whose completion this thread has not waited for",
                        what, offset));
    race(cell.write, "written");
  }
  if (access != Access::atomic) {
    for (const Epoch& other : cell.atomics)
      if (!by.clocks->knows(other)) race(other, "changed atomically");
  }
  if (access == Access::read) return add_epoch(cell.reads, by);
  if (access == Access::async_read) return add_epoch(cell.async_reads, by);
  for (const std::vector<Epoch>* reads : {&cell.reads, &cell.async_reads})
    for (const Epoch& other : *reads)
      if (!by.clocks->knows(other)) race(other, "read");
  if (access == Access::atomic) return add_epoch(cell.atomics, by);
  cell.reads.clear();
  cell.async_reads.clear();
  cell.atomics.clear();
  cell.write = by.epoch;
  cell.write_by_copy = false;
}

void SharedMemory::note(const char* what, uint32_t address, uint32_t bytes, const Accessor& by, Access access) {
  for_each_cell(offset_of(address), bytes,
                [&](uint32_t offset, Cell& cell) { note_cell(what, offset, cell, by, access); });
}

void SharedMemory::load(const char* what, uint32_t address, void* to, uint32_t bytes, const Accessor& by) {
  check_place(what, address, bytes, bytes);
  check_states(what, address, bytes);
  note(what, address, bytes, by, Access::read);
  copy_values(offset_of(address), to, bytes);
}

void SharedMemory::copy_values(uint32_t offset, void* to, uint32_t bytes) const {
  uint8_t* out = static_cast<uint8_t*>(to);
  for (uint32_t i = 0; i < bytes; ++i) {
    const bool has_value = states_[offset + i] == State::value;
    out[i] = has_value ? memory_[offset + i] : static_cast<uint8_t>(poison_word >> 8 * ((offset + i) % 4));
  }
}

void SharedMemory::store(const char* what, uint32_t address, const void* from, uint32_t bytes, const Accessor& by) {
  check_place(what, address, bytes, bytes);
  check_states(what, address, bytes);
  note(what, address, bytes, by, Access::write);
  std::memcpy(memory_.data() + offset_of(address), from, bytes);
  std::memset(states_.data() + offset_of(address), static_cast<int>(State::value), bytes);
}

uint32_t SharedMemory::atomic_add(const char* what, uint32_t address, uint32_t operand, const Accessor& by) {
  check_place(what, address, 4, 4);
  check_states(what, address, 4);
  if (states_[offset_of(address)] == State::empty)
    fault(fmt::format("{}: shared memory {:#x} was never written", what, offset_of(address)));
  note(what, address, 4, by, Access::atomic);
  uint32_t value = 0;
  std::memcpy(&value, memory_.data() + offset_of(address), 4);
  const uint32_t sum = value + operand;
  std::memcpy(memory_.data() + offset_of(address), &sum, 4);
  return value;
}

// An asynchronous write must come after ordinary reads and writes, a read after writes; note() says what nothing orders
// at all.
void SharedMemory::check_fenced(const char* what, uint32_t address, uint32_t bytes, const Accessor& by, Access access) {
  for_each_cell(offset_of(address), bytes, [&](uint32_t offset, Cell& cell) {
    const auto check = [&](Epoch other, const char* did) {
      if (by.fenced->knows(other) || !by.clocks->knows(other)) return;
      fault(
          fmt::format("{}: no proxy fence orders the ordinary {} of shared memory {:#x} by {} before this "
                      "asynchronous operation",
                      what, did, offset, agent_name(other)));
    };
    if (cell.write.time != 0 && !cell.write_by_copy) check(cell.write, "write");
    if (access == Access::write)
      for (const Epoch& other : cell.reads) check(other, "read");
  });
}

void SharedMemory::begin_copy(const char* what, uint32_t address, uint32_t bytes, const Accessor& by, bool async) {
  check_states(what, address, bytes);
  if (async) check_fenced(what, address, bytes, by, Access::write);
  note(what, address, bytes, by, Access::write);
  std::memset(states_.data() + offset_of(address), static_cast<int>(State::in_flight), bytes);
}

void SharedMemory::land_copy(uint32_t address, const void* from, uint32_t bytes, Epoch writer) {
  std::memcpy(memory_.data() + offset_of(address), from, bytes);
  std::memset(states_.data() + offset_of(address), static_cast<int>(State::value), bytes);
  for_each_cell(offset_of(address), bytes, [&](uint32_t, Cell& cell) {
    cell.write = writer;
    cell.write_by_copy = true;
  });
}

void SharedMemory::load_async(const char* what, uint32_t address, void* to, uint32_t bytes, const Accessor& by) {
  check_place(what, address, bytes, 16);
  check_fenced(what, address, bytes, by, Access::async_read);
  check_states(what, address, bytes);
  note(what, address, bytes, by, Access::async_read);
  copy_values(offset_of(address), to, bytes);
}

void SharedMemory::make_mbarrier(uint32_t address, const Accessor& by) {
  check_place("mbarrier_init", address, 8, 8);
  check_states("mbarrier_init", address, 8);
  note("mbarrier_init", address, 8, by, Access::write);
  std::memset(states_.data() + offset_of(address), static_cast<int>(State::mbarrier), 8);
}

}  // namespace fulcrum::emulator
