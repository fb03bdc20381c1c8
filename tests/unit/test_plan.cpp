// Plans and launches without a GPU: every refusal with its value and limit, the grid rule, and the parameters.
//
// Run by ctest as unit.host_plan and unit.host_launch; needs no GPU.
#include "status_words.hpp"

#include <boost/test/unit_test.hpp>
#include <fulcrum/fulcrum.hpp>

using namespace fulcrum;

namespace {

const Shape gate_up{1280, 4096, 288, 288, 0, 8, DType::f16, Projection::gate_up, Activation::silu};

Device h200() {
  Device device;
  device.ordinal = 0;
  device.arch.cc = 90;
  device.num_sms = 132;
  device.shared_per_block_bytes = 232448;
  device.shared_per_sm_bytes = 233472;
  device.registers_per_block = 65536;
  device.registers_per_sm = 65536;
  device.max_threads_per_block = 1024;
  device.max_grid = 0x7FFFFFFF;
  return device;
}

struct Setup {
  Shape shape = gate_up;
  Config config = default_config(kernel_kind(gate_up), Arch{80});
  Device device = h200();
  cuda_api::FunctionAttributes attributes{128, 0, 0, 1024, 90};
  uint32_t blocks_per_sm = 2;
  uint64_t max_tokens = 4096;
  Arch arch{90};

