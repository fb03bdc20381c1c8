// The packed weight unit: (row n, column k) -> byte and bit, as constexpr functions.
//
// Called by pack/, tile/weights.cuh, describe (for codegen) and tests. Invariant: the only description of the layout.
#pragma once
#include <fulcrum/core/types.h>
#include <fulcrum/core/nvfp4.h>

FULCRUM_NAMESPACE_BEGIN

// How codes and scales lie in words. block36 is llama.cpp's block_nvfp4 read in place, without a repack.
enum class CodeWord : uint8_t { plain, f16, bf16, block36 };
enum class KOrder : uint8_t { natural, permuted };

// Is the checkpoint itself what a kernel reads? Such weights are neither packed nor measured against packed ones.
FULCRUM_HD constexpr bool read_in_place(CodeWord code_word) { return code_word == CodeWord::block36; }

struct Layout {
  CodeWord code_word = CodeWord::plain;
  KOrder k_order = KOrder::natural;
};

FULCRUM_HD constexpr bool operator==(Layout a, Layout b) {
  return a.code_word == b.code_word && a.k_order == b.k_order;
}

// A unit is 16 rows x 64 columns in 576 bytes: 512 code bytes, then 64 scale bytes. Lane l of a warp owns code bytes
// 16l..16l+15, four 32-bit words. With r = l/4, c = l%4:
//   natural   word i is k16 step i, slot j the register a_j of mma.m16n8k16's first operand:
//             row r + 8*(j&1), columns 16i + 2c + 8*(j>>1) + {0, 1}
//   permuted  word i is k32 block i/2, row r + 8*(i&1), slot j columns 32*(i/2) + 8c + 2j + {0, 1}:
//             eight values of one row in one scale group
// Half 0 of a slot is the lower column. Scale word w of row pair r lies at 512 + 8r + 4w; "turn" t of it holds
//   natural   group 2w + t          permuted  group w + 2t        row r in half 0, row r + 8 in half 1.
inline constexpr uint32_t unit_n = 16;
inline constexpr uint32_t unit_k = 64;
inline constexpr uint32_t unit_code_bytes = unit_n * unit_k / 2;
inline constexpr uint32_t unit_scale_bytes = unit_n * unit_k / scale_group;
inline constexpr uint32_t unit_bytes = unit_code_bytes + unit_scale_bytes;  // 576 = 9/16 byte a weight
inline constexpr uint32_t group_n = 64;                                     // rows whose units of one k64 are adjacent
inline constexpr uint32_t group_units = group_n / unit_n;
inline constexpr uint32_t group_bytes = group_units * unit_bytes;  // one 64 x 64 block, 2304 bytes

// Bytes of one expert; k is padded to a multiple of 64 with zero codes and zero scales. n is a multiple of 16.
FULCRUM_HD constexpr uint64_t expert_bytes(uint32_t n, uint32_t k) {
  return uint64_t(n / unit_n) * ceil_div(k, unit_k) * unit_bytes;
}

// Units that exist in the group of rows that starts at unit `group * group_units`.
FULCRUM_HD constexpr uint32_t units_in_group(uint32_t n, uint32_t group) {
  return min_of(group_units, n / unit_n - group * group_units);
}

// Byte offset of a unit inside its expert: [n/64][k/64][unit], the last group of rows holding only existing units.
FULCRUM_HD constexpr uint64_t unit_offset_bytes(uint32_t n, uint32_t k, uint32_t n_unit, uint32_t k_unit) {
  const uint32_t group = n_unit / group_units;
  const uint64_t k_units = ceil_div(k, unit_k);
  return (group * k_units * group_units + uint64_t(k_unit) * units_in_group(n, group) + n_unit % group_units) *
         unit_bytes;
}

// Packed row of a gate_up weight: a unit holds eight gate rows, then the eight up rows of the same output columns.
FULCRUM_HD constexpr uint32_t packed_row(bool gate_up, uint32_t part, uint32_t row) {
  return gate_up ? row / 8 * 16 + part * 8 + row % 8 : row;
}

// Inverse: the part (0 gate, 1 up) and the row of the checkpoint that a packed row holds.
struct PartRow {
  uint32_t part, row;
};
FULCRUM_HD constexpr PartRow part_row(bool gate_up, uint32_t packed) {
  return gate_up ? PartRow{packed % 16 / 8, packed / 16 * 8 + packed % 8} : PartRow{0, packed};
}

// Where one code lies: the 32-bit word (byte offset inside the expert), its 16-bit half and its slot.
struct CodePlace {
  uint64_t word_bytes;
  uint32_t half, slot;
};

FULCRUM_HD constexpr CodePlace code_place(Layout layout, uint32_t n, uint32_t k, uint32_t row, uint32_t column) {
  const uint64_t unit = unit_offset_bytes(n, k, row / unit_n, column / unit_k);
  const uint32_t r = row % 8, upper = row / 8 % 2, kk = column % unit_k;
  uint32_t quad_lane = 0, word = 0, slot = 0;
  if (layout.k_order == KOrder::natural) {
    quad_lane = kk % 8 / 2;
    word = kk / 16;
    slot = upper + 2 * (kk / 8 % 2);
  } else {
    quad_lane = kk % 32 / 8;
    word = kk / 32 * 2 + upper;
    slot = kk % 8 / 2;
  }
  return {unit + (r * 4 + quad_lane) * 16 + word * 4, column % 2, slot};
}

