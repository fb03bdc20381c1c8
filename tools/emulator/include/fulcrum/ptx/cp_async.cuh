// Emulated cp.async: a copy lands when its thread waits for its group, not before.
#pragma once
#include <fulcrum/ptx/cache_policy.cuh>
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

FULCRUM_DEVICE void cp_async_cg_16(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes) {
  emulator::cp_async(__func__, to.value, from.pointer, 16, bytes);
}

FULCRUM_DEVICE void cp_async_cg_16_hint(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes,
                                        CachePolicy policy) {
  emulator::check_cache_policy(__func__, policy.word);
  emulator::cp_async(__func__, to.value, from.pointer, 16, bytes);
}

FULCRUM_DEVICE void cp_async_ca_4(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes) {
  emulator::cp_async(__func__, to.value, from.pointer, 4, bytes);
}

FULCRUM_DEVICE void cp_async_commit_group() { emulator::commit_cp_async(); }

template <int pending>
FULCRUM_DEVICE void cp_async_wait_group() {
  emulator::wait_cp_async(pending);
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
