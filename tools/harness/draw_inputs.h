// Tokens and epilogue factors as pure functions of (data, seed, position): the same values on the host and on a GPU.
//
// Used by inputs of ProblemOnDevice and by the CPU oracle's tests.
// Invariant: under exact data every product of token, code and scale is a multiple of u = 2^-4 (code 2^-1, scale
// mantissa 2^-3) and the magnitudes of a row sum to less than 2^22 u, so f32 sums are exact in any order; the other
// factors are powers of two and the bias is a multiple of 2^-4 of at most 2, which f32 holds beside the sum.
#pragma once

#include "harness/checkpoint_bytes.h"
#include "harness/half.h"

namespace fulcrum::harness {

// exact: every variant must equal the oracle bit for bit. random: within the derived bound; what is timed.
enum class Data : uint8_t { exact, random };
constexpr const char* data_name(Data data) { return data == Data::exact ? "exact" : "random"; }
constexpr ScaleDraw scale_draw(Data data) { return data == Data::exact ? ScaleDraw::exact : ScaleDraw::model; }

// Streams of random bits, apart from those of the checkpoint (seed * 4 .. seed * 4 + 3).
enum class DrawStream : uint64_t { tokens = 1, row_scales, bias, pair_weights };
FULCRUM_HD constexpr uint64_t stream_bits(DrawStream stream, uint64_t seed, uint64_t index) {
  return mixed_bits(~(seed * 8 + uint64_t(stream)), index);
}

// The largest product is 6 * 1.875 * 2 = 22.5; k of them reach 2^22 u = 2^18 at k = 11,650. So tokens are -2..2 up to
// k = 8192 and -1 or 1 beyond; past k = 16,384 some are zero, evenly spread, so that at most 16,384 are not.
FULCRUM_HD inline float draw_exact_token(uint32_t k, uint32_t column, uint64_t bits) {
  if (k <= 8192) return float(int(bits % 5) - 2);
  const uint32_t thinning = ceil_div(k, 16384u);
  return column % thinning != 0 ? 0.0f : bits & 1 ? 1.0f : -1.0f;
}

FULCRUM_HD inline uint16_t draw_token(Data data, DType dtype, uint64_t seed, uint32_t k, uint64_t row,
                                      uint32_t column) {
  const uint64_t bits = stream_bits(DrawStream::tokens, seed, row * k + column);
  if (data == Data::exact) return round_to(dtype, draw_exact_token(k, column, bits));
  // the sum of four uniform draws: a bell about 0 within -4..4, of deviation 1.15
  const int sum = int(bits & 0xFFFF) + int(bits >> 16 & 0xFFFF) + int(bits >> 32 & 0xFFFF) + int(bits >> 48);
  return round_to(dtype, float(sum - 2 * 0xFFFF) * (1.0f / 32768));
}

FULCRUM_HD inline float draw_row_scale(Data data, uint64_t seed, uint64_t row) {
  const uint64_t bits = stream_bits(DrawStream::row_scales, seed, row);
  if (data == Data::exact) return exp2_int(int(bits % 3) - 1);
  return 0.5f + float(bits >> 40) * (1.5f / 16777216);  // 0.5 to 2
}

FULCRUM_HD inline float draw_bias(Data data, uint64_t seed, uint64_t index) {
  const uint64_t bits = stream_bits(DrawStream::bias, seed, index);
  if (data == Data::exact) return float(int(bits % 65) - 32) * 0.0625f;
  return float(int(bits >> 40) - (1 << 23)) * (1.0f / (1 << 23));  // -1 to 1
}

// Under random data the routing's own weights are used instead.
FULCRUM_HD inline float draw_exact_pair_weight(uint64_t seed, uint64_t pair) {
  return exp2_int(-int(stream_bits(DrawStream::pair_weights, seed, pair) % 3));
}

}  // namespace fulcrum::harness