  Kernel kernel() const { return describe_kernel(config, kernel_kind(gate_up), arch); }
  Result<Plan> plan() const {
    return plan_for(kernel(), device, attributes, blocks_per_sm, shape, layout_of(config), max_tokens);
  }
  Plan good() const {
    const Result<Plan> result = plan();
    BOOST_REQUIRE_MESSAGE(result.ok(), message(result.status()));
    return *result;
  }
};

Weights good_weights() {
  Weights weights;
  weights.packed = at<const uint8_t>(0x1000);
  weights.global_scales = at<const float>(0x2000);
  weights.layout = layout_of(default_config(kernel_kind(gate_up), Arch{80}));
  weights.n = 1280;
  weights.k = 4096;
  weights.num_experts = 288;
  return weights;
}

Buffers good_buffers() {
  Buffers buffers;
  buffers.num_tokens = 512;
  buffers.routing = {at<const TokenTile>(0x3000), at<const int32_t>(0x4000), at<const int32_t>(0x5000)};
  buffers.tokens = at<const void>(0x6000);
  buffers.out = at<void>(0x7000);
  return buffers;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_plan)

BOOST_AUTO_TEST_CASE(a_good_plan) {
  const Plan plan = Setup{}.good();
  BOOST_TEST(plan.n_tiles == 10u);
  BOOST_TEST(plan.resident_blocks == 264u);
  BOOST_TEST(plan.workspace_bytes() == 0u);
  BOOST_TEST(plan.max_tiles(4096) == 288u + 32768 / 32);
  BOOST_TEST(plan.max_tiles(1) == 8u);
  BOOST_TEST(plan.max_tiles(0) == 0u);
}

BOOST_AUTO_TEST_CASE(a_ticket_queue_needs_a_workspace) {
  Setup setup;
  setup.config.tile_queue = TileQueue::ticket;
  BOOST_TEST(setup.good().workspace_bytes() == 16u);
}

// 288 + 128 tiles of 32 tokens, 10 tiles of outputs, 4 warps: a count each; then two parts of 4096 x 1280 sums.
BOOST_AUTO_TEST_CASE(parts_of_k_need_counts_and_sums) {
  Setup setup;
  setup.config.split_k = 2;
  setup.max_tokens = 512;
  const Plan plan = setup.good();
  BOOST_TEST(plan.workspace().counter_bytes == 416u * 10 * 4 * 4);
  BOOST_TEST(plan.workspace().split_stride == 4096u * 1280);
  BOOST_TEST(plan.workspace_bytes() == 416u * 10 * 4 * 4 + 2ull * 4096 * 1280 * 4);
  BOOST_TEST(plan.max_items(512) == 416u * 10 * 2);
  setup.config.tile_queue = TileQueue::ticket;
  BOOST_TEST(setup.good().workspace().split_counts_offset == 16u);
  setup.shape.k = 64;
  check_words(setup.plan().status(), Code::illegal_config, "split_k cuts k into more parts than it has units");
}

BOOST_AUTO_TEST_CASE(blocks_per_sm_bounds_the_grid) {
  Setup setup;
  setup.config.blocks_per_sm = 1;
  BOOST_TEST(setup.good().resident_blocks == 132u);
  setup.config.blocks_per_sm = 3;  // and 2 fit
  BOOST_TEST(setup.good().resident_blocks == 264u);
}

BOOST_AUTO_TEST_CASE(rules_and_kinds_are_refused) {
  Setup setup;
  setup.shape.n = 1288;
  check_words(setup.plan().status(), Code::illegal_config, "n is a positive multiple of 16");
  setup = {};
  setup.shape.dtype = DType::bf16;
  setup.config.code_word = CodeWord::plain;  // f16 words would already be illegal for bf16 tokens
  check_words(setup.plan().status(), Code::invalid_argument, "dtype differs");
  setup = {};
  setup.shape.projection = Projection::plain;
  setup.shape.activation = Activation::none;
  check_words(setup.plan().status(), Code::invalid_argument, "projection differs");
}

BOOST_AUTO_TEST_CASE(another_layout_is_refused) {
  const Setup setup;
  const Result<Plan> plan = plan_for(setup.kernel(), setup.device, setup.attributes, 2, setup.shape,
                                     {setup.config.code_word, KOrder::permuted}, 512);
  check_words(plan.status(), Code::invalid_argument, "k_order is natural");
}

BOOST_AUTO_TEST_CASE(another_architecture_is_refused_with_both_names) {
  Setup setup;
  setup.device.arch.cc = 100;
  check_words(setup.plan().status(), Code::unsupported, "compiled for sm_90a and this device is sm_100a");
  setup.arch.cc = 0;  // compiled in: the loader has picked the code
  BOOST_TEST(setup.plan().ok());
}

BOOST_AUTO_TEST_CASE(limits_are_those_of_the_kernel_and_the_device) {
  Setup setup;
  setup.attributes.max_threads = 64;
  check_words(setup.plan().status(), Code::unsupported,
              "a block of 128 threads; this kernel on this device may have 64");
  setup = {};
  setup.device.registers_per_block = 16383;
  check_words(setup.plan().status(), Code::unsupported, "needs 16384 registers; this device gives a block 16383");
  setup = {};
  setup.device.shared_per_block_bytes = setup.kernel().shared_bytes;
  BOOST_TEST(setup.plan().ok());
  setup.attributes.static_shared_bytes = 1;
  check_words(setup.plan().status(), Code::unsupported,
              std::to_string(setup.kernel().shared_bytes + 1) + " bytes of shared memory");
  setup = {};
  setup.blocks_per_sm = 0;
  check_words(setup.plan().status(), Code::unsupported, "no block of this kernel fits");
}

BOOST_AUTO_TEST_CASE(sizes_are_checked_in_64_bits) {
  Setup setup;
  setup.max_tokens = 131072;
  BOOST_TEST(setup.plan().ok());
  setup.max_tokens = (uint64_t{1} << 31) / 8;
  check_words(setup.plan().status(), Code::invalid_argument, "max_tokens * top_k is 2147483648");
  setup.max_tokens = ~uint64_t{0};
  check_words(setup.plan().status(), Code::invalid_argument, "pair index must stay below");
  setup = {};
  setup.device.max_grid = 65535;  // 131,072 tokens make (288 + 1048576 / 32) * 10 items
  setup.max_tokens = 131072;
  check_words(setup.plan().status(), Code::invalid_argument, "up to 330560 work items; a launch counts to 65535");
}

BOOST_AUTO_TEST_CASE(sizes_that_32_bits_cannot_round_up_are_refused) {
  Setup setup;
  setup.shape.n = 0xFFFFFFF0u;  // rounded up to tiles it would wrap to none, and nothing would be computed
  check_words(setup.plan().status(), Code::invalid_argument, "n is 4294967280; a weight has at most 1073741824");
  setup.shape.n = 1280;
  setup.shape.k = 0xFFFFFFF0u;
  check_words(setup.plan().status(), Code::invalid_argument, "k is 4294967280; a weight has at most 1073741824");
  setup.shape.k = 1u << 30;
  BOOST_TEST(setup.plan().ok());
}

BOOST_AUTO_TEST_CASE(sizes_past_int64_do_not_show_as_negative) {
  Setup setup;
  setup.max_tokens = ~uint64_t{0};
  check_words(setup.plan().status(), Code::invalid_argument, "max_tokens * top_k is 9223372036854775807");
  Buffers buffers;
  buffers.num_tokens = ~uint64_t{0};
  check_words(check_launch(Setup{}.good(), Weights{}, buffers), Code::invalid_argument,
              "the batch has 9223372036854775807 tokens");
}

BOOST_AUTO_TEST_CASE(a_plan_needs_a_gpu_and_says_so) {
  if (cuda_api::num_devices().ok()) return;
  const Setup setup;
  BOOST_TEST((make_plan(setup.kernel(), setup.shape, layout_of(setup.config), 512).status().code == Code::no_device));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(host_launch)

BOOST_AUTO_TEST_CASE(nothing_to_do_is_success_whatever_the_pointers) {
  const Plan plan = Setup{}.good();
  BOOST_TEST(launch(plan, Weights{}, Buffers{}, nullptr).ok());  // no GPU is touched: this passes without one
}

BOOST_AUTO_TEST_CASE(wrong_buffers_are_named) {
  const Plan plan = Setup{}.good();
  const Weights weights = good_weights();
  const auto refused = [&](auto change, const std::string& words) {
    Buffers buffers = good_buffers();
    change(buffers);
    check_words(check_launch(plan, weights, buffers), Code::invalid_argument, words);
  };
  BOOST_TEST(check_launch(plan, weights, good_buffers()).ok());
  refused([](Buffers& b) { b.num_tokens = 4097; }, "4097 tokens and the Plan was made for at most 4096");
  refused([](Buffers& b) { b.tokens = nullptr; }, "tokens is null");
  refused([](Buffers& b) { b.tokens = at<const void>(0x6008); },
          "tokens must be a multiple of 16 bytes; it is off by 8");
  refused([](Buffers& b) { b.out = at<void>(0x7002); }, "out must be a multiple of 16 bytes; it is off by 2");
  refused([](Buffers& b) { b.tokens_stride_bytes = 8191; },
          "tokens_stride_bytes is 8191 bytes; it must be at least 8192");
  refused([](Buffers& b) { b.tokens_stride_bytes = 8200; }, "tokens_stride_bytes must be a multiple of 16");
  refused([](Buffers& b) { b.out_stride_bytes = 1278; }, "out_stride_bytes is 1278 bytes; it must be at least 1280");
  refused([](Buffers& b) { b.routing.token_tiles = at<const TokenTile>(0x3004); },
          "routing.token_tiles must be a multiple of 16");
  refused([](Buffers& b) { b.routing.num_token_tiles = nullptr; }, "routing.num_token_tiles is null");
  refused([](Buffers& b) { b.routing.pair_ids = nullptr; }, "routing.pair_ids is null");
  refused([](Buffers& b) { b.row_scales = at<const float>(2); }, "row_scales must be a multiple of 4");
  refused([](Buffers& b) { b.output_rows = RowOrder::token; }, "output_rows cannot be token");
  refused([](Buffers& b) { b.input_rows = static_cast<RowOrder>(3); }, "input_rows is 3; a RowOrder is at most 2");
  refused([](Buffers& b) { b.output_rows = static_cast<RowOrder>(0xFFFFFFFF); },
          "output_rows is 4294967295; a RowOrder");
  refused([](Buffers& b) { b.num_token_tiles = 1u << 20; }, "this batch can have at most 416");
}

BOOST_AUTO_TEST_CASE(wrong_weights_are_named) {
  const Plan plan = Setup{}.good();
  const auto refused = [&](auto change, const std::string& words) {
    Weights weights = good_weights();
    change(weights);
    check_words(check_launch(plan, weights, good_buffers()), Code::invalid_argument, words);
  };
  refused([](Weights& w) { w.packed = nullptr; }, "weights.packed is null");
  refused([](Weights& w) { w.packed += 4; }, "weights.packed must be a multiple of 16 bytes; it is off by 4");
  refused([](Weights& w) { w.n = 640; }, "weights' n is 640 and the Plan's is 1280");
  refused([](Weights& w) { w.num_experts = 144; }, "weights' number of experts is 144");
  refused([](Weights& w) { w.layout.k_order = KOrder::permuted; }, "packed for another k_order");
  refused([](Weights& w) { w.expert_stride_bytes = 16; },
          "weights.expert_stride_bytes is 16 bytes; it must be at least 2949120");
  refused([](Weights& w) { w.global_scales = nullptr; }, "weights.global_scales is null");
  Weights table = good_weights();
  table.packed = nullptr;
  table.expert_pointers = at<const uint8_t* const>(0x8000);
  BOOST_TEST(check_launch(plan, table, good_buffers()).ok());
}

// The checkpoint's own tensors: words are enough of an alignment, and gate and up are two of them.
BOOST_AUTO_TEST_CASE(weights_read_in_place) {
  Setup setup;
  setup.config = default_config(kernel_kind(setup.shape), setup.device.arch, {CodeWord::block36, KOrder::natural});
  const Plan plan = setup.good();
  Weights weights = good_weights();
  weights.layout = layout_of(setup.config);
  weights.packed += 4;
  weights.packed_up = weights.packed + 8;
  BOOST_TEST(check_launch(plan, weights, good_buffers()).ok());
  const Params params = launch_params(plan, weights, good_buffers());
  BOOST_TEST(params.expert_stride_bytes == uint64_t{640} * 4096 * 9 / 16);
  BOOST_TEST((params.weights == weights.packed && params.weights_up == weights.packed_up));
  const auto refused = [&](auto change, const std::string& words) {
    Weights wrong = weights;
    change(wrong);
    check_words(check_launch(plan, wrong, good_buffers()), Code::invalid_argument, words);
  };
  refused([](Weights& w) { w.packed += 2; }, "weights.packed must be a multiple of 4 bytes");
  refused([](Weights& w) { w.packed_up = nullptr; }, "weights.packed_up is null");
  refused([](Weights& w) { w.expert_stride_bytes = 1474558; },
          "weights.expert_stride_bytes is 1474558 bytes; it must be at least 1474560");
  refused([](Weights& w) { w.layout.code_word = CodeWord::plain; }, "packed for another code_word");
  weights.expert_pointers = at<const uint8_t* const>(0x8000);
  weights.packed = nullptr;
  weights.expert_pointers_up = at<const uint8_t* const>(0x8804);
  refused([](Weights&) {}, "weights.expert_pointers_up must be a multiple of 8");
  weights.expert_pointers_up = at<const uint8_t* const>(0x8808);
  BOOST_TEST(check_launch(plan, weights, good_buffers()).ok());
}

BOOST_AUTO_TEST_CASE(a_workspace_is_asked_for_when_it_is_needed) {
  Setup setup;
  setup.config.tile_queue = TileQueue::ticket;
  const Plan plan = setup.good();
  Buffers buffers = good_buffers();
  check_words(check_launch(plan, good_weights(), buffers), Code::invalid_argument,
              "the workspace has 0 bytes and this Plan needs 16");
  buffers.workspace_bytes = 16;
  check_words(check_launch(plan, good_weights(), buffers), Code::invalid_argument, "workspace is null");
  buffers.workspace = at<void>(0x9000);
  BOOST_TEST(check_launch(plan, good_weights(), buffers).ok());
}

BOOST_AUTO_TEST_CASE(grid_rules) {
  Setup setup;
  Buffers buffers = good_buffers();  // 512 tokens: 4096 pairs, at most 288 + 128 tiles of 32 tokens, times 10
  BOOST_TEST(launch_blocks(setup.good(), buffers) == 264u);
  buffers.num_tokens = 1;  // 8 pairs in at most 8 tiles
  BOOST_TEST(launch_blocks(setup.good(), buffers) == 80u);
  setup.config.grid_extent = GridExtent::bound;
  buffers.num_tokens = 512;
  buffers.num_token_tiles = 300;
  BOOST_TEST(launch_blocks(setup.good(), buffers) == 4160u);
  setup.config.grid_extent = GridExtent::active;
  BOOST_TEST(launch_blocks(setup.good(), buffers) == 3000u);
  buffers.num_token_tiles = 0;  // not known on the host
  BOOST_TEST(launch_blocks(setup.good(), buffers) == 4160u);
  buffers.num_tokens = 0;
  BOOST_TEST(launch_blocks(setup.good(), buffers) == 0u);
}

BOOST_AUTO_TEST_CASE(parameters_take_dense_strides_in_64_bits) {
  const Plan plan = Setup{}.good();
  Params params = launch_params(plan, good_weights(), good_buffers());
  BOOST_TEST(params.expert_stride_bytes == uint64_t{1280} * 4096 * 9 / 16);
  BOOST_TEST(params.tokens_stride_bytes == 8192u);
  BOOST_TEST(params.out_stride_bytes == 1280u);
  BOOST_TEST((params.weights != nullptr && params.expert_weights == nullptr && params.tickets == nullptr));
  Weights far = good_weights();
  far.expert_stride_bytes = uint64_t{1} << 33;
  BOOST_TEST(launch_params(plan, far, good_buffers()).expert_stride_bytes == uint64_t{1} << 33);
}

BOOST_AUTO_TEST_CASE(registries_find_by_config_and_kind) {
  char text[config_text_capacity];
  Config config = default_config(kernel_kind(gate_up), Arch{80});
  write_config(config, text, config_text_capacity);
  const RegisteredKernel kernels[] = {{text, kernel_kind(gate_up), at<const void>(0x100)}};
  const RegisteredAuxiliary helpers[] = {{"fulcrum_csr_single", at<const void>(0x200)}};
  const Registry registry{kernels, 1, helpers, 1};
  config.grid_extent = GridExtent::active;  // a Run lever: the same code, kept in the Kernel
  const Result<Kernel> kernel = find_kernel(registry, config, kernel_kind(gate_up));
  BOOST_REQUIRE(kernel.ok());
  BOOST_TEST((kernel->function.address == at<const void>(0x100) && kernel->config.grid_extent == GridExtent::active));
  BOOST_TEST(kernel->threads == block_threads(config));
  config.stages = 6;
  check_words(find_kernel(registry, config, kernel_kind(gate_up)).status(), Code::not_found,
              "not among the 1 kernels compiled in");
  BOOST_TEST(find_auxiliary(registry, "fulcrum_csr_single").ok());
  check_words(find_auxiliary(registry, "fulcrum_csr_place").status(), Code::not_found,
              "fulcrum_csr_place is not compiled in");
}

BOOST_AUTO_TEST_SUITE_END()
