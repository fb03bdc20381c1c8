// Tokens of a warp: where rows come from in device memory, and from a stage in shared memory to the second operand's
// fragments.
//
// Called by the rings (row_index), the families and the epilogue. Invariant: fragments come in the order of k in which
// tile/weights.cuh multiplies them.
#pragma once
#include <fulcrum/core/params.h>
#include <fulcrum/core/shared_memory.h>
#include <fulcrum/ptx/ldmatrix.cuh>
#include <fulcrum/ptx/sync.cuh>

FULCRUM_NAMESPACE_BEGIN

// Row of a buffer in `order` that belongs to CSR position `position`.
FULCRUM_DEVICE uint32_t row_index(const Params& params, RowOrder order, uint32_t position) {
  if (order == RowOrder::csr) return position;
  const uint32_t pair = uint32_t(ptx::ld_global_nc_s32(global_address(params.pair_ids) + position));
  return order == RowOrder::pair ? pair : pair / params.top_k;
}

template <class V>
struct TokenReader {
  static constexpr SharedMemory memory = shared_memory(V::config);
  static constexpr bool natural = V::config.k_order == KOrder::natural;

  uint32_t lane_offset;

  // The part of a lane's address that is the same for all blocks of 8 tokens and all k.
  FULCRUM_DEVICE TokenReader() {
    const uint32_t lane = ptx::lane_index();
    // natural: ldmatrix row lane % 8, 16-byte column lane / 8; permuted: token lane / 4, 16-byte column lane % 4
    lane_offset =
        natural ? lane % 8 * memory.token_row_bytes + lane / 8 * 16 : lane / 4 * memory.token_row_bytes + lane % 4 * 16;
  }

  // b[i][0..1]: fragment of mma step i of the k32 block at column `k` of the stage, for 8 tokens from row 8 * block.
  FULCRUM_DEVICE void fragments(SharedAddress tokens, uint32_t block, uint32_t k, uint32_t (&b)[2][2]) const {
    const SharedAddress address = tokens + lane_offset + block * 8 * memory.token_row_bytes + k * 2;
    const Vec4 v = natural ? ptx::ldmatrix_x4(address) : ptx::ld_shared_v4(address);
    b[0][0] = v.x;
    b[0][1] = v.y;
    b[1][0] = v.z;
    b[1][1] = v.w;
  }
};

FULCRUM_NAMESPACE_END
