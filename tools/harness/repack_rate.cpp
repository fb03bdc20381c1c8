// Times the repack kernels against a copy.
//
// Called by bench. Invariant: see measure_repack() in repack_device.hpp.
#include <algorithm>
#include <vector>

#include "harness/device_memory.hpp"
#include "harness/repack_device.hpp"
#include "harness/timer.hpp"

namespace fulcrum::harness {
namespace {

// A stream that is destroyed with its scope; the default stream cannot be captured.
struct OwnStream {
  cuda_api::Stream stream = require(cuda_api::create_stream());
  OwnStream() = default;
  ~OwnStream() { (void)cuda_api::destroy_stream(stream); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
};

// A layer's checkpoint and packed bank on the device.
struct DeviceLayer {
  RepackParams params;
  DeviceBuffer<uint8_t> codes[2], scales[2], packed;
  DeviceBuffer<uint64_t> refusal{1};
  uint64_t checkpoint_bytes = 0;

  DeviceLayer(const CheckpointRecipe& recipe, cuda_api::Stream stream)
      : params(dense_params(recipe)), packed(recipe.num_experts * expert_bytes(recipe.n, recipe.k)) {
    for (uint32_t part = 0; part < recipe.num_parts; ++part) {
      codes[part] = DeviceBuffer<uint8_t>(recipe.num_experts * codes_expert_bytes(recipe));
      scales[part] = DeviceBuffer<uint8_t>(recipe.num_experts * scales_expert_bytes(recipe));
      params.parts[part].codes.bank = codes[part].data();
      params.parts[part].scales.bank = scales[part].data();
      require(fill_checkpoint(recipe, part, codes[part].data(), scales[part].data(), stream));
      checkpoint_bytes += codes[part].bytes() + scales[part].bytes();
    }
    params.packed = packed.data();
    params.refusal = refusal.data();
  }
};

}  // namespace

RepackRate measure_repack(const CheckpointRecipe& recipe, Layout layout, RepackDirection direction, uint32_t samples) {
  const RepackKind kind{recipe.format, layout};
  const OwnStream own;
  const DeviceLayer layer(recipe, own.stream);
  run_repack(kind, RepackDirection::pack, layer.params, own.stream);  // what unpacking reads
  (void)repack_kernel(kind, direction);                               // compiled before anything is captured
  GraphTimer repack(own.stream, 1,
                    [&](cuda_api::Stream stream, int) { run_repack(kind, direction, layer.params, stream); });
  // The second half of the bank over the first, which leaves packed weights to unpack; scaled to the repack's bytes.
  const uint64_t half = layer.packed.bytes() / 2;
  GraphTimer copy(own.stream, 1, [&](cuda_api::Stream stream, int) {
    require(cuda_api::copy_async(layer.packed.data(), layer.packed.data() + half, half, stream));
  });
  repack.warm_up();
  copy.warm_up();
  std::vector<double> times, copies;
  for (uint32_t sample = 0; sample < samples; ++sample) {
    times.push_back(repack.sample_us());
    copies.push_back(copy.sample_us());
  }
  RepackRate rate;
  rate.bytes = layer.checkpoint_bytes + layer.packed.bytes();
  rate.samples = samples;
  rate.median_us = median_of(times);
  rate.best_us = *std::min_element(times.begin(), times.end());
  rate.copy_median_us = median_of(copies) * static_cast<double>(rate.bytes) / static_cast<double>(2 * half);
  return rate;
}

}  // namespace fulcrum::harness
