// Emulated arithmetic on pairs of 16-bit floats, conversions, and the bit operations of dequantization.
#pragma once
#include <emulator/device.h>
#include <fulcrum/core/shape.h>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

template <DType dtype>
FULCRUM_DEVICE uint32_t mul_x2(uint32_t a, uint32_t b) {
  return emulator::mul_x2(dtype == DType::f16, a, b);
}

template <DType dtype>
FULCRUM_DEVICE uint32_t cvt_satfinite_x2(float low, float high) {
  return emulator::cvt_satfinite_x2(dtype == DType::f16, low, high);
}

FULCRUM_DEVICE uint32_t cvt_low_f16x2_e4m3x2(uint32_t word) { return emulator::cvt_f16x2_e4m3x2(word & 0xFFFF); }
FULCRUM_DEVICE uint32_t cvt_high_f16x2_e4m3x2(uint32_t word) { return emulator::cvt_f16x2_e4m3x2(word >> 16); }

FULCRUM_DEVICE uint32_t prmt(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = uint64_t(high) << 32 | low;
  uint32_t picked = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t nibble = selector >> 4 * i & 15, byte = uint32_t(bytes >> 8 * (nibble & 7)) & 0xFF;
    picked |= ((nibble & 8) == 0 ? byte : (byte & 0x80) != 0 ? 0xFFu : 0u) << 8 * i;
  }
  return picked;
}

FULCRUM_DEVICE uint32_t mov_low_x2(uint32_t pair) { return (pair & 0xFFFF) | pair << 16; }
FULCRUM_DEVICE uint32_t mov_high_x2(uint32_t pair) { return pair >> 16 | (pair & 0xFFFF0000u); }

FULCRUM_DEVICE uint32_t shf_l_wrap(uint32_t value, uint32_t bits) {
  return value << (bits & 31) | value >> (-bits & 31);
}

FULCRUM_DEVICE uint32_t lop3_and_or(uint32_t a, uint32_t b, uint32_t c) { return (a & b) | c; }

FULCRUM_DEVICE float ex2_approx(float x) { return emulator::approximate_ex2(x); }
FULCRUM_DEVICE float rcp_approx(float x) { return emulator::approximate_rcp(x); }

FULCRUM_DEVICE uint32_t mov_register(uint32_t constant) { return constant; }

}  // namespace ptx

FULCRUM_NAMESPACE_END
