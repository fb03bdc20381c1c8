// The repack kernels: checkpoint rows to packed units and back, one launch for a whole layer.
//
// Called through the extern "C" entries that FULCRUM_REPACK defines around pack_tiles<V> and unpack_tiles<V>.
// Launch: repack_blocks(params) blocks of repack_threads threads, repack_shared_bytes dynamic shared bytes.
// Invariant: equal, bit for bit, to reference::pack and reference::unpack; each block moves its rows through shared
// memory once, reads and writes global memory in whole sectors, and depends on no other block.
#pragma once
#include <fulcrum/pack/repack_rows.cuh>
#include <fulcrum/ptx/atom.cuh>

FULCRUM_NAMESPACE_BEGIN

/// The type parameter of the kernels: everything that is compiled in.
template <CheckpointFormat format, CodeWord code_word, KOrder k_order>
struct RepackVariant {
  static constexpr RepackKind kind{format, {code_word, k_order}};
};

template <class V>
struct RepackUnit {
  static constexpr CheckpointFormat format = V::kind.format;
  static constexpr CodeWord code_word = V::kind.layout.code_word;
  static constexpr KOrder k_order = V::kind.layout.k_order;
  using Reader = typename FormatOf<format>::Reader;

  /// Shared address of the four scale bytes of a row of the tile in one k unit.
  FULCRUM_DEVICE static SharedAddress scales_at(SharedAddress shared, uint32_t row, uint32_t k_unit) {
    const uint32_t first = Reader::separate_scales ? repack_k_units * Reader::codes_unit_bytes : 0;
    const uint32_t stride = Reader::separate_scales ? Reader::scales_unit_bytes : Reader::codes_unit_bytes;
    return shared + (row * repack_row_pitch + first + k_unit * stride);
  }

  /// Shared address of the 32 code bytes of a row of the tile in one k unit.
  FULCRUM_DEVICE static SharedAddress codes_at(SharedAddress shared, uint32_t row, uint32_t k_unit) {
    const uint32_t first = Reader::separate_scales ? 0 : block36_scale_bytes;
    return shared + (row * repack_row_pitch + first + k_unit * Reader::codes_unit_bytes);
  }

  // Checkpoint bytes in shared memory -> the words of one lane.

  /// The two bytes of group `group` that hold lane c's four codes of one row, natural k order.
  FULCRUM_DEVICE static uint32_t load_pair(SharedAddress codes, uint32_t group, uint32_t c) {
    const SharedAddress bytes = codes + group * group_code_bytes;
    if constexpr (format == CheckpointFormat::block36) {
      return ptx::ld_shared_u16(bytes + 2 * c);
    } else {
      const Vec2 both = ptx::ld_shared_v2(bytes);
      return byte_permute(both.x, both.y, c | (c + 4) << 4);
    }
  }

  /// Lane c's eight codes of k32 block `block` in one row, in quad order, permuted k order.
  FULCRUM_DEVICE static uint32_t load_octet(SharedAddress codes, uint32_t block, uint32_t c) {
    if constexpr (format == CheckpointFormat::block36) {
      const SharedAddress bytes = codes + (2 * block + c / 2) * group_code_bytes;
      return Block36::permuted_codes({ptx::ld_shared_u32(bytes), ptx::ld_shared_u32(bytes + 4)}, c);
    } else {
      return Modelopt::permuted_codes(ptx::ld_shared_u32(codes + (16 * block + 4 * c)));
    }
  }

