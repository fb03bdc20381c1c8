// wgmma (sm_90a): 64 x n += 64 x 16 times 16 x n by a warpgroup, four consecutive warps from a multiple of four, with
// f32 accumulation. It runs beside the warps: what is issued is closed by a commit and over after a wait.
//
// Called by wgmma families. Invariant: one function per PTX instruction, that all 128 threads of a warpgroup call
// together.
//
// Fragments of lane l of warp w of the warpgroup, with r = 16 w + l / 4 and c = 2 (l % 4) (PTX ISA, "Register Fragments
// for wgmma.mma_async.m64nNk16"):
//   d[j][0..3]  row r, columns 8 j + c and 8 j + c + 1; row r + 8, the same columns
//   a[0..3]     rows r, r + 8, r, r + 8 at columns c, c + 1 (a[0], a[1]) and c + 8, c + 9 (a[2], a[3]), low half first:
//               what mma.sync m16n8k16 has in the rows of its warp
//
// From issue to wait_group the registers of d and a belong to the instructions: nothing may read d or write either, and
// both must be variables that live on past the wait. A batch is therefore:
//   wgmma_pin(d)         keeps the compiler's own moves into d in front
//   wgmma_fence()        orders the warpgroup's register accesses before the instructions that follow
//   wgmma_m64k16 ...     any number; those of one size on one d are in order among themselves
//   wgmma_commit_group()
//   wgmma_wait_group<0>()
//   wgmma_pin(d)         keeps the compiler's own reads of d behind
// Shared memory is read through the async proxy: ordinary stores need fence_proxy_async_shared() in each writing thread
// and then a barrier before the issue; copies of the engine need only the wait for their mbarrier. An operand's memory
// may be written again after the wait and, by other threads, a barrier.
#pragma once
#include <fulcrum/ptx/wgmma_mma.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

// Before the first wgmma of a warpgroup, and again after its registers d or a were written by anything else.
FULCRUM_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

FULCRUM_DEVICE void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most `pending` of the newest groups are incomplete.
template <int pending>
FULCRUM_DEVICE void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// No instruction: the registers pass through here, so that the compiler moves no access to them across this place.
template <int blocks>
FULCRUM_DEVICE void wgmma_pin(float (&d)[blocks][4]) {
#pragma unroll
  for (int j = 0; j < blocks; ++j)
    asm volatile("" : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])::"memory");
}

// d += a * tokens; n is 8, 16, 24, 32, 64 or 128 tokens, the descriptor that of core/matrix_descriptor.h.
template <DType dtype, int n>
FULCRUM_DEVICE void wgmma_m64k16(float (&d)[n / 8][4], const uint32_t (&a)[4], uint64_t tokens_descriptor) {
  WgmmaM64K16<n>::template registers<dtype>(d, a, tokens_descriptor);
}

// The same with the first factor in shared memory: 64 rows, K-major.
template <DType dtype, int n>
FULCRUM_DEVICE void wgmma_m64k16_ss(float (&d)[n / 8][4], uint64_t a_descriptor, uint64_t tokens_descriptor) {
  WgmmaM64K16<n>::template shared<dtype>(d, a_descriptor, tokens_descriptor);
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
