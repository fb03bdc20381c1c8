// Arithmetic on pairs of 16-bit floats held in 32-bit registers, conversions, and the bit operations of dequantization.
//
// Called by tile/dequant.cuh and tile/epilogue.cuh.
// Invariant: every rounding is stated; 16-bit floats are bit patterns, so no CUDA header is needed.
#pragma once
#include <fulcrum/core/shape.h>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

// Both lanes' products, rounded to nearest even; subnormals are kept. sm_80 has bf16x2 fma but no mul (sm_90), and
// a * b + (-0) is a * b with its sign of zero.
template <DType dtype>
FULCRUM_DEVICE uint32_t mul_x2(uint32_t a, uint32_t b) {
  uint32_t product;
  if constexpr (dtype == DType::f16) {
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  } else {
#if __CUDA_ARCH__ >= 900
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
#else
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(a), "r"(b), "r"(0x80008000u));
#endif
  }
  return product;
}

// Two f32 to a pair (low in the low half), to nearest even; finite values beyond the range become the largest finite
// value, NaN stays NaN.
template <DType dtype>
FULCRUM_DEVICE uint32_t cvt_satfinite_x2(float low, float high) {
  uint32_t pair;
  if constexpr (dtype == DType::f16)
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.satfinite.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Two E4M3 bytes to a pair (the lower byte in the low half), exactly; NaN is 0x7FFF. The bytes are the low or the high
// half of a word, which the conversion selects itself. sm_89.
FULCRUM_DEVICE uint32_t cvt_low_f16x2_e4m3x2(uint32_t word) {
  uint32_t pair;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.rn.f16x2.e4m3x2 %0, low;\n}" : "=r"(pair) : "r"(word));
  return pair;
}

FULCRUM_DEVICE uint32_t cvt_high_f16x2_e4m3x2(uint32_t word) {
  uint32_t pair;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.rn.f16x2.e4m3x2 %0, high;\n}" : "=r"(pair) : "r"(word));
  return pair;
}

// Bytes of {high, low} picked by the four selector nibbles; bit 3 of a nibble replicates the byte's sign instead.
FULCRUM_DEVICE uint32_t prmt(uint32_t low, uint32_t high, uint32_t selector) {
  uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selector));
  return bytes;
}

// Both halves set to the low or the high one. As 16-bit moves: the multiply that follows selects the half itself.
FULCRUM_DEVICE uint32_t mov_low_x2(uint32_t pair) {
  uint32_t both;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\nmov.b32 %0, {low, low};\n}" : "=r"(both) : "r"(pair));
  return both;
}

FULCRUM_DEVICE uint32_t mov_high_x2(uint32_t pair) {
  uint32_t both;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\nmov.b32 %0, {high, high};\n}" : "=r"(both) : "r"(pair));
  return both;
}

// Rotates left.
FULCRUM_DEVICE uint32_t shf_l_wrap(uint32_t value, uint32_t bits) { return __funnelshift_l(value, value, bits); }

// (a & b) | c in one instruction, with c in a register. lop3's table is the function of 0xF0, 0xCC, 0xAA.
FULCRUM_DEVICE uint32_t lop3_and_or(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t value;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(value) : "r"(a), "r"(b), "r"(c));
  return value;
}

// e^x and 1/x in the hardware's approximation: 2 ulp + 2^-21.4 and 1 ulp (PTX ISA).
FULCRUM_DEVICE float ex2_approx(float x) {
  float value;
  asm("ex2.approx.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}

FULCRUM_DEVICE float rcp_approx(float x) {
  float value;
  asm("rcp.approx.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}

// A constant that the compiler must keep in a register.
FULCRUM_DEVICE uint32_t mov_register(uint32_t constant) {
  uint32_t value;
  asm volatile("mov.u32 %0, %1;" : "=r"(value) : "r"(constant));
  return value;
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