  /// The four code words of `lane`; unit row 0 is row `row` of the tile.
  FULCRUM_DEVICE static Vec4 pack_codes(SharedAddress shared, uint32_t row, uint32_t k_unit, uint32_t lane) {
    const uint32_t r = row + lane / 4, c = lane % 4;
    const SharedAddress codes[2] = {codes_at(shared, r, k_unit), codes_at(shared, r + 8, k_unit)};
    uint32_t nonzero[2];
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t scales = ptx::ld_shared_u32(scales_at(shared, r + 8 * half, k_unit));
      nonzero[half] = nonzero_scales(Reader::canonical_x4(scales) & 0x7F7F7F7Fu);  // a refused byte may be anything
    }
    uint32_t words[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t nibbles;  // codes under a zero scale become 0
      if constexpr (k_order == KOrder::natural) {
        nibbles = Reader::natural_codes(load_pair(codes[0], i, c) & scale_mask(nonzero[0], i),
                                        load_pair(codes[1], i, c) & scale_mask(nonzero[1], i));
      } else {
        nibbles = load_octet(codes[i % 2], i / 2, c) & scale_mask(nonzero[i % 2], i / 2 * 2 + c / 2);
      }
      words[i] = spread_codes<code_word>(nibbles);
    }
    return {words[0], words[1], words[2], words[3]};
  }

  // The words of one lane -> checkpoint bytes in shared memory.

  /// Stores lane c's two bytes of group `group` of one row, natural k order.
  FULCRUM_DEVICE static void store_pair(SharedAddress codes, uint32_t group, uint32_t c, uint32_t pair) {
    const SharedAddress bytes = codes + group * group_code_bytes;
    if constexpr (format == CheckpointFormat::block36) {
      ptx::st_shared_u16(bytes + 2 * c, uint16_t(pair));
    } else {
      ptx::st_shared_u8(bytes + c, uint8_t(pair));
      ptx::st_shared_u8(bytes + (c + 4), uint8_t(pair >> 8));
    }
  }

  /// Stores the eight codes of lane c in k32 block `block` of one row, permuted k order. Two lanes share the bytes of
  /// a block36 group: the even one stores its first four bytes, the odd one its last four.
  FULCRUM_DEVICE static void store_octet(SharedAddress codes, uint32_t block, uint32_t c, uint32_t nibbles) {
    if constexpr (format == CheckpointFormat::block36) {
      const Vec2 mine = Block36::permuted_nibbles(nibbles);
      const bool odd = c % 2 != 0;
      const uint32_t theirs = ptx::shfl_bfly(odd ? mine.x : mine.y, 1);
      const uint32_t bytes = odd ? theirs | mine.y << 4 : mine.x | theirs << 4;
      ptx::st_shared_u32(codes + ((2 * block + c / 2) * group_code_bytes + c % 2 * 4), bytes);
    } else {
      ptx::st_shared_u32(codes + (16 * block + 4 * c), Modelopt::permuted_codes(nibbles));
    }
  }

  FULCRUM_DEVICE static void unpack_codes(SharedAddress shared, uint32_t row, uint32_t k_unit, uint32_t lane,
                                          Vec4 packed) {
    const uint32_t r = row + lane / 4, c = lane % 4;
    const SharedAddress codes[2] = {codes_at(shared, r, k_unit), codes_at(shared, r + 8, k_unit)};
    const uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t nibbles = gather_codes<code_word>(words[i]);
      if constexpr (k_order == KOrder::natural) {
        const Vec2 pairs = Reader::natural_pairs(nibbles);
        store_pair(codes[0], i, c, pairs.x);
        store_pair(codes[1], i, c, pairs.y);
      } else {
        store_octet(codes[i % 2], i / 2, c, nibbles);
      }
    }
  }
};

/// Reports every refused scale of one row of the tile in one k unit; the smallest word wins.
template <class Reader>
FULCRUM_DEVICE void report_refusals(const RepackParams& params, const RepackTile& tile, uint32_t packed_row_index,
                                    uint32_t k_unit, uint32_t scales) {
  if (Reader::refused_x4(scales) == 0) return;
  const CheckpointRow source = checkpoint_row(params.num_parts, packed_row_index);
#pragma unroll 1
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t byte = scales >> 8 * i & 0xFF;
    if (!Reader::refuses_scale(byte)) continue;
    const uint32_t group = (tile.first_k_unit + k_unit) * (unit_k / scale_group) + i;
    ptx::atom_global_min_u64(global_address(params.refusal),
                             refusal_word({tile.expert, source.part, source.row, group, byte}));
  }
}

/// Offset of the tile's first unit; its units follow one another, [k unit][unit].
FULCRUM_DEVICE GlobalAddress<uint8_t> packed_tile(const RepackParams& params, const RepackTile& tile) {
  const uint64_t offset = tile.expert * expert_bytes(params.n, params.k) +
                          unit_offset_bytes(params.n, params.k, tile.first_row / unit_n, tile.first_k_unit);
  return global_address(static_cast<uint8_t*>(params.packed)) + int64_t(offset);
}

// 16 scale bytes, row pairs 2q and 2q + 1, are one thread's work: four threads a unit.
inline constexpr uint32_t scale_quads = unit_scale_bytes / 16;

