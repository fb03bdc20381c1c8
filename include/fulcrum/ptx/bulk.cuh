// One-dimensional bulk copies (sm_90): the copy engine moves a contiguous run and reports its bytes to an mbarrier.
//
// Called by tile/copies.cuh and tile/ring_bulk.cuh. Invariant: one function per PTX instruction; a copy is only started
// here, its end is seen at the mbarrier alone.
#pragma once
#include <fulcrum/ptx/cache_policy.cuh>
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

// Global to shared memory; addresses 16-byte aligned, `bytes` a positive multiple of 16.
FULCRUM_DEVICE void cp_async_bulk_shared_global(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes,
                                                SharedAddress barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to.value),
      "l"(from.pointer), "r"(bytes), "r"(barrier.value)
      : "memory");
}

// The same, with what the L2 cache is to do with the lines.
FULCRUM_DEVICE void cp_async_bulk_shared_global_hint(SharedAddress to, GlobalAddress<const uint8_t> from,
                                                     uint32_t bytes, SharedAddress barrier, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(to.value),
      "l"(from.pointer), "r"(bytes), "r"(barrier.value), "l"(policy.word)
      : "memory");
}

// Orders this thread's ordinary shared-memory accesses before later ones of the copy engine.
FULCRUM_DEVICE void fence_proxy_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace ptx

FULCRUM_NAMESPACE_END