// Where one scale lies: the 32-bit word, the half (row r or r + 8) and the turn.
struct ScalePlace {
  uint64_t word_bytes;
  uint32_t half, turn;
};

FULCRUM_HD constexpr ScalePlace scale_place(Layout layout, uint32_t n, uint32_t k, uint32_t row, uint32_t group) {
  const uint64_t unit = unit_offset_bytes(n, k, row / unit_n, group / (unit_k / scale_group));
  const uint32_t g = group % (unit_k / scale_group);
  const bool natural = layout.k_order == KOrder::natural;
  const uint32_t word = natural ? g / 2 : g % 2, turn = natural ? g % 2 : g / 2;
  return {unit + unit_code_bytes + row % 8 * 8 + word * 4, row / 8 % 2, turn};
}

// Nibble of a half that holds a slot's code, where nibbles are whole. block36 has one shuffle of bytes behind it, which
// leaves slots 0, 2, 1, 3.
FULCRUM_HD constexpr uint32_t code_nibble(CodeWord code_word, uint32_t slot) {
  return code_word == CodeWord::block36 ? slot % 2 * 2 + slot / 2 : slot;
}

// Bit of the word that holds bit `bit` (0 mantissa, 1-2 exponent, 3 sign) of the code in (slot, half).
//   plain  the nibble as it is, 16*half + 4*slot; block36 likewise, in the order of code_nibble()
//   f16    sign and magnitude at (15; 11-9) (12; 8-6) (14; 5-3) (13; 2-0) of the half: slots 0 and 1 reach their place
//          in an f16 by at most one shift and one mask, slots 2 and 3 take their sign by one XOR more
//   bf16   sign at bit 15 or 31 and magnitude at 8-6 or 24-22 after the rotation that dequantization gives each slot
FULCRUM_HD constexpr uint32_t code_bit(CodeWord code_word, uint32_t slot, uint32_t half, uint32_t bit) {
  if (code_word == CodeWord::plain || code_word == CodeWord::block36)
    return 16 * half + 4 * code_nibble(code_word, slot) + bit;
  if (code_word == CodeWord::f16) {
    constexpr uint32_t sign[4] = {15, 12, 14, 13};
    return 16 * half + (bit == 3 ? sign[slot] : 9 - 3 * slot + bit);
  }
  constexpr uint32_t bf16_bits[4][2][4] = {// [slot][half][bit]
                                           {{6, 7, 8, 15}, {22, 23, 24, 31}},
                                           {{0, 1, 2, 9}, {16, 17, 18, 25}},
                                           {{26, 27, 28, 3}, {10, 11, 12, 19}},
                                           {{4, 29, 30, 5}, {20, 13, 14, 21}}};
  return bf16_bits[slot][half][bit];
}

// Bit of the word that holds bit `bit` of the scale byte in (half, turn). plain keeps the E4M3 byte; f16 and bf16 hold
// the E5M3 byte where the 16-bit type has its exponent, turn 1 rotated right by 8 into the bits that turn 0 leaves.
FULCRUM_HD constexpr uint32_t scale_bit(CodeWord code_word, uint32_t half, uint32_t turn, uint32_t bit) {
  if (code_word == CodeWord::plain) return 16 * half + 8 * turn + bit;
  const uint32_t low = code_word == CodeWord::f16 ? 7 : 4;  // f16 10 mantissa bits - 3; bf16 7 - 3
  return (low + 16 * half + bit + 32 - 8 * turn) % 32;
}

FULCRUM_HD constexpr uint32_t encode_code(CodeWord code_word, uint32_t slot, uint32_t half, uint32_t code) {
  uint32_t word = 0;
  for (uint32_t bit = 0; bit < 4; ++bit) word |= (code >> bit & 1) << code_bit(code_word, slot, half, bit);
  return word;
}

FULCRUM_HD constexpr uint32_t decode_code(CodeWord code_word, uint32_t slot, uint32_t half, uint32_t word) {
  uint32_t code = 0;
  for (uint32_t bit = 0; bit < 4; ++bit) code |= (word >> code_bit(code_word, slot, half, bit) & 1) << bit;
  return code;
}

// `e4m3` is a magnitude, 0..0x7E.
FULCRUM_HD constexpr uint32_t encode_scale(CodeWord code_word, uint32_t half, uint32_t turn, uint32_t e4m3) {
  const uint32_t byte = code_word == CodeWord::plain ? e4m3 : e5m3_from_e4m3(e4m3);
  uint32_t word = 0;
  for (uint32_t bit = 0; bit < 8; ++bit) word |= (byte >> bit & 1) << scale_bit(code_word, half, turn, bit);
  return word;
}

FULCRUM_HD constexpr uint32_t decode_scale(CodeWord code_word, uint32_t half, uint32_t turn, uint32_t word) {
  uint32_t byte = 0;
  for (uint32_t bit = 0; bit < 8; ++bit) byte |= (word >> scale_bit(code_word, half, turn, bit) & 1) << bit;
  return code_word == CodeWord::plain ? byte : e4m3_from_e5m3(byte);
}

FULCRUM_NAMESPACE_END
