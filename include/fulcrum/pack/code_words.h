// Whole words of the packed unit at once: the eight codes of a code word, the scale words of a row pair.
//
// Called by the repack kernels (and testable on the host): core/layout.h says where each bit goes, this file moves
// eight codes or four scales per step. Every mask and selector below is computed from core/layout.h.
// Invariant: "quad order" is how readers hand codes over: nibble p of half h holds the code of slot {0, 2, 1, 3}[p].
// It is what one byte shuffle makes from either checkpoint format; all bits of one slot are as far from their place in
// half 0 as in half 1, so one rotation serves both halves.
#pragma once
#include <fulcrum/core/layout.h>

FULCRUM_NAMESPACE_BEGIN

FULCRUM_HD constexpr uint32_t rotate_left(uint32_t value, uint32_t bits) {
  return bits % 32 == 0 ? value : value << bits % 32 | value >> (32 - bits % 32);
}

/// Byte i of the result is byte (selector >> 4i & 7) of {low, high}. The machine has one instruction for it, whose sign
/// replication (bit 3 of a selector nibble) the intrinsic masks off.
FULCRUM_HD inline uint32_t byte_permute(uint32_t low, uint32_t high, uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(low, high, selector);
#else
  const uint64_t bytes = uint64_t(high) << 32 | low;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t pick = selector >> 4 * i & 7;
    result |= (uint32_t(bytes >> 8 * pick) & 0xFF) << 8 * i;
  }
  return result;
#endif
}

/// Bits of a code word that lie `turn` bits left of where quad order has them.
FULCRUM_HD constexpr uint32_t turn_mask(CodeWord code_word, uint32_t turn) {
  constexpr uint32_t nibble_of_slot[4] = {0, 2, 1, 3};
  uint32_t mask = 0;
  for (uint32_t half = 0; half < 2; ++half)
    for (uint32_t slot = 0; slot < 4; ++slot)
      for (uint32_t bit = 0; bit < 4; ++bit) {
        const uint32_t to = code_bit(code_word, slot, half, bit), from = 16 * half + 4 * nibble_of_slot[slot] + bit;
        if ((to + 32 - from) % 32 == turn) mask |= 1u << to;
      }
  return mask;
}

/// Quad order -> code word: one rotation and one masked OR for each of the three (plain) or seven turns that occur.
template <CodeWord code_word, uint32_t turn = 0>
FULCRUM_HD constexpr uint32_t spread_codes(uint32_t nibbles) {
  constexpr uint32_t mask = turn_mask(code_word, turn);
  uint32_t word = 0;
  if constexpr (mask != 0) word = rotate_left(nibbles, turn) & mask;
  if constexpr (turn < 31) word |= spread_codes<code_word, turn + 1>(nibbles);
  return word;
}

/// Code word -> quad order.
template <CodeWord code_word, uint32_t turn = 0>
FULCRUM_HD constexpr uint32_t gather_codes(uint32_t word) {
  constexpr uint32_t mask = turn_mask(code_word, turn);
  uint32_t nibbles = 0;
  if constexpr (mask != 0) nibbles = rotate_left(word & mask, 32 - turn);
  if constexpr (turn < 31) nibbles |= gather_codes<code_word, turn + 1>(word);
  return nibbles;
}

// Scales: a row's four canonical E4M3 bytes of a unit in one 32-bit value, group 0 lowest.

/// A byte of ones for each group whose scale is not zero.
FULCRUM_HD constexpr uint32_t nonzero_scales(uint32_t scales) {
  const uint32_t top = (scales + 0x7F7F7F7Fu) & 0x80808080u;  // 1..0x7E carry into bit 7 and no further
  return top | (top - (top >> 7));                            // 0x80 - 1 is the other seven bits
}

/// All ones when `group`'s byte of nonzero_scales() is, else 0.
FULCRUM_HD inline uint32_t scale_mask(uint32_t nonzero, uint32_t group) {
  return byte_permute(nonzero, 0, group * 0x1111u);
}

