// launch() on a GPU: exact results with guard bytes, graph capture and replay with new data, two streams at once with
// oversubscribed ticket queues, somebody else's error, and the current device.
//
// Every weight is 1 and expert e's global scale is e + 1, so out[pair][n] = (e + 1) * sum of the token's row, exactly.
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>

#include <fulcrum/fulcrum.hpp>

#include <cstring>
#include <vector>

#include "harness/device_memory.hpp"
#include "harness/jit_kernels.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

constexpr Shape shape{160, 672, 6, 4, 1, 2, DType::f16, Projection::plain, Activation::none};  // tails in n and k
constexpr uint32_t num_tokens = 77;
constexpr uint32_t num_pairs = num_tokens * shape.top_k;
constexpr uint64_t guard_bytes = 256;
constexpr uint8_t guard = 0xA5;

Arch this_arch() { return require(query_device(0)).arch; }

Kernel compile(const Config& config, Arch arch) {
  std::string words;
  const Result<Kernel> kernel = jit::compile(config, kernel_kind(shape), arch, jit_options(), &words);
  BOOST_REQUIRE_MESSAGE(kernel.ok(), words + message(kernel.status()));
  return *kernel;
}

/// Bits of a small integer in f16: exact up to 2048.
uint16_t half_bits(int value) {
  if (value == 0) return 0;
  const uint32_t magnitude = static_cast<uint32_t>(value < 0 ? -value : value);
  uint32_t exponent = 0;
  while (magnitude >> (exponent + 1) != 0) ++exponent;
  const uint32_t mantissa = magnitude << (10 - exponent) & 0x3FF;
  return static_cast<uint16_t>((value < 0 ? 0x8000u : 0u) | (exponent + 15) << 10 | mantissa);
}

