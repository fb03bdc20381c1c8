// Kernels that build a CSR of a routing on the device: offsets, pair_ids and up to two lists of token tiles.
//
// Launched by the host with csr_blocks() x csr_threads and csr_shared() bytes; core/csr.h says which steps a batch
// takes. Nothing synchronizes with the host: sizes that depend on the ids, and if wanted the token count, stay on the
// device. Invariant: see core/csr.h. Every output word of a batch is written by every launch, so nothing needs
// clearing.
#pragma once
#include <fulcrum/core/csr.h>
#include <fulcrum/layer/counting_sort.cuh>
#include <fulcrum/ptx/ldst.cuh>
#include <fulcrum/ptx/sync.cuh>

FULCRUM_NAMESPACE_BEGIN

// The parameters and this block's shared memory.
struct CsrBlock {
  const CsrParams& params;
  SharedAddress table, offsets, tiles, lengths, warp_sums;

  FULCRUM_DEVICE explicit CsrBlock(const CsrParams& csr_params) : params(csr_params) {
    const CsrShared shared = csr_shared(params.local_experts);
    const SharedAddress base = ptx::dynamic_shared();
    table = base + shared.table;
    offsets = base + shared.offsets;
    tiles = base + shared.tiles;
    lengths = base + shared.lengths;
    warp_sums = base + shared.warp_sums;
  }

  // Pairs of this batch. A device count outside 0 .. max_tokens is taken as the nearer end.
  FULCRUM_DEVICE uint32_t num_pairs() const {
    int32_t tokens = int32_t(params.max_tokens);
    if (params.num_tokens != nullptr) {
      tokens = max_of(0, min_of(tokens, ptx::ld_global_s32(global_address(params.num_tokens))));
    }
    return uint32_t(tokens) * params.top_k;
  }

  static constexpr int32_t impossible_id = -0x7FFFFFFF - 1;

  FULCRUM_DEVICE int32_t expert_id(uint32_t pair) const {
    uint64_t element = pair;
    if (params.ids_row_stride != params.top_k) {
      const uint32_t token = pair / params.top_k;
      element = token * params.ids_row_stride + (pair - token * params.top_k);
    }
    if (params.wide_ids == nullptr) return ptx::ld_global_nc_s32(global_address(params.ids) + int64_t(element));
    const uint64_t wide =
        ptx::ld_global_nc_u64(address_cast<const uint64_t>(global_address(params.wide_ids)) + int64_t(element));
    const int32_t id = int32_t(uint32_t(wide));
    return uint64_t(int64_t(id)) == wide ? id : impossible_id;
  }

  FULCRUM_DEVICE GlobalAddress<uint32_t> chunk_counts(uint32_t chunk) const {  // [local_experts]
    return global_address(params.workspace) + int64_t(chunk) * params.local_experts;
  }
  FULCRUM_DEVICE GlobalAddress<uint32_t> expert_rows() const {  // [local_experts], behind the chunks
    return chunk_counts(csr_chunks(uint64_t(params.max_tokens) * params.top_k));
  }
};

// For the sort of pairs by local expert.
struct PairSource {
  using Value = int32_t;
  const CsrBlock& block;

  FULCRUM_DEVICE int32_t load(uint32_t pair) const { return block.expert_id(pair); }

  // One unsigned comparison refuses -1, ids of other ranks and impossible ids alike: first_expert + local_experts is
  // below 2^31, so a negative id stays above local_experts after the subtraction.
  FULCRUM_DEVICE uint32_t key(int32_t id) const {
    const uint32_t local = uint32_t(id) - block.params.first_expert;
    return local < block.params.local_experts ? local : no_key;
  }
};

// Counts pairs begin .. end-1 by local expert: the table is ready for place_pairs(), `totals` has this block's rows.
FULCRUM_DEVICE void count_pairs(const CsrBlock& block, uint32_t begin, uint32_t end, SharedAddress totals) {
  const SortTable table{block.table, block.params.local_experts};
  clear_table(table);
  ptx::barrier_sync();  // orders the cleared table before the counts
  count_keys(table, begin, end, PairSource{block});
  ptx::barrier_sync();  // orders all warps' counts before their sums
  sum_warps(table, totals);
  ptx::barrier_sync();  // orders the sums before place_pairs() and the totals before whoever scans or stores them
}

