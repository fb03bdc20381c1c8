// Checkpoints and routings without a GPU: what is refused before a kernel runs, with its value and limit.
//
// Run by ctest as unit.host_weights and unit.host_routing; needs no GPU.
#include "status_words.hpp"

#include <boost/test/unit_test.hpp>
#include <fulcrum/fulcrum.hpp>
#include <fulcrum/jit.hpp>

using namespace fulcrum;

namespace {

const Shape gate_up{1280, 4096, 288, 288, 0, 8, DType::f16, Projection::gate_up, Activation::silu};

}  // namespace

BOOST_AUTO_TEST_SUITE(host_weights)

BOOST_AUTO_TEST_CASE(checkpoints_are_checked_before_anything_runs) {
  CheckpointView view;
  view.format = CheckpointFormat::modelopt;
  view.num_parts = 2;
  for (int part = 0; part < 2; ++part) {
    view.codes[part] = {at<const void>(0x1000), 640 * 2048, nullptr, nullptr};
    view.scales[part] = {at<const void>(0x2001), 640 * 256, nullptr, nullptr};
  }
  uint64_t refusal = 0;
  const auto params = [&] { return repack_params(view, gate_up, at<void>(0x3000), &refusal); };
  const Result<RepackParams> good = params();
  BOOST_REQUIRE_MESSAGE(good.ok(), message(good.status()));
  BOOST_TEST((good->codes_granule == 16u && good->scales_granule == 1u));  // scales may lie anywhere
  view.codes[1].bank = at<const void>(0x1002);
  check_words(params().status(), Code::invalid_argument, "codes must be aligned");
  view.codes[1].bank = nullptr;
  check_words(params().status(), Code::invalid_argument, "codes is null");
  view.num_parts = 1;
  check_words(params().status(), Code::invalid_argument,
              "a gate_up weight has 2 parts in a checkpoint, this one has 1");
}

BOOST_AUTO_TEST_CASE(strides_that_make_rows_overlap_are_refused) {
  Shape down{4096, 640, 3, 3, 0, 8, DType::f16, Projection::down, Activation::none};
  CheckpointView view;
  view.format = CheckpointFormat::modelopt;
  view.codes[0] = {at<const void>(0x1000), 4096 * 320, nullptr, nullptr};
  view.scales[0] = {at<const void>(0x2000), 4096 * 40, nullptr, nullptr};
  uint64_t refusal = 0;
  const auto params = [&] { return repack_params(view, down, at<void>(0x3000), &refusal); };
  BOOST_TEST(params().ok());
  view.codes_row_bytes = 304;
  check_words(params().status(), Code::invalid_argument, "codes_row_bytes is 304, and a row has 320 bytes");
  view.codes_row_bytes = 3 * 320;  // experts interleaved row by row
  view.codes[0].expert_bytes = 320;
  BOOST_TEST(params().ok());
  view.scales[0].expert_bytes = 0;  // forgotten: every expert would get the first one's scales
  check_words(params().status(), Code::invalid_argument, "scales.expert_bytes is 0, and a row has 40 bytes");
  down.experts = down.local_experts = 1;
  BOOST_TEST(params().ok());
}

BOOST_AUTO_TEST_CASE(every_pointer_of_a_table_is_checked) {
  Shape down{4096, 640, 3, 3, 0, 8, DType::f16, Projection::down, Activation::none};
  const void* pointers[3] = {at<const void>(0x1000), at<const void>(0x2004), at<const void>(0x3000)};
  CheckpointView view;
  view.codes[0].table = pointers;  // on the device in earnest
  view.codes[0].host_table = pointers;
  uint64_t refusal = 0;
  Result<RepackParams> params = repack_params(view, down, at<void>(0x4000), &refusal);
  BOOST_REQUIRE_MESSAGE(params.ok(), message(params.status()));
  BOOST_TEST(params->codes_granule == 4u);
  pointers[2] = at<const void>(0x3001);
  BOOST_TEST(!repack_params(view, down, at<void>(0x4000), &refusal).ok());
  view.codes[0].host_table = nullptr;
  check_words(repack_params(view, down, at<void>(0x4000), &refusal).status(), Code::invalid_argument,
              "on one side only");
}

// Its name is not one of a kernel, so whoever asks for it learns that there is none.
BOOST_AUTO_TEST_CASE(weights_read_in_place_have_no_repack) {
  const AuxiliarySource source = repack_source(CheckpointFormat::block36, {CodeWord::block36, KOrder::natural});
  check_words(find_auxiliary({}, source.name).status(), Code::not_found, "is not compiled in");
  check_words(jit::compile_auxiliary(source, Arch{90}).status(), Code::invalid_argument, "are not repacked");
}

BOOST_AUTO_TEST_CASE(global_scales_are_turned_into_factors) {
  const float stored[3] = {0.5f, 2.0f, 0.0f};
  float factors[3] = {};
  BOOST_TEST(global_scale_factors(GlobalScale::reciprocal, stored, 2, factors).ok());
  BOOST_TEST((factors[0] == 2.0f && factors[1] == 0.5f));
  check_words(global_scale_factors(GlobalScale::factor, stored, 3, factors), Code::invalid_argument,
              "global_scales[2]: the global scale is zero");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(host_routing)

BOOST_AUTO_TEST_CASE(routing_calls_are_checked) {
  RoutingPlan plan;
  plan.max_tokens = 4096;
  plan.top_k = 8;
  plan.experts = plan.local_experts = 288;
  BOOST_TEST(plan.workspace_bytes() > 0u);
  RoutingBuffers buffers;
  buffers.num_tokens = 512;
  buffers.ids = at<const int32_t>(0x1000);
  buffers.offsets = at<int32_t>(0x2000);
  buffers.pair_ids = at<int32_t>(0x3000);
  BOOST_TEST(routing_rules::check_buffers(plan, buffers).ok());  // a small batch needs no workspace
  buffers.num_tokens = 4096;
  check_words(routing_rules::check_buffers(plan, buffers), Code::invalid_argument, "the workspace has 0 bytes");
  buffers.num_tokens = 4097;
  check_words(routing_rules::check_buffers(plan, buffers), Code::invalid_argument, "at most 4096");
  buffers.num_tokens = 512;
  buffers.ids_row_stride = 7;
  check_words(routing_rules::check_buffers(plan, buffers), Code::invalid_argument, "shorter than top_k");
  buffers.ids_row_stride = 0;
  buffers.wide_ids = at<const int64_t>(0x5000);
  check_words(routing_rules::check_buffers(plan, buffers), Code::invalid_argument, "ids and wide_ids are both given");
  buffers.ids = nullptr;
  BOOST_TEST(routing_rules::check_buffers(plan, buffers).ok());
  buffers.wide_ids = at<const int64_t>(0x5004);
  check_words(routing_rules::check_buffers(plan, buffers), Code::invalid_argument, "must be a multiple of 8 bytes");
  buffers.wide_ids = nullptr;
  buffers.ids = at<const int32_t>(0x1000);
  buffers.lists[0].token_tiles = at<TokenTile>(0x4000);
  buffers.lists[0].tile_m = 32;
  check_words(routing_rules::check_buffers(plan, buffers), Code::invalid_argument, "lists.num_token_tiles is null");
}

BOOST_AUTO_TEST_SUITE_END()
