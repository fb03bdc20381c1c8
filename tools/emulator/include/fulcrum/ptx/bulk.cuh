// Emulated bulk copies and the fence before them.
#pragma once
#include <fulcrum/ptx/cache_policy.cuh>
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

FULCRUM_DEVICE void cp_async_bulk_shared_global(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes,
                                                SharedAddress barrier) {
  emulator::bulk_copy(to.value, from.pointer, bytes, barrier.value);
}

FULCRUM_DEVICE void cp_async_bulk_shared_global_hint(SharedAddress to, GlobalAddress<const uint8_t> from,
                                                     uint32_t bytes, SharedAddress barrier, CachePolicy policy) {
  emulator::check_cache_policy(__func__, policy.word);
  emulator::bulk_copy(to.value, from.pointer, bytes, barrier.value);
}

FULCRUM_DEVICE void fence_proxy_async_shared() { emulator::fence_async_proxy(); }

}  // namespace ptx

FULCRUM_NAMESPACE_END
