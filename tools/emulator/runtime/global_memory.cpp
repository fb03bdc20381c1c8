// Allocations and their checks; see global_memory.hpp.
#include "runtime/global_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/fault.hpp"
#include "runtime/shared_memory.hpp"

namespace fulcrum::emulator {
namespace {

constexpr std::align_val_t alignment_of_memory{256};
constexpr uint64_t gap_bytes = 4096;  // before and behind each buffer, so that leaving one does not enter another

}  // namespace

void GlobalMemory::Free::operator()(uint8_t* memory) const { ::operator delete(memory, alignment_of_memory); }

uint8_t* GlobalMemory::Allocation::memory() const { return block.get() + gap_bytes; }

void* GlobalMemory::allocate(uint64_t bytes) {
  Allocation allocation;
  allocation.block.reset(static_cast<uint8_t*>(::operator new(bytes + 2 * gap_bytes, alignment_of_memory)));
  allocation.bytes = bytes;
  allocation.written.resize(bytes, 0);
  allocation.granules.resize(bytes / 16 + 1);
  allocation.stores.resize(bytes / 2 + 1);
  uint8_t* memory = allocation.memory();
  allocations_.emplace(memory, std::move(allocation));
  return memory;
}

bool GlobalMemory::release(void* memory) {
  last_ = nullptr;
  return allocations_.erase(static_cast<const uint8_t*>(memory)) == 1;
}

GlobalMemory::Allocation* GlobalMemory::find(const void* address) {
  const auto* at = static_cast<const uint8_t*>(address);
  const auto holds = [&](const Allocation& a) { return at >= a.memory() && at < a.memory() + a.bytes; };
  if (last_ != nullptr && holds(*last_)) return last_;
  auto next = allocations_.upper_bound(at);
  if (next == allocations_.begin()) return nullptr;
  Allocation& found = std::prev(next)->second;
  if (!holds(found)) return nullptr;
  return last_ = &found;
}

void GlobalMemory::report_outside(const char* what, const void* address, uint32_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const auto& [memory, allocation] : allocations_) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    if (at + gap_bytes < begin || at >= begin + allocation.bytes + gap_bytes) continue;
    fault(fmt::format("{}: {} bytes at {} leave a buffer of {} bytes", what, bytes, static_cast<int64_t>(at - begin),
                      allocation.bytes));
  }
  fault(fmt::format("{}: {} is not in device memory", what, address));
}

GlobalMemory::Allocation& GlobalMemory::find_checked(const char* what, const void* address, uint32_t bytes,
                                                     uint32_t alignment) {
  Allocation* allocation = find(address);
  if (allocation == nullptr) report_outside(what, address, bytes);
  const uint64_t offset = allocation->offset_of(address);
  if (offset + bytes > allocation->bytes) report_outside(what, address, bytes);
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0)
    fault(fmt::format("{}: byte {} of a buffer is not a multiple of {} bytes", what, offset, alignment));
  return *allocation;
}

void GlobalMemory::note_write(void* to, uint64_t bytes, const uint8_t* written) {
  Allocation* target = find(to);
  if (target == nullptr) return;
  const uint64_t offset = target->offset_of(to);
  for (uint64_t i = 0; i < bytes && offset + i < target->bytes; ++i)
    target->written[offset + i] = written != nullptr ? written[i] : 1;
}

void GlobalMemory::begin_launch() {
  ++launch_;
  released_.clear();
}

void GlobalMemory::copy(void* to, const void* from, uint64_t bytes) {
  const Allocation* source = find(from);
  const uint8_t* written = source != nullptr ? source->written.data() + source->offset_of(from) : nullptr;
  std::memmove(to, from, bytes);
  note_write(to, bytes, written);
}

void GlobalMemory::set(void* memory, int byte, uint64_t bytes) {
  std::memset(memory, byte, bytes);
  note_write(memory, bytes, nullptr);
}

void GlobalMemory::read(const char* what, const void* address, void* to, uint32_t bytes) {
  const Allocation& from = find_checked(what, address, bytes, 1);
  const uint64_t offset = from.offset_of(address);
  for (uint32_t i = 0; i < bytes; ++i) {
    if (from.written[offset + i] == 0)
      fault(fmt::format("{}: byte {} of a buffer of {} bytes was never written", what, offset + i, from.bytes));
  }
  std::memcpy(to, address, bytes);
}

void GlobalMemory::load(const char* what, const void* address, void* to, uint32_t bytes, bool constant) {
  Allocation& from = find_checked(what, address, bytes, bytes);
  read(what, address, to, bytes);
  if (!constant) return;
  const uint64_t offset = from.offset_of(address);
  Granule& granule = from.granules[offset / 16];
  granule.constant_launch = launch_;
  if (granule.write_launch == launch_)
    fault(fmt::format("{}: byte {} of a buffer was written by this launch and is read as constant", what, offset));
}

void GlobalMemory::load_ordered(const char* what, const void* address, void* to, uint32_t bytes,
                                const GridAccessor& by) {
  load(what, address, to, bytes, false);
  const Allocation& from = *find(address);
  const uint64_t offset = from.offset_of(address);
  for (uint32_t i = 0; i + 2 <= bytes; i += 2) {
    const Store& last = from.stores[(offset + i) / 2];
    if (last.launch != launch_ || last.is_by(by) || by.knows(last.block, last.epoch)) continue;
    fault(
        fmt::format("{}: byte {} of a buffer of {} bytes was stored by block {} thread {}, and nothing orders the two",
                    what, offset + i, from.bytes, last.block, last.epoch.agent));
  }
}

void GlobalMemory::store(const char* what, void* address, const void* from, uint32_t bytes, const GridAccessor& by) {
  Allocation& to = put(what, address, from, bytes);
  const uint64_t offset = to.offset_of(address);
  for (uint32_t i = 0; i + 2 <= bytes; i += 2) {
    Store& last = to.stores[(offset + i) / 2];
    if (last.launch == launch_ && !last.is_by(by)) {
      fault(fmt::format("{}: byte {} of a buffer of {} bytes was stored by another thread of this launch", what,
                        offset + i, to.bytes));
    }
    last = {launch_, by.block, by.epoch};
  }
}

void GlobalMemory::update(const char* what, void* address, const void* from, uint32_t bytes) {
  put(what, address, from, bytes);
}

GlobalMemory::Allocation& GlobalMemory::put(const char* what, void* address, const void* from, uint32_t bytes) {
  Allocation& to = find_checked(what, address, bytes, bytes);
  const uint64_t offset = to.offset_of(address);
  for (uint32_t i = 0; i + 4 <= bytes; i += 4) {
    uint32_t word = 0;
    std::memcpy(&word, static_cast<const uint8_t*>(from) + i, 4);
    if (word == poison_word)
      fault(fmt::format("{}: byte {} of a buffer would get a value that comes from memory nobody wrote", what,
                        offset + i));
  }
  Granule& granule = to.granules[offset / 16];
  granule.write_launch = launch_;
  if (granule.constant_launch == launch_)
    fault(fmt::format("{}: byte {} of a buffer is written, and this launch read it as constant", what, offset));
  std::memcpy(address, from, bytes);
  std::memset(to.written.data() + offset, 1, bytes);
  return to;
}

}  // namespace fulcrum::emulator
