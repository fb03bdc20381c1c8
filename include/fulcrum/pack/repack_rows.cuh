// What one block of a repack kernel works on, and the copies of its checkpoint rows between global and shared memory.
//
// Called by repack.cuh, in both directions.
// Invariant: shared memory holds [64 packed rows][repack_row_pitch] bytes; a row is the checkpoint's own bytes of the
// tile's columns: block36 blocks, or 256 code bytes with 32 scale bytes behind them. Bytes past the row's end are zeros.
#pragma once
#include <fulcrum/pack/formats.h>
#include <fulcrum/ptx/cp_async.cuh>
#include <fulcrum/ptx/ldst.cuh>
#include <fulcrum/ptx/sync.cuh>

FULCRUM_NAMESPACE_BEGIN

/// Consecutive blocks are neighbours along k, then along n: they write one run of packed bytes.
struct RepackTile {
  uint32_t expert, first_row, first_k_unit;
  uint32_t num_units;    // of 16 rows, 1 to 4
  uint32_t num_k_units;  // of 64 columns, 1 to repack_k_units
  uint32_t reciprocal;   // ceil(256 / num_units)

  /// A tile's units follow one another in packed memory, [k unit][unit]. The product is below (unit / num_units) * 256
  /// + 32, so the shift divides exactly for the 32 units there are.
  FULCRUM_HD constexpr uint32_t k_unit(uint32_t unit) const { return unit * reciprocal >> 8; }
  FULCRUM_HD constexpr uint32_t first_unit_row(uint32_t unit) const {
    return (unit - k_unit(unit) * num_units) * unit_n;
  }
};

FULCRUM_HD constexpr RepackTile repack_tile(const RepackParams& params, uint32_t block) {
  const uint32_t k_units = ceil_div(params.k, unit_k), k_tiles = ceil_div(k_units, repack_k_units);
  const uint32_t groups = ceil_div(params.n, group_n);
  const uint32_t k_tile = block % k_tiles, group = block / k_tiles % groups;
  const uint32_t first_k_unit = k_tile * repack_k_units, num_units = units_in_group(params.n, group);
  return {block / k_tiles / groups, group * group_n, first_k_unit, num_units,
          min_of(repack_k_units, k_units - first_k_unit), ceil_div(256u, num_units)};
}

/// Where a packed row comes from.
struct CheckpointRow {
  uint32_t part, row;
};

/// Inverse of packed_row() for a weight of one or two parts.
FULCRUM_HD constexpr CheckpointRow checkpoint_row(uint32_t num_parts, uint32_t packed) {
  if (num_parts == 1) return {0, packed};
  return {packed / 8 % 2, packed / 16 * 8 + packed % 8};
}

/// First byte of a tensor of one expert.
FULCRUM_DEVICE GlobalAddress<uint8_t> expert_address(const ExpertArray& array, uint32_t expert) {
  if (array.table == nullptr)
    return global_address(static_cast<uint8_t*>(array.bank)) + int64_t(expert * array.expert_bytes);
  const GlobalAddress<const uint64_t> table = global_address(reinterpret_cast<const uint64_t*>(array.table));
  return global_address(reinterpret_cast<uint8_t*>(ptx::ld_global_nc_u64(table + expert)));
}

/// The tile's rows of one tensor: `unit_row_bytes` bytes of every row for each k unit, at `shared_offset` of a row.
struct TensorRows {
  GlobalAddress<uint8_t> parts[2];  // of the expert, at the tile's first column
  uint64_t row_bytes;               // stride
  uint32_t valid_bytes;             // of a row that exist from the tile's first column on, inside the tile
  uint32_t tile_bytes;              // of a row that the tile covers, valid_bytes and zeros
  uint32_t shared_offset;
};

FULCRUM_DEVICE TensorRows tensor_rows(const RepackParams& params, const RepackTile& tile, bool scales,
                                      uint32_t unit_row_bytes, uint64_t dense_row_bytes, uint32_t shared_offset) {
  TensorRows rows;
  const uint64_t skipped = uint64_t(tile.first_k_unit) * unit_row_bytes;
  for (uint32_t part = 0; part < 2; ++part) {
    if (part < params.num_parts) {
      const RepackPart& source = params.parts[part];
      rows.parts[part] = expert_address(scales ? source.scales : source.codes, tile.expert) + int64_t(skipped);
    } else {
      rows.parts[part] = rows.parts[0];
    }
  }
  rows.row_bytes = scales ? params.scales_row_bytes : params.codes_row_bytes;
  rows.tile_bytes = tile.num_k_units * unit_row_bytes;
  rows.valid_bytes = uint32_t(min_of(uint64_t(rows.tile_bytes), dense_row_bytes - skipped));
  rows.shared_offset = shared_offset;
  return rows;
}