// Writes the pairs behind their expert's first row, which `first_rows` [local_experts] gives.
FULCRUM_DEVICE void place_pairs(const CsrBlock& block, uint32_t begin, uint32_t end, SharedAddress first_rows) {
  place_items(SortTable{block.table, block.params.local_experts}, begin, end, PairSource{block},
              [&](uint32_t pair, int32_t, uint32_t expert, uint32_t rank) {
                const uint32_t row = ptx::ld_shared_u32(first_rows + expert * 4) + rank;
                ptx::st_global_s32(global_address(block.params.pair_ids) + row, int32_t(pair));
              });
}

FULCRUM_DEVICE void store_offsets(const CsrBlock& block) {
  for (uint32_t e = ptx::thread_index(); e <= block.params.local_experts; e += csr_threads) {
    ptx::st_global_s32(global_address(block.params.offsets) + e, ptx::ld_shared_s32(block.offsets + e * 4));
  }
}

// Tile `index` in expert order, from the prefix sums in block.offsets and block.tiles.
FULCRUM_DEVICE TokenTile token_tile(const CsrBlock& block, uint32_t index) {
  // The last expert whose first tile is at most `index`; those without tiles share their successor's first tile and
  // are passed over.
  uint32_t expert = 0;
  for (uint32_t beyond = block.params.local_experts; beyond - expert > 1;) {
    const uint32_t middle = (expert + beyond) / 2;
    (ptx::ld_shared_u32(block.tiles + middle * 4) <= index ? expert : beyond) = middle;
  }
  const uint32_t first_tile = ptx::ld_shared_u32(block.tiles + expert * 4);
  const uint32_t tiles = ptx::ld_shared_u32(block.tiles + expert * 4 + 4) - first_tile;
  const uint32_t first_row = ptx::ld_shared_u32(block.offsets + expert * 4);
  const uint32_t rows = ptx::ld_shared_u32(block.offsets + expert * 4 + 4) - first_row;
  const uint32_t begin = expert_tile_begin(rows, tiles, index - first_tile);
  const uint32_t end = expert_tile_begin(rows, tiles, index - first_tile + 1);
  return {int32_t(expert), int32_t(first_row + begin), int32_t(end - begin), 0};
}

FULCRUM_DEVICE void store_token_tile(const CsrTileList& list, uint32_t position, const TokenTile& tile) {
  ptx::st_global_v4(address_cast<Vec4>(global_address(list.token_tiles) + position),
                    {uint32_t(tile.expert), uint32_t(tile.row_begin), uint32_t(tile.num_rows), 0});
}

// For the sort of tiles by length; key 0 is the greatest length that there can be.
struct TileSource {
  using Value = TokenTile;
  const CsrBlock& block;

  FULCRUM_DEVICE TokenTile load(uint32_t index) const { return token_tile(block, index); }
  FULCRUM_DEVICE uint32_t key(const TokenTile& tile) const {
    return csr_length_keys - ceil_div(uint32_t(tile.num_rows), csr_granule);
  }
};

// The list sorted by length, the longest first.
FULCRUM_DEVICE void store_longest_first(const CsrBlock& block, const CsrTileList& list, uint32_t num_tiles) {
  const SortTable table{block.table, csr_length_keys};
  clear_table(table);
  ptx::barrier_sync();  // orders the cleared table before the counts
  count_keys(table, 0, num_tiles, TileSource{block});
  ptx::barrier_sync();  // orders all warps' counts before their sums
  sum_warps(table, block.lengths);
  ptx::barrier_sync();  // orders the totals before the scan
  exclusive_scan(block.lengths, csr_length_keys, block.warp_sums);
  place_items(table, 0, num_tiles, TileSource{block},
              [&](uint32_t, const TokenTile& tile, uint32_t key, uint32_t rank) {
                store_token_tile(list, ptx::ld_shared_u32(block.lengths + key * 4) + rank, tile);
              });
}

