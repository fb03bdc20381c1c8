// Emulated places, barriers, votes and shuffles.
#pragma once
#include <emulator/device.h>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

inline constexpr uint32_t full_warp = 0xFFFFFFFFu;

FULCRUM_DEVICE uint32_t thread_index() { return emulator::place->thread; }
FULCRUM_DEVICE uint32_t block_index() { return emulator::place->block; }
FULCRUM_DEVICE uint32_t num_blocks() { return emulator::place->num_blocks; }
FULCRUM_DEVICE uint32_t num_threads() { return emulator::place->num_threads; }
FULCRUM_DEVICE uint32_t lane_index() { return thread_index() % 32; }

namespace emulated {

// A lane's part of a vote or a shuffle: the value it gives, which lane it asks, and what it gets.
struct Exchange {
  uint32_t value, operand, result;
};

inline Exchange& exchange_of(void* const* records, uint32_t lane) { return *static_cast<Exchange*>(records[lane]); }

// All lanes meet; combine(records, lane) makes each lane's result.
template <uint32_t (*combine)(void* const*, uint32_t)>
uint32_t exchange(const char* what, uint32_t value, uint32_t operand = 0) {
  Exchange own{value, operand, 0};
  emulator::meet_warp(what, &own, [](void* const* records) {
    for (uint32_t lane = 0; lane < 32; ++lane) exchange_of(records, lane).result = combine(records, lane);
  });
  return own.result;
}

inline uint32_t bitwise_or(void* const* records, uint32_t) {
  uint32_t all = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) all |= exchange_of(records, lane).value;
  return all;
}
inline uint32_t votes(void* const* records, uint32_t) {
  uint32_t all = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) all |= (exchange_of(records, lane).value != 0 ? 1u : 0u) << lane;
  return all;
}
inline uint32_t equal_lanes(void* const* records, uint32_t own) {
  uint32_t all = 0;
  for (uint32_t lane = 0; lane < 32; ++lane)
    all |= (exchange_of(records, lane).value == exchange_of(records, own).value ? 1u : 0u) << lane;
  return all;
}
// A lane that would be outside of the warp is the asking one.
inline uint32_t from_lane(void* const* records, uint32_t own) {
  return exchange_of(records, exchange_of(records, own).operand % 32).value;
}
inline uint32_t from_lower(void* const* records, uint32_t own) {
  const uint32_t delta = exchange_of(records, own).operand;
  return exchange_of(records, delta <= own ? own - delta : own).value;
}
inline uint32_t from_crossed(void* const* records, uint32_t own) {
  const uint32_t other = own ^ exchange_of(records, own).operand;
  return exchange_of(records, other < 32 ? other : own).value;
}

}  // namespace emulated

FULCRUM_DEVICE uint32_t redux_or(uint32_t value) { return emulated::exchange<emulated::bitwise_or>(__func__, value); }

FULCRUM_DEVICE uint32_t warp_index() { return redux_or(thread_index() / 32); }

FULCRUM_DEVICE void barrier_sync() { emulator::sync_block(); }

enum class NamedBarrier : uint32_t { producers = 1 };

FULCRUM_DEVICE void barrier_sync(NamedBarrier barrier, uint32_t threads) {
  emulator::sync_threads(uint32_t(barrier), threads);
}

FULCRUM_DEVICE void bar_warp_sync() { emulator::sync_warp(); }

FULCRUM_DEVICE uint32_t ballot(bool predicate) { return emulated::exchange<emulated::votes>(__func__, predicate); }
FULCRUM_DEVICE uint32_t match_any(uint32_t value) { return emulated::exchange<emulated::equal_lanes>(__func__, value); }
FULCRUM_DEVICE uint32_t shfl_idx(uint32_t value, uint32_t lane) {
  return emulated::exchange<emulated::from_lane>(__func__, value, lane);
}
FULCRUM_DEVICE uint32_t shfl_up(uint32_t value, uint32_t delta) {
  return emulated::exchange<emulated::from_lower>(__func__, value, delta);
}
FULCRUM_DEVICE uint32_t shfl_bfly(uint32_t value, uint32_t mask) {
  return emulated::exchange<emulated::from_crossed>(__func__, value, mask);
}

FULCRUM_DEVICE uint32_t popc(uint32_t value) { return uint32_t(__builtin_popcount(value)); }

}  // namespace ptx

FULCRUM_NAMESPACE_END
