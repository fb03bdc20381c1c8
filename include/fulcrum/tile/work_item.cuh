// What a block is working on: a tile of outputs x tokens over a run of k, handed from the threads that fill the ring to
// the ones that multiply.
//
// Called by the rings, the families and split_k's sums. Invariant: where k is cut depends on k and split_k alone, so a
// row's sums do not depend on the batch around it.
#pragma once
#include <fulcrum/core/shared_memory.h>
#include <fulcrum/ptx/ldst.cuh>
#include <fulcrum/ptx/sync.cuh>

FULCRUM_NAMESPACE_BEGIN

// Units of 64 columns [begin, end).
struct KRange {
  uint32_t begin, end;
};

// `split_k` 1 is the whole of k. No part is empty: rules.h wants at least split_k units.
template <class V>
FULCRUM_DEVICE KRange k_range(const WorkItem& item, uint32_t k) {
  const uint32_t units = ceil_div(k, unit_k);
  if constexpr (V::config.split_k == 1) return {0, units};
  constexpr uint32_t parts = uint32_t(V::config.split_k);
  const uint32_t part = item.index % parts;
  return {part * units / parts, (part + 1) * units / parts};
}

// The slots of items in shared memory, one a stage.
template <class V>
struct ItemSlots {
  static constexpr SharedMemory memory = shared_memory(V::config);

  FULCRUM_DEVICE static void write(SharedAddress shared, uint32_t stage, const WorkItem& item) {
    ptx::st_shared_v4(
        shared + memory.items_offset + stage * item_bytes,
        {uint32_t(item.expert), uint32_t(item.n_tile), uint32_t(item.row_begin), uint32_t(item.num_rows)});
    if constexpr (V::config.split_k > 1) ptx::st_shared_u32(shared + memory.item_index_offset + stage * 4, item.index);
  }

  // For whole warps, in registers that the compiler knows to be the same in all lanes.
  FULCRUM_DEVICE static WorkItem read(SharedAddress shared, uint32_t stage) {
    const Vec4 v = ptx::ld_shared_v4(shared + memory.items_offset + stage * item_bytes);
    WorkItem item{int32_t(ptx::redux_or(v.x)), int32_t(ptx::redux_or(v.y)), int32_t(ptx::redux_or(v.z)),
                  int32_t(ptx::redux_or(v.w)), 0};
    if constexpr (V::config.split_k > 1)
      item.index = ptx::redux_or(ptx::ld_shared_u32(shared + memory.item_index_offset + stage * 4));
    return item;
  }
};

FULCRUM_NAMESPACE_END
