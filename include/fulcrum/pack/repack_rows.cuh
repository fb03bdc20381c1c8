// The copies of one block's checkpoint rows between global and shared memory, 16, 4 or 1 bytes at a time.
//
// Called by repack.cuh, in both directions; a RepackTile says which rows and columns.
// Invariant: shared memory holds [64 packed rows][repack_row_pitch] bytes; a row is the checkpoint's own bytes of the
// tile's columns: block36 blocks, or 256 code bytes with 32 scale bytes behind them. Bytes past the row's end are
// zeros.
#pragma once
#include <fulcrum/pack/formats.h>
#include <fulcrum/ptx/cp_async.cuh>
#include <fulcrum/ptx/ldst.cuh>
#include <fulcrum/ptx/sync.cuh>

FULCRUM_NAMESPACE_BEGIN

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
      const uint8_t byte =
          g.valid_bytes != 0 ? ptx::ld_global_nc_u8(address_cast<const uint8_t>(g.global)) : uint8_t(0);
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
