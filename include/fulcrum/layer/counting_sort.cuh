// A block's stable counting sort, in three moves: count_keys, sum_warps, place_items; and the prefix sum between them.
//
// Called by layer/csr.cuh, for pairs by expert and for tiles by length.
// Invariant: each warp owns a contiguous segment of the items and a row of the table, and gives out places in the order
// of its items; atomics only count. So equal keys keep the order of their items whatever the timing.
#pragma once
#include <fulcrum/core/csr.h>
#include <fulcrum/ptx/atom.cuh>
#include <fulcrum/ptx/ldst.cuh>
#include <fulcrum/ptx/sync.cuh>

FULCRUM_NAMESPACE_BEGIN

inline constexpr uint32_t no_key = 0xFFFFFFFFu;  // of an item that is left out

// [csr_warps][num_keys] uint32: first how many items of each key a warp has, then where its next one goes.
struct SortTable {
  SharedAddress base;
  uint32_t num_keys;

  FULCRUM_DEVICE SharedAddress at(uint32_t warp, uint32_t key) const { return base + (warp * num_keys + key) * 4; }
};

// Needs a barrier_sync() before count_keys(), as clearing is shared out over all threads.
FULCRUM_DEVICE void clear_table(const SortTable& table) {
  for (uint32_t i = ptx::thread_index(); i < csr_warps * table.num_keys; i += csr_threads) {
    ptx::st_shared_u32(table.base + i * 4, 0);
  }
}

struct Segment {
  uint32_t begin, end;
};

// This warp's part of the block's items: whole steps of 32, the first warps first.
FULCRUM_DEVICE Segment warp_segment(uint32_t begin, uint32_t end) {
  const uint32_t items = ceil_div(end - begin, csr_threads) * 32;
  const uint32_t first = min_of(begin + ptx::warp_index() * items, end);
  return {first, min_of(first + items, end)};
}

FULCRUM_DEVICE uint32_t lanes_below() { return (1u << ptx::lane_index()) - 1; }

// Lanes whose key is this lane's; no_key matches nobody. Voting bit by bit takes ten independent instructions, where
// match.any takes one after the other for every different key in the warp.
FULCRUM_DEVICE uint32_t peers_of(uint32_t key) {
  uint32_t peers = ptx::ballot(key != no_key);
  for (uint32_t bit = 0; bit < csr_key_bits; ++bit) {
    const bool is_set = (key >> bit & 1) != 0;
    const uint32_t set = ptx::ballot(is_set);
    peers &= is_set ? set : ~set;
  }
  return peers;
}

// What is sorted: a Source has a type Value and
//   Value load(uint32_t item)      fetches the item; loads of several items can be in flight together
//   uint32_t key(const Value&)     its key, or no_key
// A batch is a lane's items of the next steps, as many as are there.
inline constexpr uint32_t csr_batch_steps = 4;
template <class Source>
struct SortBatch {
  typename Source::Value values[csr_batch_steps];
  uint32_t first, end;

  // Loads past the end, by lanes of the last step, go to the last item: no branch inside a step.
  FULCRUM_DEVICE SortBatch(const Source& source, uint32_t first_item, uint32_t end_item)
      : first(first_item), end(end_item) {
    for (uint32_t step = 0; step < csr_batch_steps; ++step) {
      if (has(step)) values[step] = source.load(min_of(item(step), end - 1));
    }
  }
  FULCRUM_DEVICE bool has(uint32_t step) const { return first + step * 32 < end; }  // the same in all lanes
  FULCRUM_DEVICE uint32_t item(uint32_t step) const { return first + step * 32 + ptx::lane_index(); }
  FULCRUM_DEVICE uint32_t key(const Source& source, uint32_t step) const {
    return item(step) < end ? source.key(values[step]) : no_key;
  }
};

// Counts the items begin .. end-1 by key.
template <class Source>
FULCRUM_DEVICE void count_keys(const SortTable& table, uint32_t begin, uint32_t end, const Source& source) {
  const Segment segment = warp_segment(begin, end);
  const uint32_t warp = ptx::warp_index();
  for (uint32_t first = segment.begin; first < segment.end; first += csr_batch_steps * 32) {
    const SortBatch<Source> batch(source, first, segment.end);
    for (uint32_t step = 0; step < csr_batch_steps; ++step) {
      if (!batch.has(step)) break;
      const uint32_t key = batch.key(source, step);
      if (key != no_key) ptx::atom_shared_add_u32(table.at(warp, key), 1);  // the order of additions does not matter
    }
  }
}

