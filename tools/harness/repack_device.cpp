// Compiles, launches and times the repack kernels.
//
// Called by ProblemOnDevice, bench and the device tests. Invariant: see repack_device.hpp.
#include "harness/repack_device.hpp"

#include <fulcrum/pack/repack_entries.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/device_memory.hpp"
#include "harness/input_error.hpp"
#include "harness/jit_kernels.hpp"
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

const Auxiliary& repack_kernel(RepackKind kind, RepackDirection direction) {
  static std::mutex mutex;
  static std::map<std::pair<int, uint32_t>, Auxiliary> kernels;  // a cubin is for one architecture
  const std::lock_guard<std::mutex> lock(mutex);
  const Arch arch = current_device().arch;
  const std::pair<int, uint32_t> key{arch.cc, repack_entry_index(kind, direction)};
  const auto found = kernels.find(key);
  if (found != kernels.end()) return found->second;
  const RepackEntry& entry = repack_entry(kind, direction);
  std::string explanation;
  const Result<Auxiliary> kernel =
      jit::compile_auxiliary({entry.name, entry.source}, arch, jit_options(), &explanation);
  if (!kernel.ok()) throw std::runtime_error(explanation.empty() ? message(kernel.status()) : explanation);
  return kernels.emplace(key, *kernel).first->second;
}

void run_repack(RepackKind kind, RepackDirection direction, const RepackParams& params, cuda_api::Stream stream) {
  if (const char* reason = illegal_repack(kind.format, params)) throw InputError(std::string("repack: ") + reason);
  const Auxiliary& kernel = repack_kernel(kind, direction);
  if (direction == RepackDirection::pack)
    require(cuda_api::memset_async(params.refusal, 0xFF, sizeof no_refusal, stream));
  const uint64_t blocks = repack_blocks(params);
  if (blocks == 0) return;
  RepackParams argument = params;
  void* arguments[] = {&argument};
  require(cuda_api::launch(kernel.function, {static_cast<uint32_t>(blocks), repack_threads, repack_shared_bytes},
                           stream, arguments));
}

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
