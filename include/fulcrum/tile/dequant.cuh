// Dequantization in registers: a 32-bit word of eight E2M1 codes and two scales to four pairs of 16-bit floats.
// Exact: code * scale needs 6 significant bits, and the product comes out as code * scale * 2^-dequant_fold, which
// neither f16 nor bf16 rounds for any of 16 codes x 127 scales.
#pragma once
#include <fulcrum/core/config.h>
#include <fulcrum/ptx/cvt.cuh>

FULCRUM_NAMESPACE_BEGIN

// The scales of a lane's rows r and r + 8, each in both halves.
struct UnitScales {
  uint32_t row, row_8;
};

// What codes are before the scale: code * 2^-14 (f16) or 2^-126 (bf16) when its bits are placed in the 16-bit type,
// code itself when a table gives whole values. Scales carry the rest: 2^7, 2^119, or 2^-7 with a table (which carries
// it for converted f16 scales).
template <DType dtype, CodeWord code_word, Dequant method, ScaleDecode decode>
struct Dequantizer {
  static constexpr bool is_f16 = dtype == DType::f16;
  // Exponent and mantissa bits of a code in each half: f16's mantissa has 10 bits, bf16's 7.
  static constexpr uint32_t magnitude_mask = is_f16 ? 0x0E000E00u : 0x01C001C0u;
  static constexpr uint32_t sign_mask = 0x80008000u;
  static constexpr int magnitude_shift = is_f16 ? 9 : 6;
  // Top bytes of the magnitudes 0 .5 1 1.5 and 2 3 4 6, with 2^-7 for converted f16 scales.
  static constexpr bool folded = is_f16 && decode == ScaleDecode::cvt;
  static constexpr uint32_t low_table = folded ? 0x22201C00u : is_f16 ? 0x3E3C3800u : 0x3F3F3F00u;
  static constexpr uint32_t high_table = folded ? 0x2A282624u : is_f16 ? 0x46444240u : 0x40404040u;

  uint32_t scale_exponent = 0;  // bf16 code words: 2^224 of exponent, kept in a register for one LOP3

  FULCRUM_DEVICE Dequantizer() {
    if constexpr (code_word == CodeWord::bf16) scale_exponent = ptx::mov_register(0x70007000u);
  }

  // One turn of a scale word as 16-bit floats.
  FULCRUM_DEVICE UnitScales scales(uint32_t word, int turn) const {
    if constexpr (decode == ScaleDecode::cvt) {  // a row's two turns lie side by side: one conversion serves both
      const uint32_t row = converted(ptx::cvt_low_f16x2_e4m3x2(word)),
                     row_8 = converted(ptx::cvt_high_f16x2_e4m3x2(word));
      return turn == 0 ? UnitScales{ptx::mov_low_x2(row), ptx::mov_low_x2(row_8)}
                       : UnitScales{ptx::mov_high_x2(row), ptx::mov_high_x2(row_8)};
    } else {
      const uint32_t pair = scale_pair(word, turn);
      return {ptx::mov_low_x2(pair), ptx::mov_high_x2(pair)};
    }
  }

