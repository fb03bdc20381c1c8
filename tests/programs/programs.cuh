// Programs: small kernels over single instructions of ptx/, written once and run both on a GPU and by the emulator.
//
// Compiled by programs.cu, and by the emulator's tests. Invariant: nothing of CUDA is named but the keywords of a
// kernel, and memory is touched through ptx/ alone; what each program does stands with its parameters in programs.h.
#pragma once
#include <fulcrum/ptx/bulk.cuh>
#include <fulcrum/ptx/cp_async.cuh>
#include <fulcrum/ptx/cvt.cuh>
#include <fulcrum/ptx/ldmatrix.cuh>
#include <fulcrum/ptx/ldst.cuh>
#include <fulcrum/ptx/mbarrier.cuh>
#include <fulcrum/ptx/mma_sync.cuh>
#include <fulcrum/ptx/sync.cuh>
#include <fulcrum/ptx/tma.cuh>

#include "programs.h"

namespace fulcrum::programs {

FULCRUM_DEVICE uint32_t float_bits(float x) { return __builtin_bit_cast(uint32_t, x); }

// Shared memory [begin, begin + bytes), as it is, to out.
FULCRUM_DEVICE void store_all(SharedAddress begin, uint32_t bytes, uint32_t* out) {
  for (uint32_t word = ptx::thread_index(); word < bytes / 4; word += ptx::num_threads())
    ptx::st_global_u32(global_address(out) + word, ptx::ld_shared_u32(begin + 4 * word));
}

// Fills [begin, begin + bytes) with `untouched` and makes a barrier of one arrival; both before any copy.
FULCRUM_DEVICE void prepare_target(SharedAddress begin, uint32_t bytes, SharedAddress barrier) {
  for (uint32_t word = ptx::thread_index(); word < bytes / 4; word += ptx::num_threads())
    ptx::st_shared_u32(begin + 4 * word, untouched);
  ptx::fence_proxy_async_shared();  // orders these stores, after the barrier, before the copy engine's
  if (ptx::thread_index() == 0) {
    ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init();  // orders the initialization before the copy engine's arrival
  }
  ptx::barrier_sync();  // orders all of it before thread 0's copy and everybody's wait
}

FULCRUM_DEVICE void tensor_copy(const TensorCopyParams& params) {
  const SharedAddress box = ptx::dynamic_shared(), barrier = box + box_capacity;
  if (ptx::thread_index() == 0) ptx::prefetch_tensormap(global_address(&params.map));
  prepare_target(box, box_capacity, barrier);
  if (ptx::thread_index() == 0) {
    ptx::mbarrier_arrive_expect_tx(barrier, params.bytes);
    ptx::cp_async_bulk_tensor_2d_shared_global(box, global_address(&params.map), params.x, params.y, barrier);
  }
  ptx::mbarrier_wait_parity(barrier, 0);  // orders the copy before everybody's loads
  store_all(box, box_capacity, params.out);
}

FULCRUM_DEVICE void bulk_copy(const BulkCopyParams& params) {
  const SharedAddress run = ptx::dynamic_shared(), barrier = run + run_capacity;
  prepare_target(run, run_capacity, barrier);
  if (ptx::thread_index() == 0) {
    ptx::mbarrier_arrive_expect_tx(barrier, params.bytes);
    ptx::cp_async_bulk_shared_global(run, global_address(params.in), params.bytes, barrier);
  }
  ptx::mbarrier_wait_parity(barrier, 0);  // orders the copy before everybody's loads
  store_all(run, run_capacity, params.out);
}

FULCRUM_DEVICE void cp_async_groups(const CpAsyncParams& params) {
  const uint32_t thread = ptx::thread_index(), neighbour = thread ^ 1;
  const SharedAddress pieces = ptx::dynamic_shared(), words = pieces + 16 * cp_async_threads;
  ptx::cp_async_cg_16(pieces + 16 * thread, global_address(params.pieces) + 16 * thread, thread % 17);
  ptx::cp_async_commit_group();
  ptx::cp_async_ca_4(words + 4 * thread, global_address(params.words) + 4 * thread, thread % 5);
  ptx::cp_async_commit_group();
  ptx::cp_async_wait_group<1>();
  ptx::barrier_sync();  // orders every thread's first group before its neighbour's load
  ptx::st_global_v4(address_cast<Vec4>(global_address(params.out_pieces)) + thread,
                    ptx::ld_shared_v4(pieces + 16 * neighbour));
  ptx::cp_async_wait_group<0>();
  ptx::barrier_sync();  // the same for the second
  ptx::st_global_u32(global_address(params.out_words) + thread, ptx::ld_shared_u32(words + 4 * neighbour));
}

FULCRUM_DEVICE void mbarrier_phases(const PhasesParams& params) {
  const SharedAddress data = ptx::dynamic_shared();  // [phase_stages][32] words
  const SharedAddress full = data + phase_stages * 128, empty = full + phase_stages * barrier_bytes;
  if (ptx::thread_index() < phase_stages) {
    ptx::mbarrier_init(full + ptx::thread_index() * barrier_bytes, 1);
    ptx::mbarrier_init(empty + ptx::thread_index() * barrier_bytes, 1);
  }
  ptx::barrier_sync();  // orders the initialization before every arrival and wait
  const uint32_t warp = ptx::warp_index(), lane = ptx::lane_index();
  for (uint32_t round = 0; round < phase_rounds; ++round) {
    const uint32_t stage = round % phase_stages, parity = round / phase_stages % 2;
    const SharedAddress words = data + stage * 128;
    if (warp == 0) {
      // the consumer's loads of the stage's last round come before these stores; the first round finds it free
      ptx::mbarrier_wait_parity(empty + stage * barrier_bytes, parity ^ 1);
      ptx::st_shared_u32(words + 4 * lane, ptx::ld_global_nc_u32(global_address(params.in) + (32 * round + lane)));
      ptx::bar_warp_sync();  // orders all lanes' stores before the arrival, which releases them
      if (lane == 0) ptx::mbarrier_arrive(full + stage * barrier_bytes);
    } else {
      ptx::mbarrier_wait_parity(full + stage * barrier_bytes, parity);  // acquires the stores
      ptx::st_global_u32(global_address(params.out) + (32 * round + lane), ptx::ld_shared_u32(words + 4 * (31 - lane)));
      ptx::bar_warp_sync();  // orders all lanes' loads before the arrival
      if (lane == 0) ptx::mbarrier_arrive(empty + stage * barrier_bytes);
    }
  }
}

template <DType dtype>
FULCRUM_DEVICE void fragments(const FragmentsParams& params) {
  const uint32_t lane = ptx::lane_index();
  const SharedAddress weights = ptx::dynamic_shared();  // [16][16], 32 bytes a row
  ptx::st_shared_v4(weights + 16 * lane,
                    ptx::ld_global_nc_v4(address_cast<const Vec4>(global_address(params.weights)) + lane));
  ptx::bar_warp_sync();  // orders all lanes' stores before ldmatrix
  // matrix i is rows 8 (i % 2) and columns 8 (i / 2) onwards, so that the words are mma's first operand
  const uint32_t matrix = lane / 8, row = 8 * (matrix % 2) + lane % 8;
  const Vec4 words = ptx::ldmatrix_x4(weights + row * 32 + matrix / 2 * 16);
  const Vec4 transposed = {ptx::movmatrix_trans(words.x), ptx::movmatrix_trans(words.y), ptx::movmatrix_trans(words.z),
                           ptx::movmatrix_trans(words.w)};
  const uint32_t a[4] = {words.x, words.y, words.z, words.w};
  const GlobalAddress<const uint32_t> token =  // 8 words a row; b0 is columns 2 (lane % 4), b1 8 more
      address_cast<const uint32_t>(global_address(params.tokens)) + (lane / 4 * 8 + lane % 4);
  float d[4];
  for (uint32_t i = 0; i < 4; ++i) d[i] = float(4 * lane + i);
  ptx::mma_m16n8k16<dtype>(d, a, ptx::ld_global_nc_u32(token), ptx::ld_global_nc_u32(token + 4));
  const GlobalAddress<Vec4> out = address_cast<Vec4>(global_address(params.out)) + lane * (fragment_words / 4);
  ptx::st_global_v4(out, words);
  ptx::st_global_v4(out + 1, transposed);
  ptx::st_global_v4(out + 2, {float_bits(d[0]), float_bits(d[1]), float_bits(d[2]), float_bits(d[3])});
}

FULCRUM_DEVICE void e4m3(const E4m3Params& params) {
  const uint32_t thread = ptx::thread_index(), word = 0x03020100u + thread * 0x04040404u;
  const GlobalAddress<uint32_t> out = global_address(params.out) + 2 * thread;
  ptx::st_global_u32(out, ptx::cvt_low_f16x2_e4m3x2(word));
  ptx::st_global_u32(out + 1, ptx::cvt_high_f16x2_e4m3x2(word));
}

}  // namespace fulcrum::programs

