// The ring filled by cp.async (sm_80): every warp both copies and computes.
//
// Called by the families with copy=cp_async. Invariant: wait() is the block's meeting point: it finishes the oldest
// stage, and refills the one that everybody has just left, so loads run on across tiles.
#pragma once
#include <fulcrum/core/layout.h>
#include <fulcrum/tile/copies.cuh>
#include <fulcrum/tile/scheduler.cuh>
#include <fulcrum/tile/tokens.cuh>
#include <fulcrum/tile/weights.cuh>

FULCRUM_NAMESPACE_BEGIN

template <class V>
class CpAsyncRing {
 public:
  static constexpr SharedMemory memory = shared_memory(V::config);

  FULCRUM_DEVICE CpAsyncRing(const Params& params, SharedAddress shared)
      : params_(params), shared_(shared), scheduler_(params) {
    index_ = scheduler_.first();
    start_tile();
#pragma unroll 1
    for (int stage = 0; stage < V::config.stages - 1; ++stage) fill();
  }

  // Orders everybody's copies into the current stage before this thread's reads of it, and everybody's reads of the
  // previous stage before the copies that refill that one now.
  FULCRUM_DEVICE SharedAddress wait() {
    ptx::cp_async_wait_group<V::config.stages - 2>();
    ptx::barrier_sync();
    fill();
    return stage_address(stage_);
  }

  FULCRUM_DEVICE WorkItem item() const { return ItemSlots<V>::read(shared_, stage_); }

  FULCRUM_DEVICE void release() { stage_ = stage_ + 1 == uint32_t(V::config.stages) ? 0 : stage_ + 1; }

 private:
  static constexpr uint32_t threads = block_threads(V::config);
  static constexpr uint32_t step_units = uint32_t(V::config.tile_k) / unit_k;
  static constexpr uint32_t tile_groups = uint32_t(V::config.tile_n) / group_n;
  static constexpr uint32_t row_chunks = uint32_t(V::config.tile_k) * 2 / 16;  // 16-byte pieces of a token row

  FULCRUM_DEVICE SharedAddress stage_address(uint32_t stage) const { return shared_ + stage * memory.stage_bytes; }
  FULCRUM_DEVICE SharedAddress row_table(uint32_t tile_parity) const {
    return shared_ + memory.rows_offset + tile_parity * uint32_t(V::config.tile_m) * 4;
  }

  // Looks the tile `index_` up and writes its row numbers; two tables, so that a slow warp can still read the last one.
  FULCRUM_DEVICE void start_tile() {
    item_ = scheduler_.item(index_);
    range_ = k_range<V>(item_, params_.k);
    k_unit_ = range_.begin;
    tile_parity_ ^= 1;
    for (uint32_t row = ptx::thread_index(); row < uint32_t(item_.num_rows); row += threads)
      ptx::st_shared_u32(row_table(tile_parity_) + row * 4,
                         row_index(params_, params_.input_rows, uint32_t(item_.row_begin) + row));
    if (item_.num_rows == 0 && ptx::thread_index() == 0) scheduler_.finish();
    ptx::barrier_sync();  // orders the table before every thread's copies
  }

  FULCRUM_DEVICE void next_index() {
    if constexpr (V::config.tile_queue == TileQueue::fixed) {
      index_ = scheduler_.next(index_);
    } else {
      if (ptx::thread_index() == 0) ptx::st_shared_u32(shared_ + memory.ticket_offset, scheduler_.next(index_));
      ptx::barrier_sync();  // orders the ticket before its readers; they pass another barrier before the next one
      index_ = ptx::ld_shared_u32(shared_ + memory.ticket_offset);
    }
  }

  // Issues the copies of the next step as one group; after the last tile, empty groups keep the count of waits right.
  FULCRUM_DEVICE void fill() {
    if (item_.num_rows != 0 && k_unit_ >= range_.end) {
      next_index();
      start_tile();
    }
    if (k_unit_ == range_.begin && ptx::thread_index() == 0) ItemSlots<V>::write(shared_, fill_stage_, item_);
    if (item_.num_rows != 0) {
      copy_weights(stage_address(fill_stage_) + memory.token_bytes);
      copy_tokens(stage_address(fill_stage_));
      k_unit_ += step_units;
    }
    ptx::cp_async_commit_group();
    fill_stage_ = fill_stage_ + 1 == uint32_t(V::config.stages) ? 0 : fill_stage_ + 1;
  }

