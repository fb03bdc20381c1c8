// Emulated atomic operations. Blocks of the emulator run as fibers of one host thread, so each is one step.
#pragma once
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

namespace emulated {
inline uint64_t add_u32(uint64_t value, uint64_t operand) { return uint32_t(value + operand); }
inline uint64_t min_u64(uint64_t value, uint64_t operand) { return min_of(value, operand); }
}  // namespace emulated

FULCRUM_DEVICE uint32_t atom_global_add_u32(GlobalAddress<uint32_t> address, uint32_t value) {
  return uint32_t(emulator::atomic_global(__func__, address.pointer, 4, value, emulated::add_u32));
}

FULCRUM_DEVICE uint32_t atom_acq_rel_global_add_u32(GlobalAddress<uint32_t> address, uint32_t value) {
  return uint32_t(
      emulator::atomic_global(__func__, address.pointer, 4, value, emulated::add_u32, emulator::AtomicOrder::acq_rel));
}

FULCRUM_DEVICE uint64_t atom_global_min_u64(GlobalAddress<uint64_t> address, uint64_t value) {
  return emulator::atomic_global(__func__, address.pointer, 8, value, emulated::min_u64);
}

FULCRUM_DEVICE uint32_t atom_shared_add_u32(SharedAddress address, uint32_t value) {
  return emulator::atomic_shared_add(__func__, address.value, value);
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
