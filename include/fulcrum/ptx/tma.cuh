// Tensor copies (sm_90): the copy engine moves a box of a matrix, as a tensor map describes it, and reports its bytes
// to an mbarrier.
//
// Called by the rings whose tokens come by tensor copies. Invariant: one function per PTX instruction; a copy is only
// started here, by one thread, and its end is seen at the mbarrier alone.
#pragma once
#include <fulcrum/core/tensor_map.h>
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

// The box whose first element is column x of row y (either may be negative, or past the end: zeros arrive) to shared
// memory at a multiple of 128 bytes, 1024 with a swizzle. Whatever part lies inside, the mbarrier gets box_bytes().
// x is a multiple of 16 bytes: an H200 calls the instruction illegal at any other.
FULCRUM_DEVICE void cp_async_bulk_tensor_2d_shared_global(SharedAddress to, GlobalAddress<const TensorMap> map,
                                                          int32_t x, int32_t y, SharedAddress barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
      "[%4];" ::"r"(to.value),
      "l"(map.pointer), "r"(x), "r"(y), "r"(barrier.value)
      : "memory");
}

// Fetches a map before the first copy that needs it. Generic addressing: a kernel parameter will do.
FULCRUM_DEVICE void prefetch_tensormap(GlobalAddress<const TensorMap> map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map.pointer) : "memory");
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