  // a[j] = slot j of the word times a scale; even slots take `even`, odd slots `odd` (both halves alike).
  FULCRUM_DEVICE void operator()(uint32_t word, uint32_t even, uint32_t odd, uint32_t (&a)[4]) const {
    if constexpr (code_word == CodeWord::f16) {
      a[0] = product(word & 0x8E008E00u, even);
      a[1] = product((word << 3) & 0x8E008E00u, odd);
      a[2] = product((word << 6) & magnitude_mask, even) ^ ((word << 1) & sign_mask);
      a[3] = product((word << 9) & magnitude_mask, odd) ^ ((word << 2) & sign_mask);
    } else if constexpr (code_word == CodeWord::bf16) {
      constexpr uint32_t mask = sign_mask | magnitude_mask, mantissa = 0x00400040u;
      a[0] = product(word & mask, even);
      a[1] = product((word << 6) & mask, odd);
      a[2] = product(ptx::shf_l_wrap(word, 12) & mask, even);
      a[3] = product(((ptx::shf_l_wrap(word, 10) & ~mantissa) | ((word << 2) & mantissa)) & mask, odd);
    } else if constexpr (method == Dequant::bits) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        a[j] = product((shift(word, magnitude_shift - code_bits(j)) & magnitude_mask) |
                           (shift(word, 12 - code_bits(j)) & sign_mask),
                       j % 2 == 0 ? even : odd);
    } else {
      table(word, a);
#pragma unroll
      for (int j = 0; j < 4; ++j) a[j] = product(a[j], j % 2 == 0 ? even : odd);
    }
  }

 private:
  // Bits of a half below the code of slot j.
  FULCRUM_HD static constexpr int code_bits(int j) { return 4 * int(code_nibble(code_word, uint32_t(j))); }

  // The scales of rows r (low half) and r + 8 (high half), from one turn of a scale word.
  FULCRUM_DEVICE uint32_t scale_pair(uint32_t word, int turn) const {
    if constexpr (code_word == CodeWord::plain || code_word == CodeWord::block36) {
      return plain_scale_pair(word, turn);
    } else {
      const uint32_t placed = turn == 0 ? word : ptx::shf_l_wrap(word, 8);
      // An E5M3 byte at 14-7 is an f16. At 11-4 it is the low part of a bf16 exponent: 15 + 224 = 119 + 127 - 7.
      if constexpr (code_word == CodeWord::f16) return placed & 0x7F807F80u;
      return ptx::lop3_and_or(placed, 0x0FF00FF0u, scale_exponent);
    }
  }

  // Scales in f16 to the type and exponent that codes need, by a sum in the exponent: 2^7 in f16. f16 holds an E4M3
  // value without a subnormal and with seven zero bits below, so that 3 places further right it is a bf16 but for
  // 2^-112, and takes 2^231 or 2^105. A zero scale becomes a power of two, but its codes are 0 (pack/repack.cuh).
  FULCRUM_DEVICE static uint32_t converted(uint32_t pair) {
    if constexpr (!is_f16) return (pair >> 3) + (method == Dequant::bits ? 0x73807380u : 0x34803480u);
    return method == Dequant::bits ? pair + 0x1C001C00u : pair;
  }

  FULCRUM_DEVICE static uint32_t product(uint32_t a, uint32_t b) { return ptx::mul_x2<dtype>(a, b); }

  FULCRUM_DEVICE static uint32_t shift(uint32_t word, int left) { return left >= 0 ? word << left : word >> -left; }

  // E4M3 bytes at 0 and 16 (turn 0) or 8 and 24 (turn 1). Placed in f16 they are scale * 2^-8, in bf16 scale * 2^-120,
  // subnormals included; a power of two, or two where one exceeds bf16's range, brings the exponent into place.
  FULCRUM_DEVICE static uint32_t plain_scale_pair(uint32_t word, int turn) {
    if constexpr (is_f16) {
      const uint32_t placed = shift(word, 7 - 8 * turn) & 0x3F803F80u;
      return product(placed, method == Dequant::bits ? 0x78007800u : 0x40004000u);  // 2^15, or 2
    } else {
      const uint32_t placed = shift(word, 4 - 8 * turn) & 0x07F007F0u;
      if constexpr (method == Dequant::prmt) return product(placed, 0x78007800u);  // 2^113
      return product(product(placed, 0x7F007F00u), 0x77807780u);                   // 2^127, 2^112
    }
  }

  // Values of the four slots by byte permutes: a table of eight magnitudes is two registers, and a permute looks up
  // four codes. f16 magnitudes have a zero low byte; bf16 needs a table for each byte.
  FULCRUM_DEVICE static void table(uint32_t word, uint32_t (&a)[4]) {
    const uint32_t index = word & 0x77777777u;
    const uint32_t low_top = ptx::prmt(low_table, high_table, index);
    const uint32_t high_top = ptx::prmt(low_table, high_table, index >> 16);
    uint32_t low_bottom = 0, high_bottom = 0;
    if constexpr (!is_f16) {
      low_bottom = ptx::prmt(0xC0800000u, 0xC0804000u, index);
      high_bottom = ptx::prmt(0xC0800000u, 0xC0804000u, index >> 16);
    }
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      // bytes {0, 1} = bottom and top of the low half's value, {2, 3} of the high half's
      const uint32_t low = ptx::prmt(low_bottom, low_top, j | (4 + j) << 4);
      const uint32_t high = ptx::prmt(high_bottom, high_top, j | (4 + j) << 4);
      a[j] = ptx::prmt(low, high, 0x5410u) | (shift(word, 12 - 4 * int(j)) & sign_mask);
    }
  }
};

FULCRUM_NAMESPACE_END
