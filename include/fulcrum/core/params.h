// Params: what a grouped-GEMM kernel receives by value, and the records it reads from device memory.
//
// Filled by host/launch.hpp, read by every family; layer/csr.cuh writes the token tiles.
// Invariant: all buffers are device memory and strides are in bytes; a kernel knows nothing else of a call.
#pragma once
#include <fulcrum/core/types.h>

FULCRUM_NAMESPACE_BEGIN

// A run of rows of one local expert in CSR order; at most tile_m rows, never zero.
struct alignas(16) TokenTile {
  int32_t expert;     // local index
  int32_t row_begin;  // position in pair_ids
  int32_t num_rows;
  int32_t reserved;
};

// Which row of a buffer belongs to CSR position s, whose pair is p = pair_ids[s].
enum class RowOrder : uint32_t {
  token,  // p / top_k: the rows of a batch, gathered by the kernel
  pair,   // p: one row a pair, in the batch's own order
  csr,    // s: one row a pair, sorted by expert
};

struct Params {
  const uint8_t* weights;                // [local_experts][expert_bytes] packed units, or null with expert_weights
  const uint8_t* const* expert_weights;  // [local_experts] packed units of each expert; null with weights
  uint64_t expert_stride_bytes;          // from one expert of `weights` to the next
  const float* global_scales;            // [local_experts], or [local_experts][2] gate, up
  const uint8_t* tokens;                 // [rows][k] f16 or bf16
  uint64_t tokens_stride_bytes;
  const float* row_scales;    // [rows of tokens] or null: one factor a token row
  const float* bias;          // [local_experts][n] or [local_experts][2][n/2] gate, up; or null
  const float* pair_weights;  // [pairs] or null: routing weight, applied last
  uint8_t* out;               // [rows][out columns] f16 or bf16
  uint64_t out_stride_bytes;
  const TokenTile* token_tiles;    // [*num_token_tiles]
  const int32_t* num_token_tiles;  // [1]
  const int32_t* pair_ids;         // [rows in CSR order]
  uint32_t* tickets;               // [2] next ticket, blocks done; zero before and after every launch
  uint32_t* split_counts;          // [token tiles][n tiles][consumer warps] parts done, with split_k; zero likewise
  float* split_sums;               // [split_k][rows in CSR order][n], with split_k
  uint64_t split_stride;           // values from one part's sums to the next
  const uint8_t* weights_up;       // with code_word=block36 and gate_up: as weights, which are then the gate's
  const uint8_t* const* expert_weights_up;  // likewise
  uint32_t n, k;                            // of the packed weight
  uint32_t top_k;
  RowOrder input_rows, output_rows;
};

inline constexpr uint32_t ticket_bytes = 2 * sizeof(uint32_t);

// Most token tiles that `pairs` rows over `experts` experts can make: every active expert may end in one short tile.
FULCRUM_HD constexpr uint64_t max_token_tiles(uint64_t pairs, uint64_t experts, uint32_t tile_m) {
  return min_of(pairs, experts + pairs / tile_m);
}

FULCRUM_NAMESPACE_END
