// split_k: partial sums of one tile's parts of k, added up in the order of k by the warp that finishes last.
//
// Called by the families between a tile's last stage and its epilogue. Invariant: nobody waits. A warp leaves its part
// in the workspace and counts itself; whoever counts last finds all parts there, adds them in the same order whichever
// part came last, and leaves the count at zero for the next launch.
#pragma once
#include <fulcrum/core/params.h>
#include <fulcrum/ptx/atom.cuh>
#include <fulcrum/tile/work_item.cuh>

FULCRUM_NAMESPACE_BEGIN

// `warp` counts the block's consumers. A lane's sums: [units][blocks][4], packed rows r and r + 8 of a unit for tokens
// 2c and 2c + 1 of a block of 8 (r = lane / 4, c = lane % 4).
template <class V, int units, int blocks>
class SplitSums {
 public:
  FULCRUM_DEVICE SplitSums(const Params& params, const WorkItem& item, uint32_t warp, uint32_t first_unit,
                           uint32_t first_block)
      : params_(params), item_(item), warp_(warp), first_unit_(first_unit), first_block_(first_block) {}

  // True for the warp that must store the tile, whose `acc` then holds the sums of all parts.
  FULCRUM_DEVICE bool reduce(float (&acc)[units][blocks][4]) const {
    const uint32_t own = item_.index % parts;
    visit([&](GlobalAddress<float> sums, int u, int j, int i) { ptx::st_global_f32(sums + at(own), acc[u][j][i]); });
    ptx::bar_warp_sync();  // orders the lanes' stores before lane 0 counts
    const GlobalAddress<uint32_t> count = global_address(params_.split_counts) +
                                          int64_t(item_.index / parts) * consumer_warps(V::config) + int64_t(warp_);
    uint32_t before = 0;
    if (ptx::lane_index() == 0) before = ptx::atom_acq_rel_global_add_u32(count, 1);
    before = ptx::redux_or(before);
    ptx::bar_warp_sync();  // orders lane 0's count before the lanes' loads
    if (before + 1 != parts) return false;
    if (ptx::lane_index() == 0) ptx::st_global_u32(count, 0);
    visit([&](GlobalAddress<float> sums, int u, int j, int i) {
      float sum = ptx::ld_global_f32(address_cast<const float>(sums));
#pragma unroll
      for (uint32_t part = 1; part < parts; ++part)
        sum += ptx::ld_global_f32(address_cast<const float>(sums + at(part)));
      acc[u][j][i] = sum;
    });
    return true;
  }

 private:
  static constexpr uint32_t parts = uint32_t(V::config.split_k);

  FULCRUM_DEVICE int64_t at(uint32_t part) const { return int64_t(part) * int64_t(params_.split_stride); }

  // Every value of the lane that belongs to a row and an output, with its place in the first part.
  template <class Function>
  FULCRUM_DEVICE void visit(Function&& function) const {
    const uint32_t lane = ptx::lane_index();
#pragma unroll
    for (int j = 0; j < blocks; ++j) {
#pragma unroll
      for (int u = 0; u < units; ++u) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint32_t token = (uint32_t(j * V::config.warps_m) + first_block_) * 8 + lane % 4 * 2 + uint32_t(i % 2);
          const uint32_t row = (first_unit_ + uint32_t(u)) * unit_n + lane / 4 + uint32_t(i / 2) * 8;
          if (token < uint32_t(item_.num_rows) && row < params_.n)
            function(global_address(params_.split_sums) + (int64_t(item_.row_begin) + token) * int64_t(params_.n) +
                         int64_t(row),
                     u, j, i);
        }
      }
    }
  }

  const Params& params_;
  const WorkItem& item_;
  uint32_t warp_, first_unit_, first_block_;
};

FULCRUM_NAMESPACE_END