/// Four E4M3 bytes -> four E5M3 bytes. A normal E4M3 byte moves up by 15 exponents, 0x78, and stays below 256.
FULCRUM_HD constexpr uint32_t e5m3_from_e4m3_x4(uint32_t scales) {
  const uint32_t exponents = (scales & 0x78787878u) + 0x78787878u;  // bit 7 of a byte: its exponent is not zero
  if ((exponents & 0x80808080u) == 0x80808080u) return scales + 0x78787878u;
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < 4; ++i) bytes |= e5m3_from_e4m3(scales >> 8 * i & 0xFF) << 8 * i;
  return bytes;
}

/// Inverse: E4M3's normal numbers are the E5M3 bytes from 0x80 on.
FULCRUM_HD constexpr uint32_t e4m3_from_e5m3_x4(uint32_t bytes) {
  if ((bytes & 0x80808080u) == 0x80808080u) return bytes - 0x78787878u;
  uint32_t scales = 0;
  for (uint32_t i = 0; i < 4; ++i) scales |= e4m3_from_e5m3(bytes >> 8 * i & 0xFF) << 8 * i;
  return scales;
}

/// Rotation after which the four scale bytes of a word are whole bytes.
FULCRUM_HD constexpr uint32_t scale_turn(CodeWord code_word) { return scale_bit(code_word, 0, 0, 0); }

/// byte_permute selector that makes scale word `word` (before its rotation) from {row r, row r + 8}.
FULCRUM_HD constexpr uint32_t scale_word_selector(Layout layout, uint32_t word) {
  uint32_t selector = 0;
  for (uint32_t half = 0; half < 2; ++half)
    for (uint32_t group = 0; group < 4; ++group) {
      const ScalePlace place = scale_place(layout, unit_n, unit_k, 8 * half, group);
      if (place.word_bytes != unit_code_bytes + 4 * word) continue;
      const uint32_t bit = scale_bit(layout.code_word, half, place.turn, 0);
      selector |= (4 * half + group) << (bit + 32 - scale_turn(layout.code_word)) % 32 / 2;  // byte b -> bit 4b
    }
  return selector;
}

/// byte_permute selector that makes the four scales of row r + 8*half from both words (rotated back).
FULCRUM_HD constexpr uint32_t scale_row_selector(Layout layout, uint32_t half) {
  uint32_t selector = 0;
  for (uint32_t word = 0; word < 2; ++word)
    for (uint32_t byte = 0; byte < 4; ++byte) {
      const uint32_t source = scale_word_selector(layout, word) >> 4 * byte & 15;
      if (source / 4 == half) selector |= (4 * word + byte) << 4 * (source % 4);
    }
  return selector;
}

/// Both scale words of a row pair, from the canonical scales of rows r and r + 8.
template <CodeWord code_word, KOrder k_order>
FULCRUM_HD inline Vec2 spread_scales(uint32_t upper_row, uint32_t lower_row) {
  if constexpr (code_word != CodeWord::plain) {
    upper_row = e5m3_from_e4m3_x4(upper_row);
    lower_row = e5m3_from_e4m3_x4(lower_row);
  }
  constexpr uint32_t first = scale_word_selector({code_word, k_order}, 0);
  constexpr uint32_t second = scale_word_selector({code_word, k_order}, 1);
  constexpr uint32_t turn = scale_turn(code_word);
  return {rotate_left(byte_permute(upper_row, lower_row, first), turn),
          rotate_left(byte_permute(upper_row, lower_row, second), turn)};
}

/// The scales of row r (x) and row r + 8 (y), from both scale words of the pair.
template <CodeWord code_word, KOrder k_order>
FULCRUM_HD inline Vec2 gather_scales(Vec2 words) {
  constexpr uint32_t upper = scale_row_selector({code_word, k_order}, 0);
  constexpr uint32_t lower = scale_row_selector({code_word, k_order}, 1);
  constexpr uint32_t turn = 32 - scale_turn(code_word);
  const uint32_t first = rotate_left(words.x, turn), second = rotate_left(words.y, turn);
  Vec2 rows = {byte_permute(first, second, upper), byte_permute(first, second, lower)};
  if constexpr (code_word != CodeWord::plain) rows = {e4m3_from_e5m3_x4(rows.x), e4m3_from_e5m3_x4(rows.y)};
  return rows;
}

FULCRUM_NAMESPACE_END
