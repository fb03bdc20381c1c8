// Parameters of the programs: small kernels that show what single instructions do.
//
// Shared by the kernels (programs.cuh) and their test (tests/device/test_programs.cpp). Invariant: plain data; every
// buffer is device memory, with its layout beside it.
#pragma once
#include <fulcrum/core/shape.h>
#include <fulcrum/core/tensor_map.h>

namespace fulcrum::programs {

// What shared memory holds where nothing was copied to.
inline constexpr uint32_t untouched = 0xA5A5A5A5;

inline constexpr uint32_t barrier_bytes = 8;

// program_tensor_copy: one box, [0, box_capacity) of shared memory as the copy left it.
inline constexpr uint32_t box_capacity = 32 * 1024;
inline constexpr uint32_t tensor_copy_shared_bytes = box_capacity + barrier_bytes;

struct TensorCopyParams {
  TensorMap map;
  uint32_t* out;   // [box_capacity / 4]
  int32_t x, y;    // first column and row of the box
  uint32_t bytes;  // box_bytes() of the map
};

// program_bulk_copy: a run of bytes, [0, run_capacity) of shared memory as the copy left it.
inline constexpr uint32_t run_capacity = 8 * 1024;
inline constexpr uint32_t bulk_copy_shared_bytes = run_capacity + barrier_bytes;

struct BulkCopyParams {
  const uint8_t* in;
  uint32_t* out;   // [run_capacity / 4]
  uint32_t bytes;  // multiple of 16
};

// program_cp_async_groups: thread t copies t % 17 bytes of piece t in one group and t % 5 bytes of word t in a second,
// and the out of t is what its neighbour t ^ 1 copied.
inline constexpr uint32_t cp_async_threads = 64;
inline constexpr uint32_t cp_async_shared_bytes = cp_async_threads * 20;

struct CpAsyncParams {
  const uint8_t* pieces;  // [cp_async_threads][16]
  const uint8_t* words;   // [cp_async_threads][4]
  uint32_t* out_pieces;   // [cp_async_threads][4]
  uint32_t* out_words;    // [cp_async_threads]
};

// program_mbarrier_phases: warp 0 writes in[round] to one of two stages, warp 1 reads it from there, lanes reversed.
inline constexpr uint32_t phase_rounds = 6, phase_stages = 2;
inline constexpr uint32_t phases_shared_bytes = phase_stages * (32 * 4 + 2 * barrier_bytes);

struct PhasesParams {
  const uint32_t* in;  // [phase_rounds][32]
  uint32_t* out;       // [phase_rounds][32]
};

// program_fragments: one warp's fragments of 16 x 16 weights, these transposed 8 x 8 by 8 x 8, and an mma with 8 tokens
// whose accumulators start as 4 * lane + i.
inline constexpr uint32_t fragment_words = 12;
inline constexpr uint32_t fragments_shared_bytes = 16 * 16 * 2;

struct FragmentsParams {
  const uint8_t* weights;  // [16][16] f16 or bf16
  const uint8_t* tokens;   // [8][16]
  uint32_t* out;           // [32 lanes][4 words of ldmatrix, 4 transposed, 4 f32 of d]
  DType dtype;
};

// program_e4m3: thread t converts bytes 4t to 4t + 3, the low pair and the high pair of a word.
inline constexpr uint32_t e4m3_threads = 64;

struct E4m3Params {
  uint32_t* out;  // [e4m3_threads][2] pairs of f16
};

// program_wgmma_registers and program_wgmma_descriptors: 64 outputs by n tokens over k = 64, with the weights from
// registers or from shared memory.
inline constexpr uint32_t wgmma_threads = 128, wgmma_outputs = 64, wgmma_k = 64;
inline constexpr uint32_t wgmma_row_bytes = wgmma_k * 2;

enum class TileFill : uint32_t { copied, stored };  // by tensor copies, or by the threads' own stores

struct WgmmaParams {
  TensorMap tokens_map, weights_map;  // of the two below; boxes of all rows and 64 columns, or 8 without a swizzle
  const uint8_t* tokens;              // [n][64] f16 or bf16
  const uint8_t* weights;             // [64][64]
  uint32_t* out;                      // [64][n] f32
  uint32_t n;                         // 8, 16, 24, 32, 64 or 128
  DType dtype;
  TensorSwizzle swizzle;  // of both tiles in shared memory
  TileFill fill;
};

constexpr uint32_t wgmma_shared_bytes(uint32_t n) { return (n + wgmma_outputs) * wgmma_row_bytes + barrier_bytes; }

}  // namespace fulcrum::programs
