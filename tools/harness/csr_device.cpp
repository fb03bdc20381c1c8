// The CSR kernels, compiled at run time, and a run of them between filled tails.
//
// Called by the device tests, on a GPU and on the emulator. Invariant: see csr_device.hpp.
#include "harness/csr_device.hpp"

#include <algorithm>

#include "harness/device_memory.hpp"
#include "harness/jit_kernels.hpp"

namespace fulcrum::harness {
namespace {

constexpr int fill = 0xA5;
constexpr uint64_t tail = 16;  // elements behind each output that must keep the fill

// `count` elements and a tail, filled.
template <class T>
class Buffer {
 public:
  explicit Buffer(uint64_t count) : host_(count + tail) {
    Result<void*> memory = cuda_api::allocate(bytes());
    require(memory.status());
    device_ = static_cast<T*>(*memory);
    require(cuda_api::memset_async(device_, fill, bytes(), nullptr));
  }
  ~Buffer() { (void)cuda_api::release(device_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* device() const { return device_; }
  void upload(const std::vector<T>& values) {
    require(cuda_api::copy_async(device_, values.data(), values.size() * sizeof(T), nullptr));
    require(cuda_api::synchronize(nullptr));
  }
  std::vector<T> download(uint64_t count) {
    require(cuda_api::copy_async(host_.data(), device_, bytes(), nullptr));
    require(cuda_api::synchronize(nullptr));
    const auto* begin = reinterpret_cast<const unsigned char*>(host_.data() + count);
    const auto* end = reinterpret_cast<const unsigned char*>(host_.data() + host_.size());
    untouched_ = std::all_of(begin, end, [](unsigned char byte) { return byte == fill; });
    return {host_.begin(), host_.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  bool untouched() const { return untouched_; }  // everything past what the last download took

 private:
  uint64_t bytes() const { return host_.size() * sizeof(T); }

  std::vector<T> host_;
  T* device_ = nullptr;
  bool untouched_ = false;
};

// The ids at their row stride, with an impossible id in the gaps.
std::vector<int32_t> strided_ids(const Routing& routing, uint32_t row_stride) {
  std::vector<int32_t> ids(uint64_t{routing.tokens} * row_stride, INT32_MIN);
  for (uint32_t token = 0; token < routing.tokens; ++token) {
    std::copy_n(routing.ids.begin() + static_cast<std::ptrdiff_t>(uint64_t{token} * routing.top_k), routing.top_k,
                ids.begin() + static_cast<std::ptrdiff_t>(uint64_t{token} * row_stride));
  }
  return ids;
}

// The same in 64 bits.
std::vector<int64_t> widened(const std::vector<int32_t>& ids, const Routing& routing, ExpertRange local) {
  std::vector<int64_t> wide(ids.begin(), ids.end());
  for (int64_t& id : wide) {
    if (id < -1 || id >= int64_t{routing.experts}) id = (int64_t{1} << 32) + local.first;
  }
  return wide;
}

// A count that a kernel wrote, kept inside its buffer so that a wrong one is reported and not followed.
uint64_t within(int32_t count, uint64_t bound) { return std::min(static_cast<uint64_t>(std::max(count, 0)), bound); }

}  // namespace

const RoutingKernels& routing_kernels() {
  static const RoutingKernels kernels = [] {
    RoutingKernels compiled;
    for (uint32_t step = 0; step < num_routing_kernels; ++step)
      compiled.steps[step] = compile_helper(routing_sources[step], current_device().arch);
    return compiled;
  }();
  return kernels;
}

DeviceCsr build_csr_on_device(const Routing& routing, const DeviceCsrRequest& request) {
  Shape shape;
  shape.experts = routing.experts;
  shape.first_expert = request.range.first;
  shape.local_experts = request.range.count;
  shape.top_k = routing.top_k;
  const Result<RoutingPlan> plan = make_routing_plan(routing_kernels(), shape, request.max_tokens);
  require(plan.status());

  const auto max_tiles = [&](size_t list) {
    const uint32_t tile_m = request.cuts[list].tile_m;
    return tile_m == 0 ? 0 : max_token_tiles(routing.num_pairs(), request.range.count, tile_m);
  };
  const std::vector<int32_t> all_ids = strided_ids(routing, request.ids_row_stride);
  Buffer<int32_t> ids(request.wide_ids ? 0 : all_ids.size()), num_tokens(1);
  Buffer<int64_t> wide_ids(request.wide_ids ? all_ids.size() : 0);
  Buffer<int32_t> offsets(request.range.count + 1), pair_ids(routing.num_pairs());
  Buffer<int32_t> num_tiles[2]{Buffer<int32_t>(1), Buffer<int32_t>(1)};
  Buffer<TokenTile> tiles[2]{Buffer<TokenTile>(max_tiles(0)), Buffer<TokenTile>(max_tiles(1))};
  Buffer<uint32_t> workspace(plan->workspace_bytes() / 4), bad_pair(1);
  if (request.wide_ids) {
    wide_ids.upload(widened(all_ids, routing, request.range));
  } else {
    ids.upload(all_ids);
  }
  num_tokens.upload({static_cast<int32_t>(routing.tokens)});

  RoutingBuffers buffers{request.wide_ids ? nullptr : ids.device(),
                         request.ids_row_stride,
                         request.max_tokens,
                         num_tokens.device(),
                         offsets.device(),
                         pair_ids.device(),
                         {},
                         workspace.device(),
                         plan->workspace_bytes(),
                         request.wide_ids ? wide_ids.device() : nullptr};
  for (size_t list = 0; list < 2; ++list) {
    const TileCut& cut = request.cuts[list];
    if (cut.tile_m != 0) buffers.lists[list] = {tiles[list].device(), num_tiles[list].device(), cut.tile_m, cut.order};
  }
  require(validate_routing(*plan, buffers, bad_pair.device(), nullptr));
  require(build_routing(*plan, buffers, nullptr));

  DeviceCsr result;
  result.csr.offsets = offsets.download(request.range.count + 1);
  result.csr.pair_ids = pair_ids.download(within(result.csr.offsets.back(), routing.num_pairs()));
  result.first_bad_pair = bad_pair.download(1)[0];
  workspace.download(plan->workspace_bytes() / 4);
  result.tails_untouched = offsets.untouched() && pair_ids.untouched() && bad_pair.untouched() && workspace.untouched();
  for (size_t list = 0; list < 2; ++list) {
    if (request.cuts[list].tile_m == 0) continue;
    result.token_tiles[list] = tiles[list].download(within(num_tiles[list].download(1)[0], max_tiles(list)));
    result.tails_untouched = result.tails_untouched && num_tiles[list].untouched() && tiles[list].untouched();
  }
  return result;
}

}  // namespace fulcrum::harness
