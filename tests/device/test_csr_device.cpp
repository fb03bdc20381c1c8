// The CSR kernels against the host reference: every word equal, and nothing written besides, on routings of all kinds.
//
// Built twice: ctest runs device.csr_device on a GPU, and smaller batches on the CPU as emulator.csr_device.
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>

#include "harness/csr_device.hpp"
#include "harness/random.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

bool same_tiles(const std::vector<TokenTile>& a, const std::vector<TokenTile>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(TokenTile)) == 0);
}

void compare(const Routing& routing, DeviceCsrRequest request) {
  request.max_tokens = std::max(request.max_tokens, routing.tokens);
  request.ids_row_stride = std::max(request.ids_row_stride, routing.top_k);
  BOOST_TEST_CONTEXT(routing.name << " tokens " << routing.tokens << " max " << request.max_tokens << " experts "
                                  << routing.experts << " top_k " << routing.top_k << " local " << request.range.first
                                  << "+" << request.range.count << " tile_m " << request.cuts[0].tile_m << " and "
                                  << request.cuts[1].tile_m) {
    const DeviceCsr device = build_csr_on_device(routing, request);
    const Csr host = build_csr(routing, request.range);
    BOOST_TEST((device.csr.offsets == host.offsets));
    BOOST_TEST((device.csr.pair_ids == host.pair_ids));
    for (size_t list = 0; list < 2; ++list) {
      const TileCut& cut = request.cuts[list];
      if (cut.tile_m == 0) continue;
      BOOST_TEST(same_tiles(device.token_tiles[list], cut_token_tiles(host, cut.tile_m, cut.order)));
    }
    const int64_t bad = first_bad_pair(routing.ids, routing.experts);
    BOOST_TEST(device.first_bad_pair == (bad < 0 ? csr_no_bad_pair : static_cast<uint32_t>(bad)));
    BOOST_TEST(device.tails_untouched);
  }
}

constexpr std::array<TileCut, 2> both_orders(uint32_t tile_m, uint32_t other_tile_m) {
  return {TileCut{tile_m, TileOrder::longest}, TileCut{other_tile_m, TileOrder::expert}};
}

// Any size and skew, with missing, repeated and sometimes impossible ids.
Routing random_routing(Random& random) {
  Routing routing;
  routing.name = "random";
  routing.top_k = 1 + static_cast<uint32_t>(random.below(32));
  routing.experts = 1 + static_cast<uint32_t>(random.below(1500));
  routing.tokens = static_cast<uint32_t>(random.below(random.below(4) == 0 ? 2000 : 200));
  const uint64_t popular = 1 + random.below(routing.experts);
  const bool impossible = random.below(4) == 0;
  for (uint64_t pair = 0; pair < routing.num_pairs(); ++pair) {
    const uint64_t kind = random.below(100);
    int32_t id = static_cast<int32_t>(random.below(kind < 70 ? popular : routing.experts));
    if (kind >= 95) id = -1;
    if (impossible && random.below(1000) == 0) id = random.below(2) == 0 ? -2 : static_cast<int32_t>(routing.experts);
    routing.ids.push_back(id);
  }
  return routing;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(csr_device, *boost::unit_test::precondition(needs_gpu))

BOOST_AUTO_TEST_CASE(reference_workloads) {
  for (const uint32_t tokens : {16u, 32u, 64u, 80u, 128u}) {
    const Routing routing = make_routing(parse_routing_spec("decode"), {tokens, 512, 10});
    compare(routing, {{0, 256}, both_orders(8, 32), 128, 0});
    compare(routing, {{256, 256}, both_orders(16, 64), 0, 0});
  }
  // 768 tokens are the fewest hundreds that take more than one chunk of pairs
  const std::vector<uint32_t> prefill = on_emulator ? std::vector{512u, 768u} : std::vector{512u, 2048u, 4096u};
  for (const char* spec : {"probe", "receipt"}) {
    for (const uint32_t tokens : prefill) {
      const Routing routing = make_routing(parse_routing_spec(spec), {tokens, 288, 8});
      compare(routing, {{0, 288}, both_orders(128, 32), 0, 0});
      compare(routing, {{144, 144}, both_orders(256, 8), 4096, 0});
    }
  }
}

BOOST_AUTO_TEST_CASE(random_routings) {
  Random random(20261130);
  for (int i = 0; i < (on_emulator ? 40 : 300); ++i) {
    const Routing routing = random_routing(random);
    DeviceCsrRequest request;
    request.range.count = 1 + static_cast<uint32_t>(random.below(std::min(routing.experts, csr_max_experts)));
    request.range.first = static_cast<uint32_t>(random.below(routing.experts - request.range.count + 1));
    for (TileCut& cut : request.cuts) {
      cut.tile_m = 8 * static_cast<uint32_t>(random.below(65));  // 0: no list
      cut.order = random.below(2) == 0 ? TileOrder::expert : TileOrder::longest;
    }
    request.max_tokens = routing.tokens + static_cast<uint32_t>(random.below(3) * random.below(3000));
    request.ids_row_stride = routing.top_k + static_cast<uint32_t>(random.below(3));
    request.wide_ids = i % 3 == 0;
    compare(routing, request);
  }
}

BOOST_AUTO_TEST_CASE(nothing_to_do) {
  const Routing none = make_routing(parse_routing_spec("uniform"), {0, 64, 4});
  compare(none, {{0, 64}, both_orders(64, 8), 0, 0});
  compare(none, {{0, 64}, both_orders(64, 8), 100000, 0});
  const Routing remote = make_routing(parse_routing_spec("one_hot"), {3000, 64, 4});
  compare(remote, {{4, 60}, both_orders(64, 8), 0, 0});
}

BOOST_AUTO_TEST_CASE(one_expert_with_every_row) {
  for (const uint32_t tokens : on_emulator ? std::vector{1u, 500u} : std::vector{1u, 1000u, 5000u}) {
    compare(make_routing(parse_routing_spec("one_hot"), {tokens, 1, 1}), {{0, 1}, both_orders(8, 512), 0, 0});
    compare(make_routing(parse_routing_spec("one_hot:expert=1023"), {tokens, 1024, 1}),
            {{0, 1024}, both_orders(16, 128), 0, 0});
  }
}

BOOST_AUTO_TEST_CASE(largest_sizes, *boost::unit_test::precondition(not_emulated)) {
  const Routing routing = make_routing(parse_routing_spec("uniform"), {131072, 1024, 32});
  compare(routing, {{0, 1024}, both_orders(256, 128), 0, 0});
  compare(routing, {{512, 512}, both_orders(8, 8), 0, 0});
}

BOOST_AUTO_TEST_SUITE_END()
