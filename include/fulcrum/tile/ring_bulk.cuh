// The ring filled by a producer warp (sm_90) that runs ahead through steps and tiles; consumer warps follow. Weights
// come by bulk copies; token rows by one bulk copy each, or by cp.async, which costs less when there are many rows.
// A stage's full barrier completes when its bytes have landed, its empty barrier when every consumer warp released it.
#pragma once
#include <fulcrum/core/layout.h>
#include <fulcrum/ptx/bulk.cuh>
#include <fulcrum/ptx/cp_async.cuh>
#include <fulcrum/ptx/mbarrier.cuh>
#include <fulcrum/tile/scheduler.cuh>
#include <fulcrum/tile/tokens.cuh>

FULCRUM_NAMESPACE_BEGIN

// A stage and the parity of its current pass; both sides walk the ring with one of these.
template <int stages>
struct RingPosition {
  uint32_t stage = 0;
  uint32_t parity = 0;

  FULCRUM_DEVICE void advance() {
    if (++stage == uint32_t(stages)) {
      stage = 0;
      parity ^= 1;
    }
  }
};

template <class V>
class BulkRing {
 public:
  static constexpr SharedMemory memory = shared_memory(V::config);
  static constexpr uint32_t producer_warp = consumer_warps(V::config);

  FULCRUM_DEVICE BulkRing(const Params& params, SharedAddress shared) : params_(params), shared_(shared) {
    if (ptx::thread_index() == 0) {
      for (uint32_t stage = 0; stage < uint32_t(V::config.stages); ++stage) {
        ptx::mbarrier_init(full(stage), full_arrivals);
        ptx::mbarrier_init(empty(stage), consumer_warps(V::config));
      }
      ptx::fence_mbarrier_init();  // orders the initialization before the copy engine's first arrival
    }
    ptx::barrier_sync();  // orders the initialization before every thread's first wait
  }

  // ---- consumers ---------------------------------------------------------------------------------------------------

  // Waits for the current stage: orders the copies that filled it before this warp's reads.
  FULCRUM_DEVICE SharedAddress wait() {
    ptx::mbarrier_wait_parity(full(position_.stage), position_.parity);
    return stage_address(position_.stage);
  }

  FULCRUM_DEVICE WorkItem item() const {
    const Vec4 v = ptx::ld_shared_v4(shared_ + memory.items_offset + position_.stage * uint32_t(sizeof(WorkItem)));
    // the same for all lanes, and from a lane's register known to be
    return {int32_t(ptx::shfl_idx(v.x, 0)), int32_t(ptx::shfl_idx(v.y, 0)), int32_t(ptx::shfl_idx(v.z, 0)), int32_t(ptx::shfl_idx(v.w, 0))};
  }

  // Gives the stage back: the warp meets so that all its lanes' reads come before the arrival, which comes before the
  // producer's next copies into the stage.
  FULCRUM_DEVICE void release() {
    ptx::bar_warp_sync();
    if (ptx::lane_index() == 0) ptx::mbarrier_arrive(empty(position_.stage));
    position_.advance();
  }

  // ---- producer: the whole warp ------------------------------------------------------------------------------------

  FULCRUM_DEVICE void produce() {
    const Scheduler<V> scheduler(params_);
    const uint32_t k_units = ceil_div(params_.k, unit_k);
    uint32_t index = scheduler.first();
    WorkItem item = scheduler.item(index);
    Rows rows = find_rows(item);
    while (item.num_rows != 0) {
      WorkItem next{};
      Rows next_rows{};
      for (uint32_t k_unit = 0; k_unit < k_units; k_unit += uint32_t(step_units)) {
        fill(item, rows, k_unit, k_units);
        if (k_unit == 0) {  // look the next tile up while the ring is full of this one
          index = next_index(scheduler, index);
          next = scheduler.item(index);
          next_rows = find_rows(next);
        }
      }
      item = next;
      rows = next_rows;
    }
    acquire();
    if (ptx::lane_index() == 0) {
      write_item(WorkItem{0, 0, 0, 0});
      scheduler.finish();
    }
    // every arrival that the barrier counts; lane 0's come after the item
    if (ptx::lane_index() == 0) ptx::mbarrier_arrive(full(position_.stage));
    if (!rows_by_bulk) ptx::mbarrier_arrive(full(position_.stage));
  }

 private:
  static constexpr int step_units = V::config.tile_k / int(unit_k);
  static constexpr int lane_rows = (V::config.tile_m + 31) / 32;  // token rows that one lane copies

