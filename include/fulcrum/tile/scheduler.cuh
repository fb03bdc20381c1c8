// Which tiles a block computes: work items (token tile, n tile, part of k).
//
// Called by the thread or warp that fills the ring. Invariant: n tiles of one token tile are adjacent, or, with
// raster=tokens, token tiles of one n tile; parts of k always are; each item goes to one block, and tickets are zero
// again after every launch.
#pragma once
#include <fulcrum/core/config.h>
#include <fulcrum/core/params.h>
#include <fulcrum/core/shared_memory.h>
#include <fulcrum/ptx/atom.cuh>
#include <fulcrum/ptx/sync.cuh>
#include <fulcrum/tile/work_item.cuh>

FULCRUM_NAMESPACE_BEGIN

template <class V>
class Scheduler {
 public:
  FULCRUM_DEVICE explicit Scheduler(const Params& params)
      : params_(params), n_tiles_(ceil_div(params.n, uint32_t(V::config.tile_n))) {
    num_token_tiles_ = uint32_t(ptx::ld_global_nc_s32(global_address(params.num_token_tiles)));
    num_items_ = num_token_tiles_ * n_tiles_ * parts;
  }

  FULCRUM_DEVICE uint32_t first() const { return ptx::block_index(); }

  // The item after `index`; with a ticket queue, one thread asks for the block.
  FULCRUM_DEVICE uint32_t next(uint32_t index) const {
    if constexpr (V::config.tile_queue == TileQueue::fixed) return index + ptx::num_blocks();
    return ptx::num_blocks() + ptx::atom_global_add_u32(global_address(params_.tickets), 1);
  }

  FULCRUM_DEVICE bool has(uint32_t index) const { return index < num_items_; }

  // The item of an index; num_rows 0 when there is none.
  FULCRUM_DEVICE WorkItem item(uint32_t index) const {
    if (!has(index)) return {};
    const uint32_t tile_index = index / parts;
    constexpr bool along_tokens = V::config.raster == Raster::tokens;
    const uint32_t token_tile = along_tokens ? tile_index % num_token_tiles_ : tile_index / n_tiles_;
    const uint32_t n_tile = along_tokens ? tile_index / num_token_tiles_ : tile_index % n_tiles_;
    const Vec4 tile =
        ptx::ld_global_nc_v4(address_cast<const Vec4>(global_address(params_.token_tiles)) + int64_t(token_tile));
    return {int32_t(tile.x), int32_t(n_tile), int32_t(tile.y), int32_t(tile.z), index};
  }

  // Called by one thread when its block takes no more tickets: the last block leaves the counters at zero for the next
  // launch. Acquire and release order every block's tickets before the reset.
  FULCRUM_DEVICE void finish() const {
    if constexpr (V::config.tile_queue == TileQueue::ticket) {
      const GlobalAddress<uint32_t> tickets = global_address(params_.tickets);
      if (ptx::atom_acq_rel_global_add_u32(tickets + 1, 1) + 1 == ptx::num_blocks()) {
        ptx::st_global_u32(tickets, 0);
        ptx::st_global_u32(tickets + 1, 0);
      }
    }
  }

 private:
  static constexpr uint32_t parts = uint32_t(V::config.split_k);

  const Params& params_;
  uint32_t n_tiles_;
  uint32_t num_token_tiles_;
  uint32_t num_items_;
};

FULCRUM_NAMESPACE_END
