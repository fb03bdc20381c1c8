// mbarrier (sm_90 forms): an 8-byte object in shared memory on which threads arrive, copies deposit bytes, and waiters
// wait for the phase of a given parity to complete.
//
// Called by tile/ring_bulk.cuh. Invariant: one function per PTX instruction; an arrival releases, a wait acquires.
#pragma once
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

FULCRUM_DEVICE void mbarrier_init(SharedAddress barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier.value), "r"(arrivals) : "memory");
}

// Makes initialized barriers visible to the copy engine (async proxy).
FULCRUM_DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Arrives once and adds `bytes` to what copies still owe this phase.
FULCRUM_DEVICE void mbarrier_arrive_expect_tx(SharedAddress barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier.value), "r"(bytes) : "memory");
}

FULCRUM_DEVICE void mbarrier_arrive(SharedAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier.value) : "memory");
}

// Arrives once when all cp.async copies that this thread has issued so far have landed; the barrier counts this
// arrival.
FULCRUM_DEVICE void cp_async_mbarrier_arrive_noinc(SharedAddress barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier.value) : "memory");
}

// Waits for the completion of the phase of this parity (acquire).
FULCRUM_DEVICE void mbarrier_wait_parity(SharedAddress barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(barrier.value),
      "r"(parity)
      : "memory");
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
