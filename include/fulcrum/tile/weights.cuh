// Weights of a warp in a stage: from packed units in shared memory to the first operand's fragments.
//
// Called by the families for every unit of a stage. Invariant: the order of k inside a unit (core/layout.h) decides
// which columns an mma multiplies; tile/tokens.cuh reads tokens in the same order.
#pragma once
#include <fulcrum/core/layout.h>
#include <fulcrum/pack/block36.h>
#include <fulcrum/ptx/ldst.cuh>
#include <fulcrum/ptx/sync.cuh>
#include <fulcrum/tile/dequant.cuh>

FULCRUM_NAMESPACE_BEGIN

// The registers of one unit that a lane owns: four code words and the scale words of its row pair.
struct UnitWords {
  uint32_t codes[4];
  uint32_t scales[2];
};

template <class V>
struct WeightReader {
  static constexpr bool natural = V::config.k_order == KOrder::natural;
  static constexpr int warp_units = V::config.tile_n / int(unit_n) / V::config.warps_n;
  static constexpr int step_units = V::config.tile_k / int(unit_k);

  Dequantizer<V::kind.dtype, V::config.code_word, V::config.dequant, V::config.scale_decode> dequantize;

  // Byte offset in a stage's weights ([n group][k unit][unit of group][576]) of the warp's unit u at k unit kk.
  FULCRUM_DEVICE static uint32_t unit_offset(uint32_t first_unit, int u, int kk) {
    const uint32_t unit = first_unit + uint32_t(u);
    return (unit / group_units * uint32_t(step_units) + uint32_t(kk)) * group_bytes + unit % group_units * unit_bytes;
  }

  // Likewise of a row's block, where weights are read in place: a unit is 16 rows of blocks.
  FULCRUM_DEVICE static uint32_t block_offset(uint32_t row, uint32_t kk) {
    return (row / group_n * uint32_t(step_units) + kk) * group_bytes + row % group_n * block36_bytes;
  }

  // One 16-byte and one 8-byte load (4-byte with permuted k, where a lane needs the scales of its own columns only).
  FULCRUM_DEVICE static UnitWords load(SharedAddress unit) {
    if constexpr (V::config.code_word == CodeWord::block36) return load_blocks(unit);
    const uint32_t lane = ptx::lane_index(), r = lane / 4;
    const Vec4 codes = ptx::ld_shared_v4(unit + lane * 16);
    UnitWords words{{codes.x, codes.y, codes.z, codes.w}, {0, 0}};
    if constexpr (natural) {
      const Vec2 scales = ptx::ld_shared_v2(unit + unit_code_bytes + r * 8);
      words.scales[0] = scales.x;
      words.scales[1] = scales.y;
    } else {
      words.scales[0] = ptx::ld_shared_u32(unit + unit_code_bytes + r * 8 + lane % 4 / 2 * 4);
    }
    return words;
  }

  // A unit of blocks as the checkpoint has them, [16 rows][36 bytes], to the words that a packed unit would give.
  FULCRUM_DEVICE static UnitWords load_blocks(SharedAddress unit) {
    const uint32_t lane = ptx::lane_index();
    const SharedAddress upper = unit + lane / 4 * block36_bytes, lower = upper + 8 * block36_bytes;
    UnitWords words{};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {  // k16 steps
      const uint32_t byte = block36_scale_bytes + i * group_code_bytes + lane % 4 * 2;
      words.codes[i] = Block36::natural_codes(ptx::ld_shared_u16(upper + byte), ptx::ld_shared_u16(lower + byte));
    }
    const uint32_t upper_scales = Block36::canonical_x4(ptx::ld_shared_u32(upper));
    const uint32_t lower_scales = Block36::canonical_x4(ptx::ld_shared_u32(lower));
    words.scales[0] = ptx::prmt(upper_scales, lower_scales, 0x5410);
    words.scales[1] = ptx::prmt(upper_scales, lower_scales, 0x7632);
    return words;
  }

  // Fragments of the two mma steps of k32 block `half` (0, 1) of a unit.
  FULCRUM_DEVICE void fragments(const UnitWords& words, int half, uint32_t (&a)[2][4]) const {
    if constexpr (natural) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {  // words 2 half and 2 half + 1 are k16 steps, one scale group each
        const UnitScales scales = dequantize.scales(words.scales[half], i);
        dequantize(words.codes[2 * half + i], scales.row, scales.row_8, a[i]);
      }
    } else {
      const UnitScales scales = dequantize.scales(words.scales[0], half);
      uint32_t row[4], row_8[4];  // [slot]: columns 8c + 2 slot of rows r and r + 8
      dequantize(words.codes[2 * half], scales.row, scales.row, row);
      dequantize(words.codes[2 * half + 1], scales.row_8, scales.row_8, row_8);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        a[i][0] = row[2 * i];
        a[i][1] = row_8[2 * i];
        a[i][2] = row[2 * i + 1];
        a[i][3] = row_8[2 * i + 1];
      }
    }
  }
};

FULCRUM_NAMESPACE_END
