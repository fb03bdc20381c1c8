// Compiles, launches and times the repack kernels. Invariant: see repack_device.hpp.
#include "harness/repack_device.hpp"

#include <fulcrum/pack/repack_entries.h>

#include <fulcrum_embedded_headers.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/device_memory.hpp"
#include "harness/input_error.hpp"

namespace fulcrum::harness {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Microseconds of work on a stream, by events.
class StreamTimer {
 public:
  StreamTimer() {
    const Result<cuda_api::Stream> stream = cuda_api::create_stream();
    require(stream.status());
    stream_ = *stream;
    for (cuda_api::Event& event : events_) {
      const Result<cuda_api::Event> created = cuda_api::create_event();
      require(created.status());
      event = *created;
    }
  }
  ~StreamTimer() {
    for (const cuda_api::Event event : events_)
      if (event != nullptr) (void)cuda_api::destroy_event(event);
    if (stream_ != nullptr) (void)cuda_api::destroy_stream(stream_);
  }
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  cuda_api::Stream stream() const { return stream_; }

  template <class Work>
  double time(const Work& work) const {
    require(cuda_api::record(events_[0], stream_));
    work();
    require(cuda_api::record(events_[1], stream_));
    require(cuda_api::wait(events_[1]));
    const Result<float> milliseconds = cuda_api::elapsed_ms(events_[0], events_[1]);
    require(milliseconds.status());
    return 1e3 * *milliseconds;
  }

 private:
  cuda_api::Stream stream_ = nullptr;
  cuda_api::Event events_[2] = {};
};

}  // namespace

const Auxiliary& repack_kernel(RepackKind kind, RepackDirection direction) {
  static std::mutex mutex;
  static std::map<std::pair<int, uint32_t>, Auxiliary> kernels;  // a cubin is for one architecture
  const std::lock_guard<std::mutex> lock(mutex);
  const Result<int> ordinal = cuda_api::current_device();
  require(ordinal.status());
  const Result<Device> device = query_device(*ordinal);
  require(device.status());
  const std::pair<int, uint32_t> key{device->arch.cc, repack_entry_index(kind, direction)};
  const auto found = kernels.find(key);
  if (found != kernels.end()) return found->second;
  jit::Options options;
  options.headers.files = embedded_headers;
  options.headers.num_files = num_embedded_headers;
  const RepackEntry& entry = repack_entry(kind, direction);
  std::string explanation;
  const Result<Auxiliary> kernel =
      jit::compile_auxiliary({entry.name, entry.source}, device->arch, options, &explanation);
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
  RepackParams params = dense_params(recipe);
  DeviceMemory codes[2], scales[2], refusal(sizeof no_refusal);
  const StreamTimer timer;
  uint64_t checkpoint_bytes = 0;
  for (uint32_t part = 0; part < recipe.num_parts; ++part) {
    codes[part] = DeviceMemory(recipe.num_experts * codes_expert_bytes(recipe));
    scales[part] = DeviceMemory(recipe.num_experts * scales_expert_bytes(recipe));
    params.parts[part].codes.bank = codes[part].data();
    params.parts[part].scales.bank = scales[part].data();
    require(fill_checkpoint(recipe, part, codes[part].data(), scales[part].data(), timer.stream()));
    checkpoint_bytes += codes[part].size() + scales[part].size();
  }
  DeviceMemory packed(recipe.num_experts * expert_bytes(recipe.n, recipe.k));
  params.packed = packed.data();
  params.refusal = reinterpret_cast<uint64_t*>(refusal.data());
  run_repack(kind, RepackDirection::pack, params, timer.stream());  // what unpacking reads, and a warm-up
  run_repack(kind, direction, params, timer.stream());

  RepackRate rate;
  rate.bytes = checkpoint_bytes + packed.size();
  rate.samples = samples;
  // a copy inside the packed bank is half its bytes read and half written; scaled to the repack's bytes
  const uint64_t half = packed.size() / 2;
  std::vector<double> times, copies;
  for (uint32_t sample = 0; sample < samples; ++sample) {
    times.push_back(timer.time([&] { run_repack(kind, direction, params, timer.stream()); }));
    copies.push_back(timer.time([&] {
      require(cuda_api::copy_async(packed.data(), packed.data() + packed.size() - half, half, timer.stream()));
    }));
    // unpacking now reads the second half of the bank twice: packed weights as before
  }
  rate.median_us = median(times);
  rate.best_us = *std::min_element(times.begin(), times.end());
  rate.copy_median_us = median(copies) * static_cast<double>(rate.bytes) / static_cast<double>(2 * half);
  return rate;
}

}  // namespace fulcrum::harness
