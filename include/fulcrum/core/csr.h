// CSR of a routing: which pairs each local expert gets, and its rows cut into token tiles. Sizes, cuts and launch
// geometry, shared by the host that launches, the kernels of layer/csr.cuh and the host reference of the tests.
//
// Invariant: rows of an expert are its pairs in ascending order (stable), so the result does not depend on the path,
// the number of blocks or timing. Pairs whose id is outside [first_expert, first_expert + local_experts), -1 included,
// are skipped; experts without rows have an empty range and no tile.
#pragma once
#include <fulcrum/core/config.h>
#include <fulcrum/core/params.h>

FULCRUM_NAMESPACE_BEGIN

// One list of token tiles. tile_m is a multiple of 8, 8 to csr_max_tile_m.
struct CsrTileList {
  TokenTile* token_tiles = nullptr;    // [max_token_tiles(pairs, local_experts, tile_m)]; null: no such list
  int32_t* num_token_tiles = nullptr;  // [1]
  uint32_t tile_m = 0;
  TileOrder order = TileOrder::expert;  // longest: by granules of 8 rows, descending; equal ones in expert order
};

// By value to every kernel. All pointers are device memory, aligned to their element. Ids may be missing when
// max_tokens is 0; no array is read or written past the tokens that the batch has.
struct CsrParams {
  const int32_t* ids = nullptr;         // [tokens][top_k] global expert ids
  uint64_t ids_row_stride = 0;          // from one token's ids to the next, in elements
  const int32_t* num_tokens = nullptr;  // [1] tokens of this batch, 0 .. max_tokens; null: max_tokens
  uint32_t max_tokens = 0;
  uint32_t top_k = 0;
  uint32_t experts = 0;  // of the global id space: ids are -1 .. experts - 1 (only `validate` looks)
  uint32_t first_expert = 0;
  uint32_t local_experts = 0;     // 1 to csr_max_experts
  int32_t* offsets = nullptr;     // [local_experts + 1] first row of each expert; the last is the number of rows
  int32_t* pair_ids = nullptr;    // [pairs] in CSR order: the pair p = token * top_k + choice of each row
  CsrTileList lists[2];           // gate_up's and down's, say
  uint32_t* workspace = nullptr;  // csr_workspace_bytes(...)
  // in place of `ids`, if not null: numbers past 32 bits are impossible ids
  const int64_t* wide_ids = nullptr;
  // [1] `validate` only: the smallest pair with an impossible id, or csr_no_bad_pair
  uint32_t* first_bad_pair = nullptr;
};

inline constexpr uint32_t csr_no_bad_pair = 0xFFFFFFFFu;
inline constexpr uint32_t csr_max_experts = 1024;
inline constexpr uint32_t csr_max_tile_m = 512;
inline constexpr uint32_t csr_granule = 8;  // rows; a tile's cost moves in steps of the MMA's 8 tokens

// Tiles of an expert with `rows` rows.
FULCRUM_HD constexpr uint32_t num_expert_tiles(uint32_t rows, uint32_t tile_m) { return ceil_div(rows, tile_m); }

// First row, within the expert, of tile `index` of `tiles`; index = tiles gives `rows`. The expert's granules are dealt
// evenly, the larger shares last: the last tile, which may be up to 7 rows short of its granules, has a larger share
// whenever any tile has, so no two tiles differ by more than 8 rows.
FULCRUM_HD constexpr uint32_t expert_tile_begin(uint32_t rows, uint32_t tiles, uint32_t index) {
  const uint32_t granules = ceil_div(rows, csr_granule);
  const uint32_t share = granules / tiles;
  const uint32_t small_shares = tiles - (granules - share * tiles);
  const uint32_t begin = share * index + (index > small_shares ? index - small_shares : 0);
  return min_of(rows, begin * csr_granule);
}

// The kernels of layer/csr.cuh. A small batch takes `single` alone; a large one count, columns, tiles, place, in stream
// order. `validate` is the debug check of the ids, and may run before either.
enum class CsrStep : uint8_t { single, count, columns, tiles, place, validate };

inline constexpr uint32_t csr_threads = 256;
inline constexpr uint32_t csr_warps = csr_threads / 32;

// Pairs that one block sorts: 16 steps of 32 pairs for each of its warps. Fewer would make the table of counts that
// `columns` scans longer, more would leave SMs idle at 32,768 pairs.
inline constexpr uint32_t csr_chunk_pairs = 4096;
inline constexpr uint32_t csr_column_experts = 32;  // experts that a block of `columns` scans, one a lane

