// Random checkpoint weights as a pure function of (recipe, position): the same bytes on the host and on a GPU.
//
// Used by checkpoint.cpp (small weights, in memory) and checkpoint_device.cu (banks of many gigabytes, in place).
// Invariant: a group's bytes depend on the recipe's seed and on its part, expert, row and column alone; the format only
// decides where they are stored and, under ScaleDraw::any, which of the 256 scale bytes may occur.
#pragma once

#include <fulcrum/pack/formats.h>

namespace fulcrum::harness {

// exact  one exponent with all eight mantissas, 1 to 1.875: products of small integers stay exact in f32 sums
// model  a bell over 7.5 octaves below the largest scale, and one subnormal (or, in block36, zero) scale in 4096
// any    every byte that the format reads, so that canonical and other bytes meet
enum class ScaleDraw : uint8_t { exact, model, any };

struct CheckpointRecipe {
  CheckpointFormat format = CheckpointFormat::block36;
  ScaleDraw scales = ScaleDraw::exact;
  uint64_t seed = 1;
  uint32_t n = 0;  // packed rows; with two parts (gate, up) each part has n / 2
  uint32_t k = 0;
  uint32_t num_experts = 0;
  uint32_t num_parts = 1;
};

FULCRUM_HD constexpr uint32_t part_rows(const CheckpointRecipe& recipe) { return recipe.n / recipe.num_parts; }

// Bytes of one expert's part, rows dense.
FULCRUM_HD constexpr uint64_t codes_expert_bytes(const CheckpointRecipe& recipe) {
  return part_rows(recipe) * checkpoint_codes_row_bytes(recipe.format, recipe.k);
}
FULCRUM_HD constexpr uint64_t scales_expert_bytes(const CheckpointRecipe& recipe) {
  return part_rows(recipe) * checkpoint_scales_row_bytes(recipe.format, recipe.k);
}

// SplitMix64's finalizer of the index-th state: any two inputs give unrelated 64 bits.
FULCRUM_HD constexpr uint64_t mixed_bits(uint64_t seed, uint64_t index) {
  uint64_t x = seed * 0xD1B54A32D192ED03u + (index + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

FULCRUM_HD constexpr uint8_t draw_scale(const CheckpointRecipe& recipe, uint64_t bits) {
  const bool block36 = recipe.format == CheckpointFormat::block36;
  if (recipe.scales == ScaleDraw::exact) return uint8_t(0x38 + bits % 8);  // exponent field 7: 1, 1.125 .. 1.875
  if (recipe.scales == ScaleDraw::any) return uint8_t(block36 ? bits % 0xFF : bits % 0x7F);  // 0xFF, 0x7F.. refused
  if (bits >> 52 == 0) return uint8_t(block36 ? bits % 8 : 1 + bits % 7);
  uint32_t below = 0;  // four draws of 0..15 eighths of an octave
  for (uint32_t i = 0; i < 4; ++i) below += uint32_t(bits >> 4 * i) & 15;
  return uint8_t(0x7E - below);  // 0x42 to 0x7E, 2.5 to 448
}

// The 16 columns that share a scale: eight code bytes, lowest address first, and the scale byte.
struct GroupBytes {
  uint64_t codes;
  uint8_t scale;
};

// `index` counts groups of one part: (expert * rows + row) * (k / 16) + group.
FULCRUM_HD constexpr GroupBytes draw_group(const CheckpointRecipe& recipe, uint32_t part, uint64_t index) {
  const uint64_t stream = recipe.seed * 4 + part * 2;
  return {mixed_bits(stream, index), draw_scale(recipe, mixed_bits(stream + 1, index))};
}

FULCRUM_HD constexpr uint64_t num_groups(const CheckpointRecipe& recipe) {
  return uint64_t(recipe.num_experts) * part_rows(recipe) * (recipe.k / scale_group);
}

// Byte offsets of a group in a part's bank. k is a multiple of 64 in block36, so a row there is whole blocks.
FULCRUM_HD constexpr uint64_t codes_offset(const CheckpointRecipe& recipe, uint64_t index) {
  if (recipe.format == CheckpointFormat::modelopt) return index * group_code_bytes;
  return index / 4 * block36_bytes + block36_scale_bytes + index % 4 * group_code_bytes;
}
FULCRUM_HD constexpr uint64_t scale_offset(const CheckpointRecipe& recipe, uint64_t index) {
  return recipe.format == CheckpointFormat::modelopt ? index : index / 4 * block36_bytes + index % 4;
}

}  // namespace fulcrum::harness
