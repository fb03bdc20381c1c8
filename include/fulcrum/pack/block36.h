// llama.cpp's block_nvfp4 ("block36"): where a code and a scale of one row lie, how a scale byte is read, and how the
// bytes of a group become the codes of a packed word.
//
// Called by the reference repack, the repack kernels, kernels that read block36 in place, and the oracle.
// Invariant: offsets are those of ggml's reference (64 columns in 36 bytes: four E4M3 scale bytes, then 32 code bytes),
// and a byte read here decodes to what the reference decodes, except 0xFF, which is refused.
#pragma once
#include <fulcrum/core/nvfp4.h>
#include <fulcrum/pack/code_words.h>

FULCRUM_NAMESPACE_BEGIN

inline constexpr uint32_t block36_k = 64;
inline constexpr uint32_t block36_scale_bytes = block36_k / scale_group;        // 4, one a group
inline constexpr uint32_t block36_bytes = block36_scale_bytes + block36_k / 2;  // 36
inline constexpr uint32_t group_code_bytes = scale_group / 2;                   // 8, in every format

/// A code inside a row: byte offset and the shift of its nibble, 0 or 4.
struct NibblePlace {
  uint64_t byte;
  uint32_t shift;
};

struct Block36 {
  static constexpr bool separate_scales = false;               // scales lie in the rows of codes
  static constexpr uint32_t codes_unit_bytes = block36_bytes;  // of one row and 64 columns
  static constexpr uint32_t scales_unit_bytes = 0;

  /// Within each 16 columns, byte j holds column j in its low and column j + 8 in its high nibble.
  FULCRUM_HD static constexpr NibblePlace code_place(uint32_t column) {
    const uint32_t group = column % block36_k / scale_group, in_group = column % scale_group;
    return {
        uint64_t(column / block36_k) * block36_bytes + block36_scale_bytes + group * group_code_bytes + in_group % 8,
        in_group / 8 * 4};
  }

  /// Byte offset, inside a row of blocks, of the scale of columns 16 * group ...
  FULCRUM_HD static constexpr uint64_t scale_byte(uint32_t group) {
    return uint64_t(group / block36_scale_bytes) * block36_bytes + group % block36_scale_bytes;
  }

  /// 0xFF has no meaning that two readers share: ggml's arithmetic gives 480, E4M3 says NaN.
  FULCRUM_HD static constexpr bool refuses_scale(uint32_t byte) { return byte == 0xFF; }

  /// The E4M3 magnitude 0..0x7E that a byte means: bit 7 is ignored and 0x7F decodes to 0.
  FULCRUM_HD static constexpr uint32_t canonical_scale(uint32_t byte) {
    const uint32_t magnitude = byte & 0x7F;
    return magnitude == 0x7F ? 0 : magnitude;
  }

  // Four scales, eight codes at a time; quad order as in code_words.h.

  /// Bit 7 of each byte of `scales` that is refused.
  FULCRUM_HD static constexpr uint32_t refused_x4(uint32_t scales) {
    return ((scales & 0x7F7F7F7Fu) + 0x01010101u) & scales & 0x80808080u;
  }

  FULCRUM_HD static constexpr uint32_t canonical_x4(uint32_t scales) {
    const uint32_t magnitudes = scales & 0x7F7F7F7Fu;
    const uint32_t nan = (magnitudes + 0x01010101u) & 0x80808080u;  // 0x7F alone carries into bit 7
    return magnitudes & ~(nan - (nan >> 7));                        // 0x80 - 1 clears all seven bits
  }

  /// Natural k order, lane c of a quad: bytes 2c and 2c + 1 of the group in rows r and r + 8 are the eight codes.
  FULCRUM_HD static uint32_t natural_codes(uint32_t upper_pair, uint32_t lower_pair) {
    return byte_permute(upper_pair, lower_pair, 0x5140);
  }
  /// Inverse: x is row r's two bytes, y row r + 8's (both in the low half).
  FULCRUM_HD static Vec2 natural_pairs(uint32_t codes) {
    return {byte_permute(codes, 0, 0x4420), byte_permute(codes, 0, 0x4431)};
  }

  /// Permuted k order, lane c of a quad: its eight columns are one nibble of the group's eight bytes, the low one in
  /// even lanes and the high one in odd lanes.
  FULCRUM_HD static uint32_t permuted_codes(Vec2 group, uint32_t lane) {
    const uint32_t shift = lane % 2 * 4;
    const uint32_t slots_01 = group.x >> shift & 0x0F0F0F0Fu, slots_23 = group.y >> shift & 0x0F0F0F0Fu;
    return byte_permute(slots_01 | slots_23 << 4, 0, 0x3120);
  }
  /// Inverse: the lane's nibbles, each in the low nibble of its byte of the group.
  FULCRUM_HD static Vec2 permuted_nibbles(uint32_t codes) {
    const uint32_t bytes = byte_permute(codes, 0, 0x3120);
    return {bytes & 0x0F0F0F0Fu, bytes >> 4 & 0x0F0F0F0Fu};
  }
};

FULCRUM_NAMESPACE_END