/// Packed weights of one expert: code 2 (the value 1) under scale byte 0x38 (1) everywhere.
std::vector<uint8_t> ones(Layout layout) {
  std::vector<uint8_t> bytes(expert_bytes(shape.n, shape.k));
  const auto merge = [&](uint64_t at, uint32_t bits) {
    for (uint32_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<uint8_t>(bytes[at + i] | bits >> 8 * i);
  };
  for (uint32_t row = 0; row < shape.n; ++row) {
    for (uint32_t column = 0; column < shape.k; ++column) {
      const CodePlace place = code_place(layout, shape.n, shape.k, row, column);
      merge(place.word_bytes, encode_code(layout.code_word, place.slot, place.half, 2));
    }
    for (uint32_t group = 0; group < shape.k / scale_group; ++group) {
      const ScalePlace place = scale_place(layout, shape.n, shape.k, row, group);
      merge(place.word_bytes, encode_scale(layout.code_word, place.half, place.turn, 0x38));
    }
  }
  return bytes;
}

RoutingPlan routing_plan(Arch arch) {
  RoutingKernels kernels;
  for (uint32_t step = 0; step < num_routing_kernels; ++step) {
    std::string words;
    const Result<Auxiliary> kernel = jit::compile_auxiliary(routing_sources[step], arch, jit_options(), &words);
    BOOST_REQUIRE_MESSAGE(kernel.ok(), words + message(kernel.status()));
    kernels.steps[step] = *kernel;
  }
  return require(make_routing_plan(kernels, shape, num_tokens));
}

/// One batch with everything it needs on the device; `seed` decides tokens and ids.
class Batch {
 public:
  Batch(const Plan& plan, const RoutingPlan& routing_plan)
      : plan_(plan),
        routing_plan_(routing_plan),
        stream_(require(cuda_api::create_stream())),
        packed_(shape.local_experts * expert_bytes(shape.n, shape.k)),
        tokens_(num_tokens * shape.k),
        ids_(num_pairs),
        offsets_(shape.local_experts + 1),
        pair_ids_(num_pairs),
        tiles_(plan.max_tiles(num_tokens)),
        num_tiles_(1),
        scales_({1, 2, 3, 4}, stream_),
        workspace_(plan.workspace_bytes() + 16),
        out_(out_bytes + 2 * guard_bytes) {
    const std::vector<uint8_t> expert = ones(plan.layout);
    for (uint32_t e = 0; e < shape.local_experts; ++e) {
      require(cuda_api::copy_async(packed_.data() + e * expert.size(), expert.data(), expert.size(), stream_));
    }
    require(prepare_workspace(plan, workspace_.data(), stream_));
    require(cuda_api::synchronize(stream_));
  }
  ~Batch() { (void)cuda_api::destroy_stream(stream_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  cuda_api::Stream stream() const { return stream_; }

  /// New tokens and ids into the same buffers; guards and out are filled with the guard byte.
  void load(uint32_t seed) {
    std::vector<uint16_t> tokens(num_tokens * shape.k);
    sums_.assign(num_tokens, 0);
    for (uint32_t at = 0; at < tokens.size(); ++at) {
      // rows with different sums, below 512 with their factor
      const int value = static_cast<int>((at * 2654435761u + seed * 40503u) >> 13) % 3 - 1;
      tokens[at] = half_bits(value);
      sums_[at / shape.k] += value;
    }
    id_values_.resize(num_pairs);
    for (uint32_t pair = 0; pair < num_pairs; ++pair) {
      // -1, remote ids 0 and 5, local 1..4
      id_values_[pair] = static_cast<int32_t>((pair * 5 + seed + pair / 9) % 7) - 1;
    }
    require(cuda_api::copy_async(tokens_.data(), tokens.data(), tokens_.bytes(), stream_));
    require(cuda_api::copy_async(ids_.data(), id_values_.data(), ids_.bytes(), stream_));
    require(cuda_api::memset_async(out_.data(), guard, out_.bytes(), stream_));
    require(cuda_api::synchronize(stream_));
  }

  Status enqueue() {
    RoutingBuffers routing;
    routing.ids = ids_.data();
    routing.num_tokens = num_tokens;
    routing.offsets = offsets_.data();
    routing.pair_ids = pair_ids_.data();
    routing.lists[0] = {tiles_.data(), num_tiles_.data(), static_cast<uint32_t>(plan_.kernel.config.tile_m),
                        plan_.kernel.config.tile_order};
    const Status status = build_routing(routing_plan_, routing, stream_);
    return status.ok() ? launch(plan_, weights(), buffers(), stream_) : status;
  }

  void check() const {
    const std::vector<uint8_t> bytes = out_.download(stream_);
    for (uint64_t at = 0; at < guard_bytes; ++at) {
      BOOST_REQUIRE(bytes[at] == guard);
      BOOST_REQUIRE(bytes[bytes.size() - 1 - at] == guard);
    }
    for (uint32_t pair = 0; pair < num_pairs; ++pair) {
      const int32_t local = id_values_[pair] - static_cast<int32_t>(shape.first_expert);
      const bool owned = local >= 0 && local < static_cast<int32_t>(shape.local_experts);
      const uint16_t expected = owned ? half_bits((local + 1) * sums_[pair / shape.top_k]) : uint16_t{guard * 257};
      for (uint32_t n = 0; n < shape.n; ++n) {
        uint16_t value;
        std::memcpy(&value, bytes.data() + guard_bytes + (uint64_t{pair} * shape.n + n) * 2, 2);
        BOOST_REQUIRE_MESSAGE(value == expected,
                              "pair " << pair << " output " << n << ": " << value << ", not " << expected);
      }
    }
    const std::vector<uint8_t> workspace = workspace_.download(stream_);
    for (uint64_t at = 0; at < plan_.workspace_bytes(); ++at)
      BOOST_REQUIRE(workspace[at] == 0);  // left as it was found
  }

  Weights weights() const {
    Weights weights;
    weights.packed = packed_.data();
    weights.global_scales = scales_.data();
    weights.layout = plan_.layout;
    weights.n = shape.n;
    weights.k = shape.k;
    weights.num_experts = shape.local_experts;
    return weights;
  }

  Buffers buffers() const {
    Buffers buffers;
    buffers.num_tokens = num_tokens;
    buffers.routing = {tiles_.data(), num_tiles_.data(), pair_ids_.data()};
    buffers.tokens = tokens_.data();
    buffers.out = out_.data() + guard_bytes;
    buffers.workspace = workspace_.data();
    buffers.workspace_bytes = plan_.workspace_bytes();
    return buffers;
  }

 private:
  static constexpr uint64_t out_bytes = uint64_t{num_pairs} * shape.n * 2;
  Plan plan_;
  RoutingPlan routing_plan_;
  cuda_api::Stream stream_;
  DeviceBuffer<uint8_t> packed_;
  DeviceBuffer<uint16_t> tokens_;
  DeviceBuffer<int32_t> ids_, offsets_, pair_ids_;
  DeviceBuffer<TokenTile> tiles_;
  DeviceBuffer<int32_t> num_tiles_;
  DeviceBuffer<float> scales_;
  DeviceBuffer<uint8_t> workspace_, out_;
  std::vector<int> sums_;
  std::vector<int32_t> id_values_;
};

// For the current device, whose architecture is given.
Plan plan_of(const Config& config, Arch arch) {
  return require(make_plan(compile(config, arch), shape, layout_of(config), num_tokens));
}

Plan plan_of(const Config& config) { return plan_of(config, this_arch()); }

Config ticket_config() {
  Config config = default_config(kernel_kind(shape), this_arch());
  config.tile_queue = TileQueue::ticket;
  config.grid_extent = GridExtent::bound;  // more blocks than fit at once, and more than there are items
  return config;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device_launch, *boost::unit_test::precondition(needs_gpu))

BOOST_AUTO_TEST_CASE(results_are_exact_and_stay_inside) {
  const RoutingPlan routing = routing_plan(this_arch());
  for (const GridExtent extent : {GridExtent::persistent, GridExtent::bound, GridExtent::active}) {
    Config config = default_config(kernel_kind(shape), this_arch());
    config.grid_extent = extent;
    Batch batch(plan_of(config), routing);
    batch.load(static_cast<uint32_t>(extent));
    require(batch.enqueue());
    batch.check();
  }
}

BOOST_AUTO_TEST_CASE(a_captured_graph_replays_with_new_data) {
  Batch batch(plan_of(ticket_config()), routing_plan(this_arch()));
  batch.load(1);
  require(cuda_api::begin_capture(batch.stream()));
  const Status recorded = batch.enqueue();
  const Result<cuda_api::Graph> graph = cuda_api::end_capture(batch.stream());
  require(recorded);
  require(graph.status());
  for (uint32_t seed = 1; seed < 6; ++seed) {
    batch.load(seed);
    require(cuda_api::launch_graph(*graph, batch.stream()));
    batch.check();
  }
  require(cuda_api::destroy_graph(*graph));
}

BOOST_AUTO_TEST_CASE(two_streams_at_once) {
  const Plan plan = plan_of(ticket_config());  // one Plan, shared
  const RoutingPlan routing = routing_plan(this_arch());
  Batch first(plan, routing);
  Batch second(plan, routing);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    first.load(seed);
    second.load(seed + 100);
    for (int repeat = 0; repeat < 10; ++repeat) {
      require(first.enqueue());
      require(second.enqueue());
    }
    first.check();
    second.check();
  }
}

BOOST_AUTO_TEST_CASE(replays_give_the_same_bits) {
  Batch batch(plan_of(ticket_config()), routing_plan(this_arch()));
  batch.load(3);
  for (int repeat = 0; repeat < 10; ++repeat) {
    require(batch.enqueue());
    batch.check();
  }
}

BOOST_AUTO_TEST_CASE(an_error_of_somebody_else_is_reported_as_theirs) {
  Batch batch(plan_of(default_config(kernel_kind(shape), this_arch())), routing_plan(this_arch()));
  batch.load(1);
  (void)cudaMemcpy(nullptr, nullptr, 1, static_cast<cudaMemcpyKind>(99));
  const Status status = batch.enqueue();
  BOOST_TEST((status.code == Code::foreign_cuda), message(status));
  BOOST_TEST(message(status).find("not one of fulcrum's") != std::string::npos);
  (void)cudaGetLastError();
  require(batch.enqueue());
  batch.check();
}

BOOST_AUTO_TEST_CASE(a_kernel_of_another_architecture_is_refused_with_both_names) {
  const Arch here = this_arch();
  const Arch other{here.cc == 80 ? 90 : 80};
  const Config config = default_config(kernel_kind(shape), this_arch());
  Kernel kernel = describe_kernel(config, kernel_kind(shape), other);  // make_plan refuses before it loads the code
  const std::string words = message(make_plan(kernel, shape, layout_of(config), num_tokens).status());
  BOOST_TEST(words.find(arch_name(other)) != std::string::npos, words);
  BOOST_TEST(words.find(arch_name(here)) != std::string::npos, words);
}

BOOST_AUTO_TEST_CASE(the_current_device_is_restored) {
  const Plan plan = plan_of(default_config(kernel_kind(shape), this_arch()));
  Batch batch(plan, routing_plan(this_arch()));
  batch.load(1);
  const int last = *cuda_api::num_devices() - 1;  // the same device where there is only one
  require(cuda_api::set_device(last));
  require(batch.enqueue());
  BOOST_TEST(*cuda_api::current_device() == last);
  batch.check();
  require(cuda_api::set_device(0));
}

// Every one has a Plan and kernels of its own, and each gives the exact bits.
BOOST_AUTO_TEST_CASE(every_device_gives_the_same_bits) {
  for (int device = 0; device < *cuda_api::num_devices(); ++device) {
    require(cuda_api::set_device(device));
    const Arch arch = require(query_device(device)).arch;
    const Plan plan = plan_of(ticket_config(), arch);
    BOOST_TEST(plan.device == device);
    Batch batch(plan, routing_plan(arch));
    batch.load(3);
    require(batch.enqueue());
    batch.check();
  }
  require(cuda_api::set_device(0));
}

BOOST_AUTO_TEST_CASE(a_plan_knows_what_the_loader_knows) {
  const Plan plan = plan_of(default_config(kernel_kind(shape), this_arch()));
  const jit::Cubin cubin = jit::compile_cubin(plan.kernel.config, kernel_kind(shape), this_arch(), jit_options());
  BOOST_TEST(plan.kernel.registers == cubin.info.registers);  // of the cubin, and of the loaded code
  BOOST_TEST(plan.kernel.spill_bytes == cubin.info.stack_bytes);
  BOOST_TEST(plan.blocks_per_sm >= 1u);
}

BOOST_AUTO_TEST_SUITE_END()