  static constexpr bool rows_by_bulk = V::config.copy == Copy::bulk;
  // The producer's lane 0 arrives on a full barrier; with cp.async every lane does once more, when its copies land.
  static constexpr uint32_t full_arrivals = rows_by_bulk ? 1 : 33;

  // Rows of `tokens` that the tile reads: row `lane + 32 i` of it is index[i] of that lane.
  struct Rows {
    uint32_t index[lane_rows];
  };

  FULCRUM_DEVICE SharedAddress full(uint32_t stage) const { return shared_ + memory.full_offset + stage * 8; }
  FULCRUM_DEVICE SharedAddress empty(uint32_t stage) const { return shared_ + memory.empty_offset + stage * 8; }
  FULCRUM_DEVICE SharedAddress stage_address(uint32_t stage) const { return shared_ + stage * memory.stage_bytes; }

  FULCRUM_DEVICE static uint32_t next_index(const Scheduler<V>& scheduler, uint32_t index) {
    if constexpr (V::config.tile_queue == TileQueue::fixed) return scheduler.next(index);
    uint32_t ticket = 0;
    if (ptx::lane_index() == 0) ticket = scheduler.next(index);
    return ptx::shfl_idx(ticket, 0);
  }

  FULCRUM_DEVICE Rows find_rows(const WorkItem& item) const {
    Rows rows{};
#pragma unroll
    for (int i = 0; i < lane_rows; ++i) {
      const uint32_t row = ptx::lane_index() + 32 * uint32_t(i);
      if (row < uint32_t(item.num_rows))
        rows.index[i] = row_index(params_, params_.input_rows, uint32_t(item.row_begin) + row);
    }
    return rows;
  }

  // Waits until the consumers released the stage's previous pass; the first pass finds it free. Orders their reads
  // before this warp's writes and copies.
  FULCRUM_DEVICE void acquire() {
    if (ptx::lane_index() == 0) ptx::mbarrier_wait_parity(empty(position_.stage), position_.parity ^ 1);
    ptx::bar_warp_sync();
  }

  FULCRUM_DEVICE void write_item(const WorkItem& item) const {
    ptx::st_shared_v4(shared_ + memory.items_offset + position_.stage * uint32_t(sizeof(WorkItem)),
                      {uint32_t(item.expert), uint32_t(item.n_tile), uint32_t(item.row_begin), uint32_t(item.num_rows)});
  }

  // Fills the current stage with columns [64 k_unit, +tile_k) of the item's weights and tokens.
  FULCRUM_DEVICE void fill(const WorkItem& item, const Rows& rows, uint32_t k_unit, uint32_t k_units) {
    const uint32_t units = min_of(uint32_t(step_units), k_units - k_unit);
    const uint32_t row_bytes = min_of(units * unit_k, params_.k - k_unit * unit_k) * 2;
    const uint32_t n_units = min_of(uint32_t(V::config.tile_n) / unit_n,
                                    params_.n / unit_n - uint32_t(item.n_tile) * (uint32_t(V::config.tile_n) / unit_n));
    const SharedAddress stage = stage_address(position_.stage);
    acquire();
    if (rows_by_bulk && row_bytes < units * unit_k * 2) clear_tail(stage, item, row_bytes, units * unit_k * 2);
    if (ptx::lane_index() == 0) {
      if (k_unit == 0) write_item(item);
      // releases the item and the cleared tail to the consumers, and tells how many bytes they wait for
      ptx::mbarrier_arrive_expect_tx(full(position_.stage), n_units * units * unit_bytes +
                                                                (rows_by_bulk ? uint32_t(item.num_rows) * row_bytes : 0));
    }
    ptx::bar_warp_sync();  // no copy completes before its bytes are expected
    copy_weights(stage + memory.token_bytes, item, n_units, k_unit, units);
    if constexpr (rows_by_bulk)
      copy_rows_bulk(stage, item, rows, k_unit, row_bytes);
    else
      copy_rows_async(stage, item, rows, k_unit, row_bytes);
    position_.advance();
  }

  FULCRUM_DEVICE GlobalAddress<const uint8_t> row_address(uint32_t index, uint32_t k_unit) const {
    return global_address(params_.tokens) + int64_t(index * params_.tokens_stride_bytes + k_unit * (unit_k * 2));
  }

