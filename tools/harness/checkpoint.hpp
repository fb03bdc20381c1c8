// Random checkpoints of the formats that fulcrum reads, in host memory or in place on a GPU.
//
// Used by tests, verify, tune and the benches: whatever needs weights that nobody trained.
// Invariant: fill_checkpoint() on a GPU and make_checkpoint() on the host give the same bytes for one recipe.
#pragma once

#include <fulcrum/host/cuda_api.hpp>
#include <fulcrum/pack/repack_params.h>

#include <cstdint>
#include <vector>

#include "harness/checkpoint_bytes.h"

namespace fulcrum::harness {

// One projection of a layer as a checkpoint keeps it: a bank per part, experts and rows dense.
struct Checkpoint {
  CheckpointRecipe recipe;
  std::vector<uint8_t> codes[2];   // [part][expert][row][bytes]; block36: whole blocks
  std::vector<uint8_t> scales[2];  // modelopt only
};

// Throws InputError when the format cannot hold the recipe's sizes.
Checkpoint make_checkpoint(const CheckpointRecipe& recipe);

// Zeros of the same sizes, for unpacking into.
Checkpoint empty_checkpoint(const CheckpointRecipe& recipe);

// Sizes, strides and granules for dense banks that start at multiples of 16 bytes; pointers are left null.
RepackParams dense_params(const CheckpointRecipe& recipe);

// dense_params() with this checkpoint's memory as the banks.
RepackParams checkpoint_params(Checkpoint& checkpoint);

// What the checkpoint says, packing it made canonical: bit 7 of a scale cleared, 0x7F to 0, codes under a zero scale 0.
Checkpoint canonical(const Checkpoint& checkpoint);

// code * scale, exactly; the expert's global scale is not in it. `row` counts inside the part.
double weight_value(const Checkpoint& checkpoint, uint32_t expert, uint32_t part, uint32_t row, uint32_t column);

// A global scale per expert and part: powers of two for ScaleDraw::exact, else about amax / 2688 for weights whose
// largest magnitude is 0.2 to 0.4.
float draw_global_scale(const CheckpointRecipe& recipe, uint32_t expert, uint32_t part);

// Writes one part's bank in device memory: `codes` (and, for modelopt, `scales`) as in Checkpoint. Asynchronous.
Status fill_checkpoint(const CheckpointRecipe& recipe, uint32_t part, void* codes, void* scales,
                       cuda_api::Stream stream);

}  // namespace fulcrum::harness