// One list, from the prefix sums of rows in block.offsets.
FULCRUM_DEVICE void cut_tiles(const CsrBlock& block, const CsrTileList& list) {
  if (list.token_tiles == nullptr) return;
  ptx::barrier_sync();  // orders the last readers of table, tiles and lengths before they are written again
  for (uint32_t e = ptx::thread_index(); e < block.params.local_experts; e += csr_threads) {
    const uint32_t rows = ptx::ld_shared_u32(block.offsets + e * 4 + 4) - ptx::ld_shared_u32(block.offsets + e * 4);
    ptx::st_shared_u32(block.tiles + e * 4, num_expert_tiles(rows, list.tile_m));
  }
  ptx::barrier_sync();  // orders the numbers of tiles before the scan
  const uint32_t num_tiles = exclusive_scan(block.tiles, block.params.local_experts, block.warp_sums);
  if (ptx::thread_index() == 0) ptx::st_global_s32(global_address(list.num_token_tiles), int32_t(num_tiles));
  if (list.order == TileOrder::longest) {
    store_longest_first(block, list, num_tiles);
  } else {
    for (uint32_t index = ptx::thread_index(); index < num_tiles; index += csr_threads) {
      store_token_tile(list, index, token_tile(block, index));
    }
  }
}

// Rows per expert in block.offsets become their prefix sums, there and in memory.
FULCRUM_DEVICE void store_rows(const CsrBlock& block) {
  exclusive_scan(block.offsets, block.params.local_experts, block.warp_sums);
  store_offsets(block);
}

FULCRUM_DEVICE void csr_single(const CsrBlock& block) {
  const uint32_t pairs = block.num_pairs();
  count_pairs(block, 0, pairs, block.offsets);
  store_rows(block);
  place_pairs(block, 0, pairs, block.offsets);
  cut_tiles(block, block.params.lists[0]);
  cut_tiles(block, block.params.lists[1]);
}

// Pairs of this block's chunk; none when it lies past the batch.
FULCRUM_DEVICE Segment chunk_pairs(const CsrBlock& block) {
  const uint32_t pairs = block.num_pairs();
  const uint32_t begin = min_of(ptx::block_index() * csr_chunk_pairs, pairs);
  return {begin, min_of(begin + csr_chunk_pairs, pairs)};
}

FULCRUM_DEVICE void csr_count(const CsrBlock& block) {
  const Segment chunk = chunk_pairs(block);
  count_pairs(block, chunk.begin, chunk.end, block.offsets);
  for (uint32_t e = ptx::thread_index(); e < block.params.local_experts; e += csr_threads) {
    ptx::st_global_u32(block.chunk_counts(ptx::block_index()) + e, ptx::ld_shared_u32(block.offsets + e * 4));
  }
}

// Each expert's counts, chunk by chunk, become the rows before that chunk; the sum goes to expert_rows. A lane has one
// expert, a warp an eighth of the chunks.
FULCRUM_DEVICE void csr_columns(const CsrBlock& block) {
  const uint32_t chunks = csr_chunks(uint64_t(block.params.max_tokens) * block.params.top_k);
  const uint32_t expert = ptx::block_index() * csr_column_experts + ptx::lane_index();
  const bool owns_expert = expert < block.params.local_experts;
  const uint32_t warp = ptx::warp_index();
  const uint32_t share = ceil_div(chunks, csr_warps);
  const uint32_t begin = min_of(warp * share, chunks);
  const uint32_t end = owns_expert ? min_of(begin + share, chunks) : begin;
  uint32_t sum = 0;
  for (uint32_t chunk = begin; chunk < end; ++chunk)
    sum += ptx::ld_global_u32(address_cast<const uint32_t>(block.chunk_counts(chunk) + expert));
  const SharedAddress sums = block.table + ptx::lane_index() * 4;  // [csr_warps][32]
  ptx::st_shared_u32(sums + warp * 128, sum);
  ptx::barrier_sync();  // orders the warps' sums before everybody's loads of them
  uint32_t before = 0;
  for (uint32_t w = 0; w < warp; ++w) before += ptx::ld_shared_u32(sums + w * 128);
  for (uint32_t chunk = begin; chunk < end; ++chunk) {
    const GlobalAddress<uint32_t> count = block.chunk_counts(chunk) + expert;
    const uint32_t rows = ptx::ld_global_u32(address_cast<const uint32_t>(count));
    ptx::st_global_u32(count, before);
    before += rows;
  }
  if (owns_expert && warp == csr_warps - 1) ptx::st_global_u32(block.expert_rows() + expert, before);
}

