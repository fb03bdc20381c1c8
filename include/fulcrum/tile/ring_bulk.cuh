// The ring filled by producer warps (sm_90) that run ahead through steps and tiles; consumer warps follow. Weights come
// by bulk copies; token rows by one bulk copy each, or by cp.async, which costs less when there are many rows.
// A stage's full barrier completes when its bytes have landed, its empty barrier when every consumer warp released it.
#pragma once
#include <fulcrum/core/layout.h>
#include <fulcrum/ptx/mbarrier.cuh>
#include <fulcrum/tile/copies.cuh>
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

  // For consumers.

  // Waits for the current stage: orders the copies that filled it before this warp's reads.
  FULCRUM_DEVICE SharedAddress wait() {
    ptx::mbarrier_wait_parity(full(position_.stage), position_.parity);
    return stage_address(position_.stage);
  }

  FULCRUM_DEVICE WorkItem item() const { return ItemSlots<V>::read(shared_, position_.stage); }

  // Gives the stage back. The copy engine is another proxy: without a fence its next copies into the stage may overtake
  // reads that are under way. The warp meets so that all its lanes' fences come before the arrival.
  FULCRUM_DEVICE void release() {
    ptx::fence_proxy_async_shared();
    ptx::bar_warp_sync();
    if (ptx::lane_index() == 0) ptx::mbarrier_arrive(empty(position_.stage));
    position_.advance();
  }

  // For producers: whole warps, `producer` counts them.

  FULCRUM_DEVICE void produce(uint32_t producer) {
    producer_ = producers == 1 ? 0 : producer;
    const Scheduler<V> scheduler(params_);
    uint32_t index = scheduler.first();
    WorkItem item = scheduler.item(index);
    RowIndices rows = find_rows(item);
    for (uint32_t tile_parity = 0; item.num_rows != 0; tile_parity ^= 1) {
      const RowAddresses addresses = row_addresses(rows);
      WorkItem next{};
      const KRange range = k_range<V>(item, params_.k);
      for (uint32_t k_unit = range.begin; k_unit < range.end; k_unit += uint32_t(step_units)) {
        fill(item, addresses, k_unit, range);
        if (k_unit == range.begin) {  // look the next tile up while the ring is full of this one
          index = next_index(scheduler, index, tile_parity);
          next = scheduler.item(index);
          rows = find_rows(next);
        }
      }
      item = next;
    }
    acquire();
    if (ptx::lane_index() == 0) {
      if (is_first()) {
        ItemSlots<V>::write(shared_, position_.stage, {});
        scheduler.finish();
      }
      ptx::mbarrier_arrive(full(position_.stage));  // releases the item
    }
    if (!rows_by_bulk) ptx::mbarrier_arrive(full(position_.stage));
  }

 private:
  static constexpr int step_units = V::config.tile_k / int(unit_k);
  static constexpr bool rows_by_bulk = V::config.copy == Copy::bulk;
  static constexpr uint32_t producers = producer_warps(V::config);
  // Each producer's lane 0 arrives on a full barrier; with cp.async every lane does once more, when its copies land.
  static constexpr uint32_t full_arrivals = producers * (rows_by_bulk ? 1 : 33);

  // Lane l of a producer copies rows pass * pass_rows + first_row() of a tile, and of each row the bytes from
  // first_byte().
  static constexpr uint32_t pass_rows = producer_rows(V::config);
  static constexpr int passes = int(ceil_div(uint32_t(V::config.tile_m), pass_rows));
  static constexpr uint32_t row_lanes = 32 * producers / pass_rows;
  FULCRUM_DEVICE uint32_t first_row() const { return (producer_ * 32 + ptx::lane_index()) / row_lanes; }
  FULCRUM_DEVICE static uint32_t first_byte() { return ptx::lane_index() % row_lanes * 16; }

  struct RowIndices {
    uint32_t row[passes];  // of `tokens`
  };
  struct RowAddresses {
    const uint8_t* byte[passes];
  };

  // The producer that writes items and copies weights.
  FULCRUM_DEVICE bool is_first() const { return producers == 1 || producer_ == 0; }

  FULCRUM_DEVICE SharedAddress full(uint32_t stage) const { return shared_ + memory.full_offset + stage * 8; }
  FULCRUM_DEVICE SharedAddress empty(uint32_t stage) const { return shared_ + memory.empty_offset + stage * 8; }
  FULCRUM_DEVICE SharedAddress stage_address(uint32_t stage) const { return shared_ + stage * memory.stage_bytes; }

  FULCRUM_DEVICE uint32_t next_index(const Scheduler<V>& scheduler, uint32_t index, uint32_t tile_parity) const {
    if constexpr (V::config.tile_queue == TileQueue::fixed) return scheduler.next(index);
    const SharedAddress slot = shared_ + memory.ticket_offset + tile_parity * 4;
    if (is_first() && ptx::lane_index() == 0) ptx::st_shared_u32(slot, scheduler.next(index));
    // orders the ticket before its readers; a slot is written again only after all passed the next ticket's barrier
    ptx::barrier_sync(ptx::NamedBarrier::producers, 32 * producers);
    return ptx::ld_shared_u32(slot);
  }

  FULCRUM_DEVICE RowIndices find_rows(const WorkItem& item) const {
    RowIndices rows{};
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      const uint32_t row = uint32_t(pass) * pass_rows + first_row();
      if (row < uint32_t(item.num_rows))
        rows.row[pass] = row_index(params_, params_.input_rows, uint32_t(item.row_begin) + row);
    }
    return rows;
  }

  FULCRUM_DEVICE RowAddresses row_addresses(const RowIndices& rows) const {
    RowAddresses addresses;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass)
      addresses.byte[pass] = params_.tokens + rows.row[pass] * params_.tokens_stride_bytes + first_byte();
    return addresses;
  }

  // Waits until the consumers released the stage's previous pass; the first pass finds it free. Orders their reads
  // before this warp's writes and copies.
  FULCRUM_DEVICE void acquire() {
    if (ptx::lane_index() == 0) ptx::mbarrier_wait_parity(empty(position_.stage), position_.parity ^ 1);
    ptx::bar_warp_sync();
  }

  // Fills the current stage with columns [64 k_unit, +tile_k) of the item's weights (first producer) and tokens.
  FULCRUM_DEVICE void fill(const WorkItem& item, const RowAddresses& rows, uint32_t k_unit, const KRange& range) {
    const uint32_t units = min_of(uint32_t(step_units), range.end - k_unit);
    const uint32_t row_bytes = min_of(units * unit_k, params_.k - k_unit * unit_k) * 2;
    const uint32_t n_units = min_of(uint32_t(V::config.tile_n) / unit_n,
                                    params_.n / unit_n - uint32_t(item.n_tile) * (uint32_t(V::config.tile_n) / unit_n));
    const SharedAddress stage = stage_address(position_.stage);
    acquire();
    if (rows_by_bulk && row_bytes < units * unit_k * 2) clear_tail(stage, item, row_bytes, units * unit_k * 2);
    if (ptx::lane_index() == 0) {
      if (is_first() && k_unit == range.begin) ItemSlots<V>::write(shared_, position_.stage, item);
      const uint32_t weight_bytes = is_first() ? n_units * units * unit_bytes : 0;
      // releases the item and the cleared tail to the consumers, and tells how many bytes they wait for
      ptx::mbarrier_arrive_expect_tx(full(position_.stage),
                                     weight_bytes + (rows_by_bulk ? own_rows(item) * row_bytes : 0));
    }
    ptx::bar_warp_sync();  // no copy of this warp completes before its bytes are expected
    if (is_first()) copy_weights(stage + memory.token_bytes, item, n_units, k_unit, units);
    copy_rows(stage, item, rows, k_unit, row_bytes);
    position_.advance();
  }

  // Rows of a tile that this producer copies (bulk): 32 of every pass_rows.
  FULCRUM_DEVICE uint32_t own_rows(const WorkItem& item) const {
    uint32_t rows = 0;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      const uint32_t begin = uint32_t(pass) * pass_rows + producer_ * 32;
      if (begin < uint32_t(item.num_rows)) rows += min_of(32u, uint32_t(item.num_rows) - begin);
    }
    return rows;
  }

  // A bulk copy a row, or 16 bytes a lane, adjacent lanes taking adjacent bytes; cp.async fills columns past k with
  // zeros (for bulk copies clear_tail does).
  FULCRUM_DEVICE void copy_rows(SharedAddress stage, const WorkItem& item, const RowAddresses& rows, uint32_t k_unit,
                                uint32_t row_bytes) const {
    const int64_t column = int64_t(k_unit) * (unit_k * 2);
    const uint32_t bytes = first_byte() < row_bytes ? 16 : 0;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      const uint32_t row = uint32_t(pass) * pass_rows + first_row();
      if (row >= uint32_t(item.num_rows)) break;
      const SharedAddress to = stage + row * memory.token_row_bytes;
      const GlobalAddress<const uint8_t> from = global_address(rows.byte[pass]) + column;
      if constexpr (rows_by_bulk)
        copies_.bulk_tokens(to, from, row_bytes, full(position_.stage));
      else
        copies_.async_tokens(to + first_byte(), bytes != 0 ? from : global_address(params_.tokens), bytes);
    }
    if constexpr (!rows_by_bulk) ptx::cp_async_mbarrier_arrive_noinc(full(position_.stage));
  }

  // Columns past k of the last unit meet zero weights; zero tokens keep a stale NaN or infinity out of the product.
  FULCRUM_DEVICE void clear_tail(SharedAddress stage, const WorkItem& item, uint32_t begin, uint32_t end) const {
    for (uint32_t row = first_row(); row < uint32_t(item.num_rows); row += pass_rows)
      for (uint32_t byte = begin; byte < end; byte += 16)
        ptx::st_shared_v4(stage + row * memory.token_row_bytes + byte, {0, 0, 0, 0});
    ptx::fence_proxy_async_shared();  // orders the zeros before the bulk copies that refill these bytes some stages on
    ptx::bar_warp_sync();             // orders them before lane 0's arrival on the full barrier
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
    const uint8_t* expert =
        params_.expert_weights == nullptr ? params_.weights + expert_begin : expert_pointer(item.expert);
    const uint32_t unit = uint32_t(item.n_tile) * (uint32_t(V::config.tile_n) / unit_n) + group * group_units;
    copies_.bulk_weights(to + (group * uint32_t(step_units) + kk) * group_bytes,
                         global_address(expert) + int64_t(unit_offset_bytes(params_.n, params_.k, unit, k_unit + kk)),
                         whole ? units * group_bytes : group_count * unit_bytes, full(position_.stage));
  }

  FULCRUM_DEVICE const uint8_t* expert_pointer(int32_t expert) const {
    return reinterpret_cast<const uint8_t*>(
        ptx::ld_global_u64(address_cast<const uint64_t>(global_address(params_.expert_weights)) + int64_t(expert)));
  }

  const Params& params_;
  SharedAddress shared_;
  Copies<V> copies_;
  RingPosition<V::config.stages> position_;
  uint32_t producer_ = 0;
};

FULCRUM_NAMESPACE_END