// Turns each warp's count of a key into the number of items that the warps before it have; totals [num_keys] receives
// the block's counts. Stands between two barrier_sync().
FULCRUM_DEVICE void sum_warps(const SortTable& table, SharedAddress totals) {
  for (uint32_t key = ptx::thread_index(); key < table.num_keys; key += csr_threads) {
    uint32_t counts[csr_warps];
    for (uint32_t warp = 0; warp < csr_warps; ++warp) counts[warp] = ptx::ld_shared_u32(table.at(warp, key));
    uint32_t before = 0;
    for (uint32_t warp = 0; warp < csr_warps; ++warp) {
      ptx::st_shared_u32(table.at(warp, key), before);
      before += counts[warp];
    }
    ptx::st_shared_u32(totals + key * 4, before);
  }
}

// Calls place(item, value, key, rank) for each item with a key: rank counts the block's items of that key before it.
template <class Source, class Place>
FULCRUM_DEVICE void place_items(const SortTable& table, uint32_t begin, uint32_t end, const Source& source,
                                const Place& place) {
  const Segment segment = warp_segment(begin, end);
  const uint32_t warp = ptx::warp_index();
  for (uint32_t first = segment.begin; first < segment.end; first += csr_batch_steps * 32) {
    const SortBatch<Source> batch(source, first, segment.end);
    for (uint32_t step = 0; step < csr_batch_steps; ++step) {
      if (!batch.has(step)) break;
      const uint32_t key = batch.key(source, step);
      const uint32_t peers = peers_of(key);
      const uint32_t peers_below = peers & lanes_below();
      uint32_t rank = 0;
      if (key != no_key) rank = ptx::ld_shared_u32(table.at(warp, key)) + ptx::popc(peers_below);
      ptx::bar_warp_sync();  // orders the loads of all peers before the first peer's store
      if (key != no_key && peers_below == 0) ptx::st_shared_u32(table.at(warp, key), rank + ptx::popc(peers));
      ptx::bar_warp_sync();  // orders that store before the next step's loads
      if (key != no_key) place(batch.item(step), batch.values[step], key, rank);
    }
  }
}

// Replaces values [count] by their exclusive prefix sums [count + 1] and returns the total to every thread. Begins
// after a barrier_sync() that made the values visible, ends with one of its own.
//   warp_sums  [csr_warps] scratch
FULCRUM_DEVICE uint32_t exclusive_scan(SharedAddress values, uint32_t count, SharedAddress warp_sums) {
  // Each thread owns `run` values side by side.
  const uint32_t run = ceil_div(count, csr_threads);
  const uint32_t begin = min_of(ptx::thread_index() * run, count);
  const uint32_t end = min_of(begin + run, count);
  uint32_t own = 0;
  for (uint32_t i = begin; i < end; ++i) own += ptx::ld_shared_u32(values + i * 4);
  uint32_t inclusive = own;
  for (uint32_t delta = 1; delta < 32; delta *= 2) {
    const uint32_t lower = ptx::shfl_up(inclusive, delta);
    if (ptx::lane_index() >= delta) inclusive += lower;
  }
  const uint32_t warp = ptx::warp_index();
  if (ptx::lane_index() == 31) ptx::st_shared_u32(warp_sums + warp * 4, inclusive);
  ptx::barrier_sync();  // orders the warps' sums before everybody's loads of them
  uint32_t before = inclusive - own;
  uint32_t total = 0;
  for (uint32_t w = 0; w < csr_warps; ++w) {
    const uint32_t sum = ptx::ld_shared_u32(warp_sums + w * 4);
    if (w < warp) before += sum;
    total += sum;
  }
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t value = ptx::ld_shared_u32(values + i * 4);
    ptx::st_shared_u32(values + i * 4, before);
    before += value;
  }
  if (ptx::thread_index() == 0) ptx::st_shared_u32(values + count * 4, total);
  ptx::barrier_sync();  // orders the prefix sums before their use, and the loads of warp_sums before the next scan
  return total;
}

FULCRUM_NAMESPACE_END
