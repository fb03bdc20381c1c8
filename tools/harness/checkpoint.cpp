// Host side of harness/checkpoint.hpp: banks in memory, their RepackParams, their canonical form and their values.
//
// Called by the tests, the oracle and ProblemOnDevice.
// Invariant: meaning is taken from pack/formats.h alone, so a reader's mistake there cannot hide here as well.
#include "harness/checkpoint.hpp"

#include <string>

#include "harness/input_error.hpp"

namespace fulcrum::harness {
namespace {

uint64_t group_index(const CheckpointRecipe& recipe, uint32_t expert, uint32_t row, uint32_t group) {
  return (static_cast<uint64_t>(expert) * part_rows(recipe) + row) * (recipe.k / scale_group) + group;
}

// Calls visit(part, expert, row) for every row of the checkpoint.
template <class Visit>
void for_each_row(const CheckpointRecipe& recipe, const Visit& visit) {
  for (uint32_t part = 0; part < recipe.num_parts; ++part)
    for (uint32_t expert = 0; expert < recipe.num_experts; ++expert)
      for (uint32_t row = 0; row < part_rows(recipe); ++row) visit(part, expert, row);
}

// The bytes that hold a part's scales, and the offset of one row in them.
template <class AnyCheckpoint>
auto& scales_of(AnyCheckpoint& checkpoint, uint32_t part) {
  const bool block36 = checkpoint.recipe.format == CheckpointFormat::block36;
  return block36 ? checkpoint.codes[part] : checkpoint.scales[part];
}

uint64_t scales_row(const CheckpointRecipe& recipe, uint32_t expert, uint32_t row) {
  const bool block36 = recipe.format == CheckpointFormat::block36;
  const uint64_t row_bytes = block36 ? checkpoint_codes_row_bytes(recipe.format, recipe.k)
                                     : checkpoint_scales_row_bytes(recipe.format, recipe.k);
  return (static_cast<uint64_t>(expert) * part_rows(recipe) + row) * row_bytes;
}

uint64_t codes_row(const CheckpointRecipe& recipe, uint32_t expert, uint32_t row) {
  return (static_cast<uint64_t>(expert) * part_rows(recipe) + row) *
         checkpoint_codes_row_bytes(recipe.format, recipe.k);
}

}  // namespace

Checkpoint empty_checkpoint(const CheckpointRecipe& recipe) {
  RepackParams params = dense_params(recipe);
  if (const char* reason = illegal_repack(recipe.format, params))
    throw InputError(std::string("checkpoint: ") + reason);
  Checkpoint checkpoint;
  checkpoint.recipe = recipe;
  for (uint32_t part = 0; part < recipe.num_parts; ++part) {
    checkpoint.codes[part].resize(recipe.num_experts * codes_expert_bytes(recipe));
    checkpoint.scales[part].resize(recipe.num_experts * scales_expert_bytes(recipe));
  }
  return checkpoint;
}

Checkpoint make_checkpoint(const CheckpointRecipe& recipe) {
  Checkpoint checkpoint = empty_checkpoint(recipe);
  for_each_row(recipe, [&](uint32_t part, uint32_t expert, uint32_t row) {
    for (uint32_t group = 0; group < recipe.k / scale_group; ++group) {
      const uint64_t index = group_index(recipe, expert, row, group);
      const GroupBytes bytes = draw_group(recipe, part, index);
      for (uint32_t i = 0; i < group_code_bytes; ++i)
        checkpoint.codes[part][codes_offset(recipe, index) + i] = static_cast<uint8_t>(bytes.codes >> 8 * i);
      scales_of(checkpoint, part)[scale_offset(recipe, index)] = bytes.scale;
    }
  });
  return checkpoint;
}

RepackParams dense_params(const CheckpointRecipe& recipe) {
  RepackParams params;
  params.num_parts = recipe.num_parts;
  params.n = recipe.n;
  params.k = recipe.k;
  params.num_experts = recipe.num_experts;
  params.codes_row_bytes = checkpoint_codes_row_bytes(recipe.format, recipe.k);
  params.scales_row_bytes = checkpoint_scales_row_bytes(recipe.format, recipe.k);
  for (RepackPart& part : params.parts) {
    part.codes.expert_bytes = codes_expert_bytes(recipe);
    part.scales.expert_bytes = scales_expert_bytes(recipe);
  }
  params.codes_granule = copy_granule(params.codes_row_bytes | codes_expert_bytes(recipe));
  params.scales_granule = copy_granule(params.scales_row_bytes | scales_expert_bytes(recipe));
  return params;
}

RepackParams checkpoint_params(Checkpoint& checkpoint) {
  RepackParams params = dense_params(checkpoint.recipe);
  for (uint32_t part = 0; part < checkpoint.recipe.num_parts; ++part) {
    params.parts[part].codes.bank = checkpoint.codes[part].data();
    params.parts[part].scales.bank = checkpoint.scales[part].data();
  }
  return params;
}

Checkpoint canonical(const Checkpoint& checkpoint) {
  Checkpoint result = checkpoint;
  const CheckpointRecipe& recipe = checkpoint.recipe;
  for_each_row(recipe, [&](uint32_t part, uint32_t expert, uint32_t row) {
    for (uint32_t group = 0; group < recipe.k / scale_group; ++group) {
      uint8_t& scale =
          scales_of(result, part)[scales_row(recipe, expert, row) + checkpoint_scale_byte(recipe.format, group)];
      scale = static_cast<uint8_t>(checkpoint_canonical_scale(recipe.format, scale));
      if (scale != 0) continue;
      const uint64_t codes = codes_offset(recipe, group_index(recipe, expert, row, group));
      for (uint32_t i = 0; i < group_code_bytes; ++i) result.codes[part][codes + i] = 0;
    }
  });
  return result;
}

double weight_value(const Checkpoint& checkpoint, uint32_t expert, uint32_t part, uint32_t row, uint32_t column) {
  const CheckpointRecipe& recipe = checkpoint.recipe;
  const NibblePlace place = checkpoint_code_place(recipe.format, column);
  const uint32_t code = checkpoint.codes[part][codes_row(recipe, expert, row) + place.byte] >> place.shift & 15;
  const uint64_t scale_at =
      scales_row(recipe, expert, row) + checkpoint_scale_byte(recipe.format, column / scale_group);
  const uint8_t byte = scales_of(checkpoint, part)[scale_at];
  return static_cast<double>(e2m1_value(code)) * e4m3_value(checkpoint_canonical_scale(recipe.format, byte));
}

float draw_global_scale(const CheckpointRecipe& recipe, uint32_t expert, uint32_t part) {
  const uint64_t bits = mixed_bits(recipe.seed * 4 + 3, uint64_t(expert) * 2 + part);
  if (recipe.scales == ScaleDraw::exact) return exp2_int(-6 - static_cast<int>(bits % 4));
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53;  // [0, 1)
  return static_cast<float>((0.2 + 0.2 * unit) / 2688);           // 6 * 448, the largest code times the largest scale
}

}  // namespace fulcrum::harness
