// Device side of harness/checkpoint.hpp: fills a part's bank where it lies, one thread per group of 16 columns.
//
// Called by ProblemOnDevice, measure_repack() and the device tests.
// Invariant: the bytes are those of make_checkpoint(); indices are 64-bit, a bank may pass 2^31 bytes.
#include "harness/checkpoint.hpp"

namespace fulcrum::harness {
namespace {

__global__ void fill_groups(CheckpointRecipe recipe, uint32_t part, uint8_t* codes, uint8_t* scales) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t index = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; index < num_groups(recipe);
       index += stride) {
    const GroupBytes bytes = draw_group(recipe, part, index);
    // eight code bytes are 4-byte aligned in both formats
    uint32_t* words = reinterpret_cast<uint32_t*>(codes + codes_offset(recipe, index));
    words[0] = static_cast<uint32_t>(bytes.codes);
    words[1] = static_cast<uint32_t>(bytes.codes >> 32);
    scales[scale_offset(recipe, index)] = bytes.scale;
  }
}

}  // namespace

Status fill_checkpoint(const CheckpointRecipe& recipe, uint32_t part, void* codes, void* scales,
                       cuda_api::Stream stream) {
  if (num_groups(recipe) == 0) return success();
  CheckpointRecipe argument = recipe;
  uint8_t* code_bytes = static_cast<uint8_t*>(codes);
  uint8_t* scale_bytes = recipe.format == CheckpointFormat::block36 ? code_bytes : static_cast<uint8_t*>(scales);
  void* arguments[] = {&argument, &part, &code_bytes, &scale_bytes};
  constexpr uint32_t threads = 256;
  // the threads loop, so the grid needs only to fill a GPU
  const uint32_t blocks =
      static_cast<uint32_t>(min_of<uint64_t>(ceil_div<uint64_t>(num_groups(recipe), threads), 4096));
  return cuda_api::launch({reinterpret_cast<const void*>(&fill_groups)}, {blocks, threads, 0}, stream, arguments);
}

}  // namespace fulcrum::harness