/// One block's work of packing.
template <class V>
FULCRUM_DEVICE void pack_tiles(const RepackParams& params) {
  using Unit = RepackUnit<V>;
  using Reader = typename Unit::Reader;
  const SharedAddress shared = ptx::dynamic_shared();
  const RepackTile tile = repack_tile(params, ptx::block_index());
  load_rows<repack_k_units * Reader::codes_unit_bytes>(params, tile, code_rows<Reader>(params, tile),
                                                       params.codes_granule, shared);
  if constexpr (Reader::separate_scales)
    load_rows<repack_k_units * Reader::scales_unit_bytes>(params, tile, scale_rows<Reader>(params, tile),
                                                          params.scales_granule, shared);
  ptx::cp_async_commit_group();
  ptx::cp_async_wait_group<0>();
  ptx::barrier_sync();  // every thread's rows are in shared memory before any thread reads them

  const GlobalAddress<uint8_t> packed = packed_tile(params, tile);
  const uint32_t num_units = tile.num_units * tile.num_k_units;
  const uint32_t lane = ptx::lane_index();
  for (uint32_t unit = ptx::warp_index(); unit < num_units; unit += repack_threads / 32) {
    const Vec4 words = Unit::pack_codes(shared, tile.first_unit_row(unit), tile.k_unit(unit), lane);
    ptx::st_global_v4(address_cast<Vec4>(packed + (unit * unit_bytes + 16 * lane)), words);
  }
  for (uint32_t at = ptx::thread_index(); at < num_units * scale_quads; at += repack_threads) {
    const uint32_t unit = at / scale_quads, quad = at % scale_quads, k_unit = tile.k_unit(unit);
    uint32_t scales[4];  // rows 2q, 2q + 8, 2q + 1, 2q + 9 of the unit
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = tile.first_unit_row(unit) + 2 * quad + i / 2 + i % 2 * 8;
      scales[i] = ptx::ld_shared_u32(Unit::scales_at(shared, row, k_unit));
      report_refusals<Reader>(params, tile, tile.first_row + row, k_unit, scales[i]);
      scales[i] = Reader::canonical_x4(scales[i]);
    }
    const Vec2 first = spread_scales<Unit::code_word, Unit::k_order>(scales[0], scales[1]);
    const Vec2 second = spread_scales<Unit::code_word, Unit::k_order>(scales[2], scales[3]);
    ptx::st_global_v4(address_cast<Vec4>(packed + (unit * unit_bytes + unit_code_bytes + 16 * quad)),
                      Vec4{first.x, first.y, second.x, second.y});
  }
}

/// One block's work of unpacking.
template <class V>
FULCRUM_DEVICE void unpack_tiles(const RepackParams& params) {
  using Unit = RepackUnit<V>;
  using Reader = typename Unit::Reader;
  const SharedAddress shared = ptx::dynamic_shared();
  const RepackTile tile = repack_tile(params, ptx::block_index());
  const GlobalAddress<const uint8_t> packed = address_cast<const uint8_t>(packed_tile(params, tile));
  const uint32_t num_units = tile.num_units * tile.num_k_units;
  const uint32_t lane = ptx::lane_index();
  for (uint32_t unit = ptx::warp_index(); unit < num_units; unit += repack_threads / 32) {
    const Vec4 words =
        ptx::ld_global_nc_no_allocate_v4(address_cast<const Vec4>(packed + (unit * unit_bytes + 16 * lane)));
    Unit::unpack_codes(shared, tile.first_unit_row(unit), tile.k_unit(unit), lane, words);
  }
  for (uint32_t at = ptx::thread_index(); at < num_units * scale_quads; at += repack_threads) {
    const uint32_t unit = at / scale_quads, quad = at % scale_quads;
    const Vec4 words = ptx::ld_global_nc_no_allocate_v4(
        address_cast<const Vec4>(packed + (unit * unit_bytes + unit_code_bytes + 16 * quad)));
    const Vec2 first = gather_scales<Unit::code_word, Unit::k_order>({words.x, words.y});
    const Vec2 second = gather_scales<Unit::code_word, Unit::k_order>({words.z, words.w});
    const uint32_t scales[4] = {first.x, first.y, second.x, second.y};
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = tile.first_unit_row(unit) + 2 * quad + i / 2 + i % 2 * 8;
      ptx::st_shared_u32(Unit::scales_at(shared, row, tile.k_unit(unit)), scales[i]);
    }
  }
  ptx::barrier_sync();  // the rows are complete in shared memory before threads copy them out

  store_rows<repack_k_units * Reader::codes_unit_bytes>(params, tile, code_rows<Reader>(params, tile),
                                                        params.codes_granule, shared);
  if constexpr (Reader::separate_scales)
    store_rows<repack_k_units * Reader::scales_unit_bytes>(params, tile, scale_rows<Reader>(params, tile),
                                                           params.scales_granule, shared);
}

FULCRUM_NAMESPACE_END

// FULCRUM_REPACK(name, pack | unpack, block36 | modelopt, plain | f16 | bf16, natural | permuted) defines one kernel.
// Six blocks an SM keep more than the 13 KB of loads in flight that the memory roof needs; 40 registers allow them.
#define FULCRUM_REPACK(name, direction, format, code_word, k_order)                                                \
  extern "C" __global__ void __launch_bounds__(::fulcrum::repack_threads, 6)                                       \
      name(const __grid_constant__ ::fulcrum::RepackParams params) {                                               \
    ::fulcrum::direction##_tiles<::fulcrum::RepackVariant<                                                         \
        ::fulcrum::CheckpointFormat::format, ::fulcrum::CodeWord::code_word, ::fulcrum::KOrder::k_order>>(params); \
  }