  FULCRUM_DEVICE void copy_weights(SharedAddress to) const {
    if constexpr (V::config.code_word == CodeWord::block36) return copy_blocks(to);
    constexpr uint32_t unit_chunks = unit_bytes / 16, tile_units = tile_groups * step_units * group_units;
    const uint8_t* expert = expert_pointer(params_.weights, params_.expert_weights);
    const uint32_t first_unit = uint32_t(item_.n_tile) * tile_groups * group_units;
#pragma unroll 1
    for (uint32_t chunk = ptx::thread_index(); chunk < tile_units * unit_chunks; chunk += threads) {
      const uint32_t slot = chunk / unit_chunks;  // [group][k unit][unit of group]
      const uint32_t unit = first_unit + slot / (step_units * group_units) * group_units + slot % group_units;
      const uint32_t k_unit = k_unit_ + slot / group_units % step_units;
      if (unit < params_.n / unit_n && k_unit < range_.end)
        copies_.async_weights(to + chunk * 16,
                              global_address(expert) + int64_t(unit_offset_bytes(params_.n, params_.k, unit, k_unit) +
                                                               chunk % unit_chunks * 16));
    }
  }

  // Weights in place, in words: nine threads take a block, as many blocks at once as there are threads for.
  FULCRUM_DEVICE void copy_blocks(SharedAddress to) const {
    constexpr uint32_t block_words = block36_bytes / 4, pass_blocks = threads / block_words;
    constexpr bool gate_up = V::kind.gate_up;
    const uint32_t first_block = ptx::thread_index() / block_words, byte = ptx::thread_index() % block_words * 4;
    if (first_block >= pass_blocks) return;  // threads that make no whole block
    const uint8_t* expert = expert_pointer(params_.weights, params_.expert_weights);
    const uint8_t* expert_up = gate_up ? expert_pointer(params_.weights_up, params_.expert_weights_up) : expert;
    const uint64_t row_bytes = uint64_t(params_.k / block36_k) * block36_bytes;
#pragma unroll 1
    for (uint32_t block = first_block; block < uint32_t(V::config.tile_n) * step_units; block += pass_blocks) {
      const uint32_t row = block / step_units, kk = block % step_units;
      const uint32_t packed = uint32_t(item_.n_tile) * uint32_t(V::config.tile_n) + row;
      if (packed >= params_.n || k_unit_ + kk >= range_.end) continue;
      const PartRow from = part_row(gate_up, packed);
      copies_.async_weights_4(to + WeightReader<V>::block_offset(row, kk) + byte,
                              global_address(from.part == 0 ? expert : expert_up) +
                                  int64_t(from.row * row_bytes + uint64_t(k_unit_ + kk) * block36_bytes + byte));
    }
  }

  // Columns past k of the last unit meet zero weights; zero tokens keep a stale NaN or infinity out of the product.
  FULCRUM_DEVICE void copy_tokens(SharedAddress to) const {
    const uint32_t k_bytes = min_of(params_.k, range_.end * unit_k) * 2;
#pragma unroll 1
    for (uint32_t chunk = ptx::thread_index(); chunk < uint32_t(item_.num_rows) * row_chunks; chunk += threads) {
      const uint32_t row = chunk / row_chunks, byte = chunk % row_chunks * 16;
      const uint32_t column = k_unit_ * (unit_k * 2) + byte;
      const uint32_t index = ptx::ld_shared_u32(row_table(tile_parity_) + row * 4);
      const bool inside = column < k_bytes;
      copies_.async_tokens(to + row * memory.token_row_bytes + byte,
                           global_address(params_.tokens + index * params_.tokens_stride_bytes) + (inside ? column : 0),
                           inside ? 16 : 0);
    }
  }

  // Of the item: in a bank, or from a table of pointers where there is one.
  FULCRUM_DEVICE const uint8_t* expert_pointer(const uint8_t* bank, const uint8_t* const* table) const {
    if (table == nullptr) return bank + uint64_t(item_.expert) * params_.expert_stride_bytes;
    return reinterpret_cast<const uint8_t*>(
        ptx::ld_global_u64(address_cast<const uint64_t>(global_address(table)) + int64_t(item_.expert)));
  }

  const Params& params_;
  SharedAddress shared_;
  Scheduler<V> scheduler_;
  Copies<V> copies_;
  uint32_t index_ = 0;
  WorkItem item_{};      // tile that is being copied
  KRange range_{};       // of it
  uint32_t k_unit_ = 0;  // next k unit of it
  uint32_t tile_parity_ = 0;
  uint32_t fill_stage_ = 0;  // stage that the next fill() writes
  uint32_t stage_ = 0;       // stage that is being computed
};

FULCRUM_NAMESPACE_END
