// ModelOpt's NVFP4 tensors ("modelopt", and compressed-tensors): where a code and a scale of one row lie, how a scale
// byte is read, and how the bytes of a group become the codes of a packed word.
//
// Called by the reference repack, the repack kernels and the oracle.
// Invariant: codes [n][k/2] with the even column in the low nibble, scales [n][k/16] linear; a scale with its sign bit
// set or the NaN code is refused, every other byte is already canonical.
#pragma once
#include <fulcrum/pack/block36.h>

FULCRUM_NAMESPACE_BEGIN

struct Modelopt {
  static constexpr bool separate_scales = true;
  static constexpr uint32_t codes_unit_bytes = 32;  // of one row and 64 columns
  static constexpr uint32_t scales_unit_bytes = 4;

  /// Byte j of a row holds column 2j in its low and column 2j + 1 in its high nibble.
  FULCRUM_HD static constexpr NibblePlace code_place(uint32_t column) { return {column / 2, column % 2 * 4}; }

  /// Byte offset inside a row of the scales tensor.
  FULCRUM_HD static constexpr uint64_t scale_byte(uint32_t group) { return group; }

  FULCRUM_HD static constexpr bool refuses_scale(uint32_t byte) { return byte >= 0x7F; }  // NaN code, or sign bit

  FULCRUM_HD static constexpr uint32_t canonical_scale(uint32_t byte) { return byte; }

  // Four scales, eight codes at a time; quad order as in code_words.h.

  /// Bit 7 of each byte of `scales` that is refused.
  FULCRUM_HD static constexpr uint32_t refused_x4(uint32_t scales) {
    return (((scales & 0x7F7F7F7Fu) + 0x01010101u) | scales) & 0x80808080u;
  }

  FULCRUM_HD static constexpr uint32_t canonical_x4(uint32_t scales) { return scales; }

  /// Four bytes {s0, s1, s2, s3} of one slot each, half 0 in the low and half 1 in the high nibbles, to quad order:
  /// nibbles 1 and 3 change places with nibbles 4 and 6. Its own inverse.
  FULCRUM_HD static constexpr uint32_t exchange_nibbles(uint32_t bytes) {
    return (bytes & 0xF0F00F0Fu) | (bytes << 12 & 0x0F0F0000u) | (bytes >> 12 & 0x0000F0F0u);
  }

  /// Natural k order, lane c of a quad: bytes c and c + 4 of the group in rows r and r + 8 are the eight codes.
  FULCRUM_HD static uint32_t natural_codes(uint32_t upper_pair, uint32_t lower_pair) {
    return exchange_nibbles(byte_permute(upper_pair, lower_pair, 0x5140));
  }
  /// Inverse: x is row r's two bytes, y row r + 8's (both in the low half).
  FULCRUM_HD static Vec2 natural_pairs(uint32_t codes) {
    const uint32_t bytes = exchange_nibbles(codes);
    return {byte_permute(bytes, 0, 0x4420), byte_permute(bytes, 0, 0x4431)};
  }

  /// Permuted k order, lane c of a quad: its eight columns are bytes 4c .. 4c + 3 of the 32 columns.
  FULCRUM_HD static constexpr uint32_t permuted_codes(uint32_t bytes) { return exchange_nibbles(bytes); }
};

FULCRUM_NAMESPACE_END
