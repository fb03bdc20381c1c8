// Programs of wgmma: tiles into shared memory by copies or stores, fragments from device memory, and the products out.
//
// Compiled by programs.cu, and by the emulator's tests. Invariant: as in programs.cuh.
#pragma once
#include <fulcrum/core/matrix_descriptor.h>
#include <fulcrum/ptx/bulk.cuh>
#include <fulcrum/ptx/ldst.cuh>
#include <fulcrum/ptx/mbarrier.cuh>
#include <fulcrum/ptx/sync.cuh>
#include <fulcrum/ptx/tma.cuh>
#include <fulcrum/ptx/wgmma.cuh>

#include "programs.h"

namespace fulcrum::programs {

inline constexpr uint32_t k16_steps = wgmma_k / 16;

// `rows` rows of 64 columns in shared memory, at a multiple of 1024 bytes, in the layouts of core/matrix_descriptor.h.
struct Tile {
  SharedAddress address;
  uint32_t rows;
  TensorSwizzle swizzle;

  FULCRUM_DEVICE uint32_t bytes() const { return rows * wgmma_row_bytes; }

  // Without a swizzle a piece of 16 bytes along k has all rows behind one another.
  FULCRUM_DEVICE uint32_t leading_bytes() const { return rows * 16; }

  FULCRUM_DEVICE uint64_t descriptor(uint32_t step) const {
    if (swizzle == TensorSwizzle::bytes_128) return matrix_descriptor(address.value + 32 * step);
    return matrix_descriptor({address.value + 2 * step * leading_bytes(), leading_bytes(), 128, swizzle});
  }

  FULCRUM_DEVICE void store(const uint8_t* from) const {
    for (uint32_t piece = ptx::thread_index(); piece < bytes() / 16; piece += wgmma_threads) {
      const uint32_t row = piece / 8, column = piece % 8;
      const uint32_t byte =
          swizzle == TensorSwizzle::bytes_128 ? swizzled(swizzle, piece * 16) : column * leading_bytes() + row * 16;
      ptx::st_shared_v4(address + byte, ptx::ld_global_nc_v4(address_cast<const Vec4>(global_address(from)) + piece));
    }
  }

  // By one thread: one box, or one for each piece of the rows.
  FULCRUM_DEVICE void copy(const TensorMap& map, SharedAddress barrier) const {
    const uint32_t boxes = swizzle == TensorSwizzle::bytes_128 ? 1 : wgmma_row_bytes / 16;
    for (uint32_t box = 0; box < boxes; ++box)
      ptx::cp_async_bulk_tensor_2d_shared_global(address + box * leading_bytes(), global_address(&map),
                                                 int32_t(box * 8), 0, barrier);
  }
};

// Fills the tiles and orders that before every thread's wgmma.
FULCRUM_DEVICE void fill_tiles(const WgmmaParams& params, const Tile& tokens, const Tile* weights) {
  const SharedAddress barrier = ptx::dynamic_shared() + ((params.n + wgmma_outputs) * wgmma_row_bytes);
  if (params.fill == TileFill::stored) {
    tokens.store(params.tokens);
    if (weights != nullptr) weights->store(params.weights);
    ptx::fence_proxy_async_shared();  // orders this thread's stores before wgmma's reads, once the barrier is passed
    ptx::barrier_sync();
    return;
  }
  if (ptx::thread_index() == 0) {
    ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init();  // orders the initialization before the copy engine's arrival
    ptx::mbarrier_arrive_expect_tx(barrier, tokens.bytes() + (weights != nullptr ? weights->bytes() : 0));
    tokens.copy(params.tokens_map, barrier);
    if (weights != nullptr) weights->copy(params.weights_map, barrier);
  }
  ptx::barrier_sync();                    // orders the initialization before everybody's wait
  ptx::mbarrier_wait_parity(barrier, 0);  // orders the copies before wgmma's reads
}

// Where the first row and column of this thread's fragments are.
struct FragmentPlace {
  uint32_t row = ptx::thread_index() / 32 * 16 + ptx::lane_index() / 4;
  uint32_t column = 2 * (ptx::lane_index() % 4);
};

// The weights' fragment of one k16 step; a word is two columns.
FULCRUM_DEVICE void load_fragment(const uint8_t* weights, uint32_t step, uint32_t (&a)[4]) {
  const FragmentPlace place;
  const GlobalAddress<const uint32_t> words = address_cast<const uint32_t>(global_address(weights));
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t row = place.row + 8 * (i % 2), column = 16 * step + place.column + 8 * (i / 2);
    a[i] = ptx::ld_global_nc_u32(words + (row * wgmma_k + column) / 2);
  }
}