template <class Reader>
FULCRUM_DEVICE TensorRows code_rows(const RepackParams& params, const RepackTile& tile) {
  const uint64_t dense = Reader::separate_scales ? params.k / 2 : uint64_t(params.k / block36_k) * block36_bytes;
  return tensor_rows(params, tile, false, Reader::codes_unit_bytes, dense, 0);
}
template <class Reader>
FULCRUM_DEVICE TensorRows scale_rows(const RepackParams& params, const RepackTile& tile) {
  return tensor_rows(params, tile, true, Reader::scales_unit_bytes, params.k / scale_group,
                     repack_k_units * Reader::codes_unit_bytes);
}

/// One granule of a tile's rows: the global and shared address, and how many of its bytes exist.
struct Granule {
  GlobalAddress<uint8_t> global;
  SharedAddress shared;
  uint32_t valid_bytes;
};

/// Calls copy(Granule) for every granule of the tile's rows, neighbouring threads on neighbouring granules.
template <uint32_t granule_bytes, uint32_t most_row_bytes, class Copy>
FULCRUM_DEVICE void for_each_granule(const RepackParams& params, const RepackTile& tile, const TensorRows& rows,
                                     SharedAddress shared, const Copy& copy) {
  constexpr uint32_t row_granules = most_row_bytes / granule_bytes;
  const uint32_t num_granules = tile.num_units * unit_n * row_granules;
  for (uint32_t at = ptx::thread_index(); at < num_granules; at += repack_threads) {
    const uint32_t row = at / row_granules, offset = at % row_granules * granule_bytes;
    if (offset >= rows.tile_bytes) continue;
    const CheckpointRow source = checkpoint_row(params.num_parts, tile.first_row + row);
    const GlobalAddress<uint8_t> first = source.part == 0 ? rows.parts[0] : rows.parts[1];
    const uint32_t left = rows.valid_bytes > offset ? rows.valid_bytes - offset : 0;
    copy(Granule{first + int64_t(source.row * rows.row_bytes + offset),
                 shared + (row * repack_row_pitch + rows.shared_offset + offset), min_of(left, granule_bytes)});
  }
}

/// Starts the copies of one tensor's rows into shared memory; the caller waits for this thread's cp.async groups.
template <uint32_t most_row_bytes>
FULCRUM_DEVICE void load_rows(const RepackParams& params, const RepackTile& tile, const TensorRows& rows,
                              uint32_t granule_bytes, SharedAddress shared) {
  if (granule_bytes == 16) {
    for_each_granule<16, most_row_bytes>(params, tile, rows, shared, [](const Granule& g) {
      ptx::cp_async_cg_16(g.shared, address_cast<const uint8_t>(g.global), g.valid_bytes);
    });
  } else if (granule_bytes == 4) {
    for_each_granule<4, most_row_bytes>(params, tile, rows, shared, [](const Granule& g) {
      ptx::cp_async_ca_4(g.shared, address_cast<const uint8_t>(g.global), g.valid_bytes);
    });
  } else {
    for_each_granule<1, most_row_bytes>(params, tile, rows, shared, [](const Granule& g) {
      const uint8_t byte = g.valid_bytes != 0 ? ptx::ld_global_nc_u8(address_cast<const uint8_t>(g.global)) : uint8_t(0);
      ptx::st_shared_u8(g.shared, byte);
    });
  }
}

/// Writes one tensor's rows from shared memory; bytes past the row's end stay untouched.
template <uint32_t most_row_bytes>
FULCRUM_DEVICE void store_rows(const RepackParams& params, const RepackTile& tile, const TensorRows& rows,
                               uint32_t granule_bytes, SharedAddress shared) {
  const auto store_bytes = [](const Granule& g) {
    for (uint32_t i = 0; i < g.valid_bytes; ++i) ptx::st_global_u8(g.global + i, ptx::ld_shared_u8(g.shared + i));
  };
  if (granule_bytes == 16) {
    for_each_granule<16, most_row_bytes>(params, tile, rows, shared, [&](const Granule& g) {
      if (g.valid_bytes == 16)
        ptx::st_global_v4(address_cast<Vec4>(g.global), ptx::ld_shared_v4(g.shared));
      else
        store_bytes(g);
    });
  } else if (granule_bytes == 4) {
    for_each_granule<4, most_row_bytes>(params, tile, rows, shared, [&](const Granule& g) {
      if (g.valid_bytes == 4)
        ptx::st_global_u32(address_cast<uint32_t>(g.global), ptx::ld_shared_u32(g.shared));
      else
        store_bytes(g);
    });
  } else {
    for_each_granule<1, most_row_bytes>(params, tile, rows, shared, store_bytes);
  }
}

FULCRUM_NAMESPACE_END
