// fill_checkpoint() for the emulated device, whose memory the host can reach.
//
// Takes the place of checkpoint_device.cu. Invariant: the bytes are those of make_checkpoint().
#include "harness/checkpoint.hpp"

#include <cstring>

namespace fulcrum::harness {

Status fill_checkpoint(const CheckpointRecipe& recipe, uint32_t part, void* codes, void* scales,
                       cuda_api::Stream stream) {
  const bool block36 = recipe.format == CheckpointFormat::block36;
  std::vector<uint8_t> code_bytes(recipe.num_experts * codes_expert_bytes(recipe));
  std::vector<uint8_t> scale_bytes(block36 ? 0 : recipe.num_experts * scales_expert_bytes(recipe));
  std::vector<uint8_t>& scale_target = block36 ? code_bytes : scale_bytes;
  for (uint64_t index = 0; index < num_groups(recipe); ++index) {
    const GroupBytes bytes = draw_group(recipe, part, index);
    std::memcpy(code_bytes.data() + codes_offset(recipe, index), &bytes.codes, sizeof bytes.codes);
    scale_target[scale_offset(recipe, index)] = bytes.scale;
  }
  Status status = cuda_api::copy_async(codes, code_bytes.data(), code_bytes.size(), stream);
  if (status.ok() && !block36) status = cuda_api::copy_async(scales, scale_bytes.data(), scale_bytes.size(), stream);
  return status;
}

}  // namespace fulcrum::harness