template <int n>
FULCRUM_DEVICE void store_products(const float (&d)[n / 8][4], uint32_t* out) {
  const FragmentPlace place;
#pragma unroll
  for (uint32_t j = 0; j < uint32_t(n) / 8; ++j)
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = place.row + 8 * (i / 2), column = 8 * j + place.column + i % 2;
      ptx::st_global_u32(global_address(out) + (row * uint32_t(n) + column), __builtin_bit_cast(uint32_t, d[j][i]));
    }
}

template <DType dtype, int n, bool weights_in_registers>
FULCRUM_DEVICE void multiply(const WgmmaParams& params) {
  const Tile tokens{ptx::dynamic_shared(), uint32_t(n), params.swizzle};
  const Tile weights{tokens.address + tokens.bytes(), wgmma_outputs, params.swizzle};
  uint32_t a[k16_steps][4];
  float d[n / 8][4] = {};
  fill_tiles(params, tokens, weights_in_registers ? nullptr : &weights);
  if constexpr (weights_in_registers)
#pragma unroll
    for (uint32_t step = 0; step < k16_steps; ++step) load_fragment(params.weights, step, a[step]);
  ptx::wgmma_pin(d);
  ptx::wgmma_fence();  // orders the zeros in d and the fragments before the products
#pragma unroll
  for (uint32_t step = 0; step < k16_steps; ++step) {
    if constexpr (weights_in_registers)
      ptx::wgmma_m64k16<dtype, n>(d, a[step], tokens.descriptor(step));
    else
      ptx::wgmma_m64k16_ss<dtype, n>(d, weights.descriptor(step), tokens.descriptor(step));
  }
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
  ptx::wgmma_pin(d);
  store_products<n>(d, params.out);
}

template <int n, bool weights_in_registers>
FULCRUM_DEVICE void multiply_as(const WgmmaParams& params) {
  if (params.dtype == DType::f16)
    multiply<DType::f16, n, weights_in_registers>(params);
  else
    multiply<DType::bf16, n, weights_in_registers>(params);
}

// The branches hang on parameters alone, so a warpgroup takes one together.
template <bool weights_in_registers>
FULCRUM_DEVICE void multiply_any(const WgmmaParams& params) {
  switch (params.n) {
    case 8: return multiply_as<8, weights_in_registers>(params);
    case 16: return multiply_as<16, weights_in_registers>(params);
    case 24: return multiply_as<24, weights_in_registers>(params);
    case 32: return multiply_as<32, weights_in_registers>(params);
    case 64: return multiply_as<64, weights_in_registers>(params);
    case 128: return multiply_as<128, weights_in_registers>(params);
    default: return;
  }
}

}  // namespace fulcrum::programs

extern "C" __global__ void __launch_bounds__(fulcrum::programs::wgmma_threads)
    program_wgmma_registers(const __grid_constant__ fulcrum::programs::WgmmaParams params) {
  fulcrum::programs::multiply_any<true>(params);
}

extern "C" __global__ void __launch_bounds__(fulcrum::programs::wgmma_threads)
    program_wgmma_descriptors(const __grid_constant__ fulcrum::programs::WgmmaParams params) {
  fulcrum::programs::multiply_any<false>(params);
}
