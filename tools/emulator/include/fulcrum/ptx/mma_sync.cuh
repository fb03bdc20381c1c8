// Emulated mma.sync m16n8k16: exact products, summed with the accumulator and rounded once to f32.
#pragma once
#include <emulator/device.h>
#include <fulcrum/core/shape.h>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

template <DType dtype>
FULCRUM_DEVICE void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  emulator::MmaLane lane{d, a, {b0, b1}};
  emulator::meet_warp(__func__, &lane,
                      [](void* const* lanes) { emulator::multiply_m16n8k16(dtype == DType::f16, lanes); });
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
