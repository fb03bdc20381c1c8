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

}  // namespace

void GlobalMemory::Free::operator()(uint8_t* memory) const { ::operator delete(memory, alignment_of_memory); }

void* GlobalMemory::allocate(uint64_t bytes) {
  Allocation allocation;
  allocation.memory.reset(static_cast<uint8_t*>(::operator new(std::max<uint64_t>(bytes, 1), alignment_of_memory)));
  allocation.bytes = bytes;
  allocation.written.resize(bytes, 0);
  allocation.granules.resize(bytes / 16 + 1);
  uint8_t* memory = allocation.memory.get();
  allocations_.emplace(memory, std::move(allocation));
  return memory;
}

bool GlobalMemory::release(void* memory) {
  last_ = nullptr;
  return allocations_.erase(static_cast<const uint8_t*>(memory)) == 1;
}

GlobalMemory::Allocation* GlobalMemory::find(const void* address) {
  const auto* at = static_cast<const uint8_t*>(address);
  const auto holds = [&](const Allocation& a) { return at >= a.memory.get() && at < a.memory.get() + a.bytes; };
  if (last_ != nullptr && holds(*last_)) return last_;
  auto next = allocations_.upper_bound(at);
  if (next == allocations_.begin()) return nullptr;
  Allocation& found = std::prev(next)->second;
  if (!holds(found)) return nullptr;
  return last_ = &found;
}

GlobalMemory::Allocation& GlobalMemory::find_checked(const char* what, const void* address, uint32_t bytes,
                                                     uint32_t alignment) {
  Allocation* allocation = find(address);
  if (allocation == nullptr) fault(fmt::format("{}: {} is not in device memory", what, address));
  const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - allocation->memory.get());
  if (offset + bytes > allocation->bytes) {
    fault(
        fmt::format("{}: {} bytes at {} pass the end of a buffer of {} bytes", what, bytes, offset, allocation->bytes));
  }
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0)
    fault(fmt::format("{}: byte {} of a buffer is not a multiple of {} bytes", what, offset, alignment));
  return *allocation;
}

void GlobalMemory::note_write(void* to, uint64_t bytes, const uint8_t* written) {
  Allocation* target = find(to);
  if (target == nullptr) return;
  const auto offset = static_cast<uint64_t>(static_cast<uint8_t*>(to) - target->memory.get());
  for (uint64_t i = 0; i < bytes && offset + i < target->bytes; ++i)
    target->written[offset + i] = written != nullptr ? written[i] : 1;
}

void GlobalMemory::copy(void* to, const void* from, uint64_t bytes) {
  const Allocation* source = find(from);
  const uint8_t* written =
      source != nullptr ? source->written.data() + (static_cast<const uint8_t*>(from) - source->memory.get()) : nullptr;
  std::memmove(to, from, bytes);
  note_write(to, bytes, written);
}

void GlobalMemory::set(void* memory, int byte, uint64_t bytes) {
  std::memset(memory, byte, bytes);
  note_write(memory, bytes, nullptr);
}

void GlobalMemory::read(const char* what, const void* address, void* to, uint32_t bytes) {
  const Allocation& from = find_checked(what, address, bytes, 1);
  const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - from.memory.get());
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
  const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - from.memory.get());
  Granule& granule = from.granules[offset / 16];
  granule.constant_launch = launch_;
  if (granule.write_launch == launch_)
    fault(fmt::format("{}: byte {} of a buffer was written by this launch and is read as constant", what, offset));
}

void GlobalMemory::store(const char* what, void* address, const void* from, uint32_t bytes) {
  Allocation& to = find_checked(what, address, bytes, bytes);
  const auto offset = static_cast<uint64_t>(static_cast<uint8_t*>(address) - to.memory.get());
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
}

}  // namespace fulcrum::emulator
