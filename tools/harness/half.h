// f16 and bf16 as bit patterns: rounding from f32 to nearest even with finite values staying finite, and back.
//
// Used by the data generator and the oracle, on the host and on a GPU.
// Invariant: round_to() gives the bits of cvt.rn.satfinite from f32; tests hold it against every pattern and tie.
#pragma once

#include <fulcrum/core/shape.h>

#include <bit>

namespace fulcrum::harness {

FULCRUM_HD inline uint32_t float_bits(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  return std::bit_cast<uint32_t>(value);
#endif
}

FULCRUM_HD inline float bits_float(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

// `value` >> shift, rounded to nearest even; shift 1 to 31.
FULCRUM_HD constexpr uint32_t shift_rounded(uint32_t value, uint32_t shift) {
  const uint32_t kept = value >> shift, rest = value & ((1u << shift) - 1), half = 1u << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
}

// Largest finite magnitudes, 65504 and 0x1.fep127.
inline constexpr uint32_t max_f16_bits = 0x7BFF, max_bf16_bits = 0x7F7F;

FULCRUM_HD inline uint16_t round_f16(float value) {
  const uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return 0x7FFF;  // NaN
  const int exponent = int(magnitude >> 23) - 127;
  uint32_t rounded = 0;
  if (exponent >= 16) {
    rounded = max_f16_bits;
  } else if (exponent >= -14) {
    // 13 mantissa bits fall away; f16's exponent bias is 112 less. A carry runs on into the exponent.
    rounded = min_of(shift_rounded(magnitude - (112u << 23), 13), max_f16_bits);
  } else if (exponent >= -25) {
    // a multiple of 2^-24: the mantissa with its leading one, shifted by 23 - (exponent + 24)
    rounded = shift_rounded((magnitude & 0x7FFFFF) | 0x800000, uint32_t(-1 - exponent));
  }
  return uint16_t(sign | rounded);
}

FULCRUM_HD inline uint16_t round_bf16(float value) {
  const uint32_t bits = float_bits(value), magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return 0x7FFF;
  return uint16_t((bits >> 16 & 0x8000) | min_of(shift_rounded(magnitude, 16), max_bf16_bits));
}

FULCRUM_HD inline uint16_t round_to(DType dtype, float value) {
  return dtype == DType::f16 ? round_f16(value) : round_bf16(value);
}

FULCRUM_HD inline float value_of(DType dtype, uint16_t bits) {
  if (dtype == DType::bf16) return bits_float(uint32_t(bits) << 16);
  const uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return bits_float(sign | 0x7F800000 | mantissa << 13);
  if (exponent > 0) return bits_float(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = float(mantissa) * 5.9604644775390625e-8f;  // 2^-24
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace fulcrum::harness
