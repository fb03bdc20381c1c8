// Emulated tensor copies; a map holds the plain description of its tensor (twin of host/cuda_api.hpp).
#pragma once
#include <fulcrum/core/tensor_map.h>
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

FULCRUM_DEVICE void cp_async_bulk_tensor_2d_shared_global(SharedAddress to, GlobalAddress<const TensorMap> map,
                                                          int32_t x, int32_t y, SharedAddress barrier) {
  emulator::tensor_copy(to.value, map.pointer, x, y, barrier.value);
}

FULCRUM_DEVICE void prefetch_tensormap(GlobalAddress<const TensorMap>) {}

}  // namespace ptx

FULCRUM_NAMESPACE_END
