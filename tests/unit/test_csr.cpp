// The host reference of the CSR, the cutting of rows into token tiles, and the sizes that launches depend on.
//
// Run by ctest as unit.csr; needs no GPU.
#include <boost/test/unit_test.hpp>

#include <fulcrum/core/csr.h>

#include <algorithm>
#include <string>

#include "harness/csr.hpp"
#include "harness/routing.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;
using boost::test_tools::per_element;

namespace {

using Ids = std::vector<int32_t>;

Routing by_hand(uint32_t experts, uint32_t top_k, Ids ids) {
  const auto tokens = static_cast<uint32_t>(ids.size() / top_k);
  return {experts, top_k, tokens, std::move(ids), {}, "by hand"};
}

CsrParams sizes(uint32_t max_tokens, uint32_t top_k, uint32_t experts, uint32_t first, uint32_t local) {
  CsrParams params;
  params.max_tokens = max_tokens;
  params.top_k = top_k;
  params.ids_row_stride = top_k;
  params.experts = experts;
  params.first_expert = first;
  params.local_experts = local;
  return params;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(csr)

BOOST_AUTO_TEST_CASE(rows_are_stable_and_duplicates_count_twice) {
  const Csr csr = build_csr(by_hand(3, 2, {2, 0, 0, 0, 2, 1}), {0, 3});
  BOOST_TEST(csr.offsets == (Ids{0, 3, 4, 6}), per_element());
  BOOST_TEST(csr.pair_ids == (Ids{1, 2, 3, 5, 0, 4}), per_element());
}

BOOST_AUTO_TEST_CASE(none_and_remote_ids_are_skipped) {
  const Routing routing = by_hand(8, 2, {-1, 3, 4, 2, 7, 5, -1, -1});
  const Csr csr = build_csr(routing, {3, 3});
  BOOST_TEST(csr.offsets == (Ids{0, 1, 2, 3}), per_element());
  BOOST_TEST(csr.pair_ids == (Ids{1, 2, 5}), per_element());
  const Csr empty = build_csr(routing, {6, 1});
  BOOST_TEST(empty.offsets == (Ids{0, 0}), per_element());
  BOOST_TEST(empty.pair_ids.empty());
}

BOOST_AUTO_TEST_CASE(experts_without_rows_have_no_tile) {
  const Csr csr = build_csr(by_hand(5, 1, {3, 1, 3}), {0, 5});
  BOOST_TEST(csr.offsets == (Ids{0, 0, 1, 1, 3, 3}), per_element());
  const std::vector<TokenTile> tiles = cut_token_tiles(csr, 8, TileOrder::expert);
  BOOST_REQUIRE_EQUAL(tiles.size(), 2u);
  BOOST_TEST(tiles[0].expert == 1);
  BOOST_TEST(tiles[1].expert == 3);
  BOOST_TEST(tiles[1].row_begin == 1);
  BOOST_TEST(tiles[1].num_rows == 2);
  BOOST_TEST(cut_token_tiles(build_csr(by_hand(5, 1, {}), {0, 5}), 8, TileOrder::longest).empty());
}

BOOST_AUTO_TEST_CASE(tiles_cover_and_are_nearly_equal) {
  for (uint32_t tile_m = 8; tile_m <= csr_max_tile_m; tile_m += 8) {
    for (uint32_t rows = 1; rows <= 1100; rows += rows < 600 ? 1 : 37) {
      const uint32_t tiles = num_expert_tiles(rows, tile_m);
      uint32_t least = UINT32_MAX, most = 0;
      for (uint32_t index = 0; index < tiles; ++index) {
        const uint32_t begin = expert_tile_begin(rows, tiles, index);
        const uint32_t length = expert_tile_begin(rows, tiles, index + 1) - begin;
        if (begin % csr_granule != 0 || (index + 1 < tiles && length % csr_granule != 0)) BOOST_ERROR("ragged inside");
        least = std::min(least, length);
        most = std::max(most, length);
      }
      BOOST_REQUIRE_EQUAL(expert_tile_begin(rows, tiles, 0), 0u);
      BOOST_REQUIRE_EQUAL(expert_tile_begin(rows, tiles, tiles), rows);
      BOOST_REQUIRE(least > 0 && most <= tile_m && most - least <= csr_granule);
    }
  }
}

BOOST_AUTO_TEST_CASE(longest_first_is_stable) {
  // Expert 0 has 9 rows (two tiles), 1 has 3, 2 has 16, 3 has 8.
  Ids ids;
  for (const auto& [expert, rows] : {std::pair{0, 9}, {1, 3}, {2, 16}, {3, 8}}) ids.insert(ids.end(), rows, expert);
  const Csr csr = build_csr(by_hand(4, 1, ids), {0, 4});
  Ids order;
  for (const TokenTile& tile : cut_token_tiles(csr, 16, TileOrder::longest)) order.push_back(tile.expert);
  BOOST_TEST(order == (Ids{0, 2, 1, 3}), per_element());  // 2 granules, 2 granules, 1, 1
}

BOOST_AUTO_TEST_CASE(bound_on_tiles_holds) {
  const Routing routing = make_routing(parse_routing_spec("receipt"), {512, 288, 8});
  const Csr csr = build_csr(routing, {0, 288});
  for (const uint32_t tile_m : {8u, 16u, 64u, 256u}) {
    BOOST_TEST(cut_token_tiles(csr, tile_m, TileOrder::expert).size() <= max_token_tiles(4096, 288, tile_m));
  }
  BOOST_TEST(max_token_tiles(3, 288, 8) == 3u);
}

BOOST_AUTO_TEST_CASE(bad_pairs_are_found_at_both_bounds) {
  BOOST_TEST(first_bad_pair({0, -1, 7}, 8) == -1);
  BOOST_TEST(first_bad_pair({0, -1, 8, -2}, 8) == 2);
  BOOST_TEST(first_bad_pair({0, -2, 8}, 8) == 1);
}

BOOST_AUTO_TEST_CASE(launches_of_any_size) {
  BOOST_TEST(csr_path(0).num_steps == 1u);
  BOOST_TEST(csr_path(4096).num_steps == 1u);
  BOOST_TEST(csr_path(4097).num_steps == 4u);
  BOOST_TEST(csr_workspace_bytes(640, 256) == 0u);
  // 131,072 tokens, top 32, 1,024 experts: 1,024 chunks.
  const CsrParams large = sizes(131072, 32, 1024, 0, 1024);
  BOOST_TEST(illegal_csr(large) == nullptr);
  BOOST_TEST(csr_blocks(CsrStep::count, large) == 1024u);
  BOOST_TEST(csr_blocks(CsrStep::columns, large) == 32u);
  BOOST_TEST(csr_blocks(CsrStep::tiles, large) == 1u);
  BOOST_TEST(csr_workspace_bytes(uint64_t{131072} * 32, 1024) == uint64_t{1025} * 1024 * 4);
  // Past 32 bits: sizes must not wrap.
  BOOST_TEST(csr_workspace_bytes(uint64_t{1} << 40, 1024) == ((uint64_t{1} << 28) + 1) * 4096);
  BOOST_TEST(max_token_tiles(uint64_t{1} << 40, 1024, 8) == (uint64_t{1} << 37) + 1024);
}

BOOST_AUTO_TEST_CASE(sizes_that_cannot_be_sorted_are_refused) {
  const auto reason = [](const CsrParams& params) {
    return std::string(illegal_csr(params) ? illegal_csr(params) : "");
  };
  BOOST_TEST(reason(sizes(16, 8, 288, 0, 288)) == "");
  BOOST_TEST(reason(sizes(0, 1, 1, 0, 1)) == "");
  BOOST_TEST(reason(sizes(16, 0, 288, 0, 288)).find("top_k") != std::string::npos);
  BOOST_TEST(reason(sizes(16, 8, 2048, 0, 1025)).find("1 to 1,024") != std::string::npos);
  BOOST_TEST(reason(sizes(16, 8, 288, 1, 288)).find("within") != std::string::npos);
  BOOST_TEST(reason(sizes(1u << 28, 8, 288, 0, 288)).find("2^31") != std::string::npos);
  CsrParams params = sizes(16, 8, 288, 0, 288);
  params.ids_row_stride = 7;
  BOOST_TEST(reason(params).find("stride") != std::string::npos);
  params.ids_row_stride = 8;
  TokenTile tile{};
  params.lists[1].token_tiles = &tile;
  for (const uint32_t tile_m : {0u, 12u, 520u}) {
    params.lists[1].tile_m = tile_m;
    BOOST_TEST(reason(params).find("multiple of 8") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