extern "C" __global__ void __launch_bounds__(128)
    program_tensor_copy(const __grid_constant__ fulcrum::programs::TensorCopyParams params) {
  fulcrum::programs::tensor_copy(params);
}

extern "C" __global__ void __launch_bounds__(128)
    program_bulk_copy(const __grid_constant__ fulcrum::programs::BulkCopyParams params) {
  fulcrum::programs::bulk_copy(params);
}

extern "C" __global__ void __launch_bounds__(fulcrum::programs::cp_async_threads)
    program_cp_async_groups(const __grid_constant__ fulcrum::programs::CpAsyncParams params) {
  fulcrum::programs::cp_async_groups(params);
}

extern "C" __global__ void __launch_bounds__(64)
    program_mbarrier_phases(const __grid_constant__ fulcrum::programs::PhasesParams params) {
  fulcrum::programs::mbarrier_phases(params);
}

extern "C" __global__ void __launch_bounds__(32)
    program_fragments(const __grid_constant__ fulcrum::programs::FragmentsParams params) {
  if (params.dtype == fulcrum::DType::f16)
    fulcrum::programs::fragments<fulcrum::DType::f16>(params);
  else
    fulcrum::programs::fragments<fulcrum::DType::bf16>(params);
}

extern "C" __global__ void __launch_bounds__(fulcrum::programs::e4m3_threads)
    program_e4m3(const __grid_constant__ fulcrum::programs::E4m3Params params) {
  fulcrum::programs::e4m3(params);
}
