// cp.async (sm_80): copies of 16 or 4 bytes from global to shared memory that threads issue and wait for in groups.
//
// Called by tile/copies.cuh, the rings and pack/repack_rows.cuh.
// Invariant: one function per PTX instruction; a thread's wait covers its own copies only.
#pragma once
#include <fulcrum/ptx/cache_policy.cuh>
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

// Copies `bytes` (0 to 16) and fills the rest of the 16 with zeros; bypasses L1. Both addresses 16-byte aligned.
FULCRUM_DEVICE void cp_async_cg_16(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to.value), "l"(from.pointer), "r"(bytes)
               : "memory");
}

// The same, with what the L2 cache is to do with the lines.
FULCRUM_DEVICE void cp_async_cg_16_hint(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes,
                                        CachePolicy policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to.value), "l"(from.pointer),
               "r"(bytes), "l"(policy.word)
               : "memory");
}

// Copies `bytes` (0 to 4) and fills the rest of the 4 with zeros. Both addresses 4-byte aligned.
FULCRUM_DEVICE void cp_async_ca_4(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to.value), "l"(from.pointer), "r"(bytes)
               : "memory");
}

FULCRUM_DEVICE void cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` of this thread's newest groups are incomplete.
template <int pending>
FULCRUM_DEVICE void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
