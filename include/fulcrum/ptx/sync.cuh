// Where a thread is (block, warp, lane), and how threads meet: barriers, warp votes and shuffles.
//
// Called by everything on the device, which names no index, barrier or shuffle of CUDA itself.
// Invariant: warp functions need all 32 lanes; named barriers are those of NamedBarrier, never a raw number.
#pragma once
#include <fulcrum/core/types.h>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

inline constexpr uint32_t full_warp = 0xFFFFFFFFu;

FULCRUM_DEVICE uint32_t thread_index() { return threadIdx.x; }
FULCRUM_DEVICE uint32_t block_index() { return blockIdx.x; }
FULCRUM_DEVICE uint32_t num_blocks() { return gridDim.x; }
FULCRUM_DEVICE uint32_t num_threads() { return blockDim.x; }
FULCRUM_DEVICE uint32_t lane_index() { return threadIdx.x % 32; }

// The bitwise or of all lanes' values, in a register that the warp shares: branches on it are known not to diverge, so
// the instructions that all lanes must reach together need no synchronization before them.
FULCRUM_DEVICE uint32_t redux_or(uint32_t value) {
  uint32_t all;
  asm volatile("redux.sync.or.b32 %0, %1, 0xffffffff;" : "=r"(all) : "r"(value));
  return all;
}

// The warp's index, the same in all its lanes; all of them must call it together.
FULCRUM_DEVICE uint32_t warp_index() { return redux_or(threadIdx.x / 32); }

// Every thread of the block arrives and waits; orders their shared and global accesses.
FULCRUM_DEVICE void barrier_sync() { __syncthreads(); }

// The block's named barriers, beside the one of barrier_sync().
enum class NamedBarrier : uint32_t { producers = 1 };

// `threads` threads of the block, whole warps, arrive and wait; orders their memory accesses.
FULCRUM_DEVICE void barrier_sync(NamedBarrier barrier, uint32_t threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(uint32_t(barrier)), "r"(threads) : "memory");
}

// The threads of one warp meet; orders their memory accesses.
FULCRUM_DEVICE void bar_warp_sync() { __syncwarp(); }

FULCRUM_DEVICE uint32_t ballot(bool predicate) { return __ballot_sync(full_warp, predicate); }

// Lanes whose value equals this lane's.
FULCRUM_DEVICE uint32_t match_any(uint32_t value) { return __match_any_sync(full_warp, value); }

FULCRUM_DEVICE uint32_t shfl_idx(uint32_t value, uint32_t lane) { return __shfl_sync(full_warp, value, lane); }
FULCRUM_DEVICE uint32_t shfl_up(uint32_t value, uint32_t delta) { return __shfl_up_sync(full_warp, value, delta); }
FULCRUM_DEVICE uint32_t shfl_bfly(uint32_t value, uint32_t mask) { return __shfl_xor_sync(full_warp, value, mask); }

FULCRUM_DEVICE uint32_t popc(uint32_t value) { return uint32_t(__popc(int(value))); }

}  // namespace ptx

FULCRUM_NAMESPACE_END