FULCRUM_HD constexpr uint32_t csr_chunks(uint64_t max_pairs) {
  return uint32_t(ceil_div(max_pairs, uint64_t(csr_chunk_pairs)));
}
FULCRUM_HD constexpr bool csr_is_small(uint64_t max_pairs) { return max_pairs <= csr_chunk_pairs; }

// The kernels that a batch of at most max_pairs takes, in stream order.
struct CsrPath {
  CsrStep steps[4];
  uint32_t num_steps;
};
FULCRUM_HD constexpr CsrPath csr_path(uint64_t max_pairs) {
  if (csr_is_small(max_pairs)) return {{CsrStep::single}, 1};
  return {{CsrStep::count, CsrStep::columns, CsrStep::tiles, CsrStep::place}, 4};
}

// Workspace of the large path: counts [chunks][local_experts], then rows [local_experts]; none for a small batch.
FULCRUM_HD constexpr uint64_t csr_workspace_bytes(uint64_t max_pairs, uint32_t local_experts) {
  return csr_is_small(max_pairs) ? 0 : (uint64_t(csr_chunks(max_pairs)) + 1) * local_experts * sizeof(uint32_t);
}

FULCRUM_HD constexpr uint32_t csr_blocks(CsrStep step, const CsrParams& params) {
  const uint64_t max_pairs = uint64_t(params.max_tokens) * params.top_k;
  switch (step) {
    case CsrStep::count:
    case CsrStep::place: return csr_chunks(max_pairs);
    case CsrStep::columns: return ceil_div(params.local_experts, csr_column_experts);
    default: return 1;
  }
}

// Shared memory of a block, in bytes from its first.
struct CsrShared {
  uint32_t table;      // [csr_warps][keys] items of each key, by warp
  uint32_t offsets;    // [keys + 1] first row of each expert
  uint32_t tiles;      // [keys + 1] first tile of each expert
  uint32_t lengths;    // [csr_length_keys + 1] first position of the tiles of each length
  uint32_t warp_sums;  // [csr_warps]
  uint32_t total_bytes;
};

// Two sorts use the table in turn: pairs by local expert, then tiles by length in granules.
inline constexpr uint32_t csr_length_keys = csr_max_tile_m / csr_granule;
inline constexpr uint32_t csr_key_bits = 10;
static_assert(csr_max_experts <= 1u << csr_key_bits && csr_length_keys <= 1u << csr_key_bits, "keys need more bits");

FULCRUM_HD constexpr CsrShared csr_shared(uint32_t local_experts) {
  const uint32_t keys = max_of(local_experts, csr_length_keys);
  CsrShared shared{};
  shared.offsets = csr_warps * keys * 4;
  shared.tiles = shared.offsets + (keys + 1) * 4;
  shared.lengths = shared.tiles + (keys + 1) * 4;
  shared.warp_sums = shared.lengths + (csr_length_keys + 1) * 4;
  shared.total_bytes = round_up(shared.warp_sums + csr_warps * 4, 16u);
  return shared;
}
// 48 KiB is what a block may use without asking the driver for more.
static_assert(csr_shared(csr_max_experts).total_bytes <= 48 * 1024, "the CSR kernels must launch without an attribute");

// Words when these sizes cannot be sorted, else null. Pointers are the caller's to check.
FULCRUM_HD constexpr const char* illegal_csr(const CsrParams& params) {
  if (params.top_k < 1) return "top_k must be at least 1";
  if (params.local_experts < 1 || params.local_experts > csr_max_experts) return "local experts must be 1 to 1,024";
  if (params.local_experts > params.experts || params.first_expert > params.experts - params.local_experts)
    return "the rank's experts must lie within all experts";
  if (params.experts > 0x7FFFFFFF) return "expert ids must fit 31 bits";
  if (uint64_t(params.max_tokens) * params.top_k > 0x7FFFFFFF - csr_chunk_pairs)
    return "tokens * top_k must stay below 2^31 - 4096, so that a pair's index fits int32";
  if (params.ids_row_stride < params.top_k) return "the row stride of ids is shorter than top_k";
  for (const CsrTileList& list : params.lists) {
    if (list.token_tiles == nullptr && list.num_token_tiles == nullptr) continue;
    if (list.tile_m < csr_granule || list.tile_m > csr_max_tile_m || list.tile_m % csr_granule != 0)
      return "tile_m must be a multiple of 8, 8 to 512";
  }
  return nullptr;
}

FULCRUM_NAMESPACE_END