FULCRUM_DEVICE void csr_tiles(const CsrBlock& block) {
  for (uint32_t e = ptx::thread_index(); e < block.params.local_experts; e += csr_threads) {
    ptx::st_shared_u32(block.offsets + e * 4,
                       ptx::ld_global_u32(address_cast<const uint32_t>(block.expert_rows() + e)));
  }
  ptx::barrier_sync();  // orders the rows before the scan
  store_rows(block);
  cut_tiles(block, block.params.lists[0]);
  cut_tiles(block, block.params.lists[1]);
}

FULCRUM_DEVICE void csr_place(const CsrBlock& block) {
  const Segment chunk = chunk_pairs(block);
  count_pairs(block, chunk.begin, chunk.end, block.tiles);  // its totals are in the chunk's counts already
  for (uint32_t e = ptx::thread_index(); e < block.params.local_experts; e += csr_threads) {
    const GlobalAddress<uint32_t> before_chunk = block.chunk_counts(ptx::block_index()) + e;
    const GlobalAddress<int32_t> first_row = global_address(block.params.offsets) + e;
    ptx::st_shared_u32(block.offsets + e * 4, uint32_t(ptx::ld_global_s32(address_cast<const int32_t>(first_row))) +
                                                  ptx::ld_global_u32(address_cast<const uint32_t>(before_chunk)));
  }
  ptx::barrier_sync();  // orders the chunk's first rows before place_pairs() loads them
  place_pairs(block, chunk.begin, chunk.end, block.offsets);
}

// Both bounds of every id: the smallest pair whose id is below -1 or not below params.experts.
FULCRUM_DEVICE void csr_validate(const CsrBlock& block) {
  uint32_t first_bad = csr_no_bad_pair;
  const uint32_t pairs = block.num_pairs();
  for (uint32_t pair = ptx::thread_index(); pair < pairs && first_bad == csr_no_bad_pair; pair += csr_threads) {
    const int32_t id = block.expert_id(pair);
    if (id < -1 || id >= int32_t(block.params.experts)) first_bad = pair;
  }
  for (uint32_t mask = 16; mask > 0; mask /= 2) first_bad = min_of(first_bad, ptx::shfl_bfly(first_bad, mask));
  const uint32_t warp = ptx::warp_index();  // a shuffle: all lanes must take part
  if (ptx::lane_index() == 0) ptx::st_shared_u32(block.warp_sums + warp * 4, first_bad);
  ptx::barrier_sync();  // orders the warps' minima before thread 0 loads them
  if (ptx::thread_index() != 0) return;
  for (uint32_t w = 0; w < csr_warps; ++w) first_bad = min_of(first_bad, ptx::ld_shared_u32(block.warp_sums + w * 4));
  ptx::st_global_u32(global_address(block.params.first_bad_pair), first_bad);
}

// The body of each kernel.
template <CsrStep step>
FULCRUM_DEVICE void run_csr(const CsrParams& params) {
  const CsrBlock block(params);
  if constexpr (step == CsrStep::single) csr_single(block);
  if constexpr (step == CsrStep::count) csr_count(block);
  if constexpr (step == CsrStep::columns) csr_columns(block);
  if constexpr (step == CsrStep::tiles) csr_tiles(block);
  if constexpr (step == CsrStep::place) csr_place(block);
  if constexpr (step == CsrStep::validate) csr_validate(block);
}

FULCRUM_NAMESPACE_END

// Defines the kernel of one step, whose name and whole source are in host/routing.hpp: the #include of this file and
// FULCRUM_CSR_KERNEL(single), say. __grid_constant__ keeps the parameters out of local memory.
#define FULCRUM_CSR_KERNEL(step)                                                \
  extern "C" __global__ void __launch_bounds__(::fulcrum::csr_threads)          \
      fulcrum_csr_##step(const __grid_constant__ ::fulcrum::CsrParams params) { \
    ::fulcrum::run_csr<::fulcrum::CsrStep::step>(params);                       \
  }
