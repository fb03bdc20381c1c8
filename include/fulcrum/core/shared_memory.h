// Shared memory of a block, computed once: the host asks for shared_memory(...).total_bytes, kernels take every address
// from it.
//
//   [stages] stage:  tokens [tile_m][tile_k * 2 + token_pad] bytes, then weights [tile_n/64][tile_k/64][4 units][576]
//   [stages] slots for the WorkItem of the tile that starts in the stage
//   [stages] full and empty mbarriers (with producer warps)
//   two tickets (with producer warps), or [2][tile_m] row indices and one ticket
//   [stages] indices of the WorkItems (with split_k)
//   [consumer warps][8 tokens] outputs of the warp, then their row's address (with output_staging=shared)
#pragma once
#include <fulcrum/core/config.h>
#include <fulcrum/core/params.h>

FULCRUM_NAMESPACE_BEGIN

// What consumers need to know of a tile; `num_rows` 0 ends the kernel.
struct WorkItem {
  int32_t expert;
  int32_t n_tile;
  int32_t row_begin;
  int32_t num_rows;
  uint32_t index;  // among all items
};

// A slot holds the first four; the index has slots of its own where somebody asks for it.
inline constexpr uint32_t item_bytes = 16;

struct SharedMemory {
  uint32_t token_row_bytes;  // pitch of a token row
  uint32_t token_bytes;      // of a stage
  uint32_t weight_bytes;     // of a stage
  uint32_t stage_bytes;
  uint32_t items_offset, item_index_offset;
  uint32_t full_offset, empty_offset;
  uint32_t rows_offset, ticket_offset;
  uint32_t output_offset, output_row_bytes;
  uint32_t total_bytes;
};

// Bulk copies have warps of their own that issue them.
FULCRUM_HD constexpr bool has_producer(const Config& config) { return config.copy != Copy::cp_async; }

FULCRUM_HD constexpr uint32_t consumer_warps(const Config& config) { return uint32_t(config.warps_n * config.warps_m); }

FULCRUM_HD constexpr SharedMemory shared_memory(const Config& config) {
  SharedMemory s{};
  const uint32_t stages = uint32_t(config.stages), tile_m = uint32_t(config.tile_m);
  s.token_row_bytes = uint32_t(config.tile_k) * 2 + uint32_t(config.token_pad);
  s.token_bytes = tile_m * s.token_row_bytes;
  s.weight_bytes = uint32_t(config.tile_n) / group_n * (uint32_t(config.tile_k) / unit_k) * group_bytes;
  s.stage_bytes = s.token_bytes + s.weight_bytes;
  s.items_offset = stages * s.stage_bytes;
  uint32_t end = s.items_offset + stages * item_bytes;
  if (has_producer(config)) {
    s.full_offset = end;
    s.empty_offset = end + stages * 8;  // an mbarrier is 8 bytes
    s.ticket_offset = end + stages * 16;
    end = s.ticket_offset + 8;
  } else {
    s.rows_offset = end;
    s.ticket_offset = end + 2 * tile_m * 4;
    end = s.ticket_offset + 4;
  }
  if (config.split_k > 1) {
    s.item_index_offset = round_up(end, 4u);
    end = s.item_index_offset + stages * 4;
  }
  if (config.output_staging == OutputStaging::shared) {
    s.output_offset = round_up(end, 16u);
    s.output_row_bytes = uint32_t(config.tile_n / config.warps_n) * 2 + 16;
    end = s.output_offset + consumer_warps(config) * 8 * s.output_row_bytes;
  }
  s.total_bytes = round_up(end, 16u);
  return s;
}

FULCRUM_HD constexpr uint32_t producer_warps(const Config& config) {
  return has_producer(config) ? uint32_t(config.producer_warps) : 0;
}

// Token rows that all producer lanes together copy at once: a bulk copy is a row, a cp.async 16 bytes of one.
FULCRUM_HD constexpr uint32_t producer_rows(const Config& config) {
  return 32 * producer_warps(config) / (config.copy == Copy::bulk ? 1 : uint32_t(config.tile_k) / 8);
}

FULCRUM_HD constexpr uint32_t block_threads(const Config& config) {
  return 32 * (consumer_warps(config) + producer_warps(config));
}

FULCRUM_NAMESPACE_END
