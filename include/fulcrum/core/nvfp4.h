// Exact NVFP4 numbers: E2M1 codes, E4M3 block scales, and the E5M3 scale byte that kernels read.
// Called by pack/ (both directions), the oracle and tests; every function is constexpr and exact.
// Sources: OCP Microscaling Formats (MX) v1.0 for E2M1, OCP 8-bit Floating Point (OFP8) v1.0 for E4M3.
#pragma once
#include <fulcrum/core/types.h>

FULCRUM_NAMESPACE_BEGIN

inline constexpr uint32_t scale_group = 16;  // weights along k that share one scale

// Kernels multiply by code * scale * 2^-dequant_fold: an E5M3 scale byte read as f16 is scale * 2^7 and an E2M1 code
// read as f16 is code * 2^-14 (bf16: 2^119 and 2^-126). The epilogue multiplies by global * 2^dequant_fold.
inline constexpr int dequant_fold = 7;
inline constexpr float dequant_fold_factor = 128.0f;

// Value of E2M1 code 0..15; bit 3 is the sign. 0, 0.5, 1, 1.5, 2, 3, 4, 6.
FULCRUM_HD constexpr float e2m1_value(uint32_t code) {
  const uint32_t exponent = (code >> 1) & 3, mantissa = code & 1;
  const float magnitude =
      exponent == 0 ? 0.5f * float(mantissa) : 0.5f * float(2 + mantissa) * float(1u << (exponent - 1));
  return (code & 8) ? -magnitude : magnitude;
}

// 2^exponent as a float, for small exponents.
FULCRUM_HD constexpr float exp2_int(int exponent) {
  float value = 1.0f;
  for (; exponent > 0; --exponent) value *= 2.0f;
  for (; exponent < 0; ++exponent) value *= 0.5f;
  return value;
}

// E4M3 (OFP8, "FN"): no infinity, NaN at 0x7F and 0xFF.
FULCRUM_HD constexpr bool e4m3_is_nan(uint32_t byte) { return (byte & 0x7F) == 0x7F; }

// Value of an E4M3 byte that is not NaN. Largest 448, smallest subnormal 2^-9.
FULCRUM_HD constexpr float e4m3_value(uint32_t byte) {
  const int exponent = int(byte >> 3) & 15;
  const uint32_t mantissa = byte & 7;
  const float magnitude =
      exponent == 0 ? float(mantissa) * exp2_int(-9) : float(8 + mantissa) * exp2_int(exponent - 10);
  return (byte & 0x80) ? -magnitude : magnitude;
}

// E4M3 magnitude (0..0x7E) -> E5M3: f16's five exponent bits and three mantissa bits of scale * 2^7, so that the byte
// shifted left by 7 is an f16. E4M3's subnormals become normal. 0 -> 0.
FULCRUM_HD constexpr uint32_t e5m3_from_e4m3(uint32_t byte) {
  int exponent = int(byte >> 3) & 15;
  uint32_t mantissa = byte & 7;
  if (exponent == 0) {
    if (mantissa == 0) return 0;
    exponent = 1;
    while (!(mantissa & 8)) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 7;
  }
  // biased f16 exponent = (exponent - 7) + 7 + 15
  return uint32_t(exponent + 15) << 3 | mantissa;
}

// Inverse of e5m3_from_e4m3 on its range.
FULCRUM_HD constexpr uint32_t e4m3_from_e5m3(uint32_t byte) {
  if (byte == 0) return 0;
  const int exponent = int(byte >> 3) - 15;
  const uint32_t mantissa = byte & 7;
  if (exponent >= 1) return uint32_t(exponent) << 3 | mantissa;
  return (8 | mantissa) >> (1 - exponent);
}

FULCRUM_NAMESPACE_END
