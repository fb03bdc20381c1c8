// Atomic operations on global and shared memory. Relaxed unless the name says otherwise; gpu scope on global memory.
//
// Called by tile/scheduler.cuh (tickets), layer/counting_sort.cuh (counts) and pack/repack.cuh (refusals).
// Invariant: one function per PTX instruction, named after it; each returns the value from before.
#pragma once
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

FULCRUM_DEVICE uint32_t atom_global_add_u32(GlobalAddress<uint32_t> address, uint32_t value) {
  uint32_t old;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(address.pointer), "r"(value)
               : "memory");
  return old;
}

// Orders this thread's earlier accesses before the addition, and the addition before its later ones.
FULCRUM_DEVICE uint32_t atom_acq_rel_global_add_u32(GlobalAddress<uint32_t> address, uint32_t value) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(address.pointer), "r"(value)
               : "memory");
  return old;
}

FULCRUM_DEVICE uint64_t atom_global_min_u64(GlobalAddress<uint64_t> address, uint64_t value) {
  uint64_t old;
  asm volatile("atom.relaxed.gpu.global.min.u64 %0, [%1], %2;"
               : "=l"(old)
               : "l"(address.pointer), "l"(value)
               : "memory");
  return old;
}

FULCRUM_DEVICE uint32_t atom_shared_add_u32(SharedAddress address, uint32_t value) {
  uint32_t old;
  asm volatile("atom.relaxed.cta.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(address.value), "r"(value) : "memory");
  return old;
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