  FULCRUM_DEVICE void copy_rows_bulk(SharedAddress stage, const WorkItem& item, const Rows& rows, uint32_t k_unit,
                                     uint32_t row_bytes) const {
#pragma unroll
    for (int i = 0; i < lane_rows; ++i) {
      const uint32_t row = ptx::lane_index() + 32 * uint32_t(i);
      if (row < uint32_t(item.num_rows))
        ptx::cp_async_bulk_shared_global(stage + row * memory.token_row_bytes, row_address(rows.index[i], k_unit),
                                         row_bytes, full(position_.stage));
    }
  }

  // 16 bytes a lane; adjacent lanes take adjacent columns. Columns past k are filled with zeros (see clear_tail).
  FULCRUM_DEVICE void copy_rows_async(SharedAddress stage, const WorkItem& item, const Rows& rows, uint32_t k_unit,
                                      uint32_t row_bytes) const {
    constexpr uint32_t row_chunks = uint32_t(V::config.tile_k) / 8, rows_at_once = 32 / row_chunks;
    const uint32_t byte = ptx::lane_index() % row_chunks * 16, bytes = byte < row_bytes ? 16 : 0;
#pragma unroll
    for (int i = 0; i < lane_rows; ++i) {
      const uint32_t left = uint32_t(item.num_rows) - 32 * uint32_t(i);
#pragma unroll 8
      for (uint32_t first = 0; first < 32; first += rows_at_once) {
        if (32 * uint32_t(i) + first >= uint32_t(item.num_rows)) break;
        const uint32_t row = first + ptx::lane_index() / row_chunks;
        const uint32_t index = ptx::shfl_idx(rows.index[i], row);
        if (row < left)
          ptx::cp_async_cg_16(stage + (32 * uint32_t(i) + row) * memory.token_row_bytes + byte,
                              row_address(index, k_unit) + (bytes != 0 ? byte : 0), bytes);
      }
    }
    ptx::cp_async_mbarrier_arrive_noinc(full(position_.stage));
  }

  // Columns past k of the last unit meet zero weights; zero tokens keep a stale NaN or infinity out of the product.
  FULCRUM_DEVICE void clear_tail(SharedAddress stage, const WorkItem& item, uint32_t begin, uint32_t end) const {
    for (uint32_t row = ptx::lane_index(); row < uint32_t(item.num_rows); row += 32)
      for (uint32_t byte = begin; byte < end; byte += 16)
        ptx::st_shared_v4(stage + row * memory.token_row_bytes + byte, {0, 0, 0, 0});
    ptx::bar_warp_sync();  // orders the zeros before lane 0's arrival on the full barrier
  }

  // One lane a run: a full group of rows is contiguous over the stage's k units; the last, shorter group of a weight
  // goes unit row by unit row, so that consumers find units at fixed places.
  FULCRUM_DEVICE void copy_weights(SharedAddress to, const WorkItem& item, uint32_t n_units, uint32_t k_unit,
                                   uint32_t units) const {
    const uint32_t lane = ptx::lane_index(), group = lane / uint32_t(step_units), kk = lane % uint32_t(step_units);
    if (group * group_units >= n_units) return;
    const uint32_t group_count = min_of(group_units, n_units - group * group_units);
    const bool whole = group_count == group_units;
    if (kk >= (whole ? 1 : units)) return;
    const uint64_t expert_begin = uint64_t(item.expert) * params_.expert_stride_bytes;
    const uint8_t* expert = params_.expert_weights == nullptr
                                ? params_.weights + expert_begin
                                : expert_pointer(item.expert);
    const uint32_t unit = uint32_t(item.n_tile) * (uint32_t(V::config.tile_n) / unit_n) + group * group_units;
    ptx::cp_async_bulk_shared_global(
        to + (group * uint32_t(step_units) + kk) * group_bytes,
        global_address(expert) + int64_t(unit_offset_bytes(params_.n, params_.k, unit, k_unit + kk)),
        whole ? units * group_bytes : group_count * unit_bytes, full(position_.stage));
  }

  FULCRUM_DEVICE const uint8_t* expert_pointer(int32_t expert) const {
    return reinterpret_cast<const uint8_t*>(ptx::ld_global_u64(
        address_cast<const uint64_t>(global_address(params_.expert_weights)) + int64_t(expert)));
  }

  const Params& params_;
  SharedAddress shared_;
  RingPosition<V::config.stages> position_;
};

FULCRUM_NAMESPACE_END
