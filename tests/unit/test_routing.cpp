// The built-in routings, their statistics and the text form of a routing.
// Expected figures are those of the reference workloads, to the printed digit.
//
// Run by ctest as unit.routing; needs no GPU.
#include <boost/test/unit_test.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/draw.hpp"
#include "harness/input_error.hpp"
#include "harness/receipt.hpp"
#include "harness/routing.hpp"
#include "harness/routing_stats.hpp"
#include "harness/workload.hpp"

using namespace fulcrum::harness;

namespace {

Routing make(const char* spec, uint32_t tokens, uint32_t experts, uint32_t top_k) {
  return make_routing(parse_routing_spec(spec), {tokens, experts, top_k});
}

void check_distinct(const Routing& routing) {
  for (size_t begin = 0; begin < routing.ids.size(); begin += routing.top_k) {
    const std::set<int32_t> ids(&routing.ids[begin], &routing.ids[begin] + routing.top_k);
    BOOST_REQUIRE_EQUAL(ids.size(), routing.top_k);
    BOOST_REQUIRE(*ids.begin() >= 0 && *ids.rbegin() < static_cast<int32_t>(routing.experts));
  }
}

std::string error_of(const char* spec) {
  try {
    parse_routing_spec(spec);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(routing)

BOOST_AUTO_TEST_CASE(probe_gives_the_padding_table) {
  const struct {
    uint32_t tokens;
    const char* row;
  } table[] = {
      {512, "4096 288 56 14.22 4 1.268 1.465 2.289 4.500 9.000 18.000"},
      {2048, "16384 288 265 56.89 27 1.060 1.139 1.281 1.398 2.297 4.516"},
      {4096, "32768 288 494 113.78 61 1.029 1.069 1.136 1.283 1.391 2.297"},
  };
  for (const auto& [tokens, expected] : table) {
    const RoutingStats stats = routing_stats(make("probe", tokens, 288, 8));
    std::string row =
        fmt::format("{} {} {} {:.2f} {}", stats.pairs, stats.active, stats.max_m, stats.mean_m, stats.min_m);
    for (const uint32_t step : padding_granularities) row += fmt::format(" {:.3f}", padding(stats, step));
    BOOST_TEST(row == expected);
  }
}

BOOST_AUTO_TEST_CASE(decode_gives_its_table) {
  const uint32_t expected[5][3] = {{16, 80, 80}, {32, 160, 160}, {64, 320, 256}, {80, 400, 256}, {128, 640, 256}};
  const Workload& workload = *find_workload("decode");
  for (size_t i = 0; i < 5; ++i) {
    const Routing routing = make("decode", workload.cases[i].tokens, workload.experts, workload.top_k);
    check_distinct(routing);
    const RoutingStats stats = routing_stats(routing, workload.local);
    BOOST_TEST(routing.tokens == expected[i][0]);
    BOOST_TEST(stats.local_pairs == expected[i][1]);
    BOOST_TEST(stats.active == expected[i][2]);
    BOOST_TEST(routing_stats(routing, {256, 256}).local_pairs == expected[i][1]);  // the other rank
  }
}

BOOST_AUTO_TEST_CASE(decode_follows_its_formula) {
  const Routing routing = make("decode", 128, 512, 10);
  for (uint32_t token = 0; token < 128; ++token) {
    for (uint32_t choice = 0; choice < 10; ++choice) {
      const uint32_t expected = 256 * (choice % 2) + (5 * token + choice / 2) % 256;
      BOOST_REQUIRE_EQUAL(routing.ids[token * 10 + choice], static_cast<int32_t>(expected));
    }
  }
  for (const auto& [experts, top_k] : {std::pair{1u, 1u}, {3u, 3u}, {7u, 5u}, {7u, 7u}, {8u, 8u}}) {
    check_distinct(make("decode", 50, experts, top_k));
  }
}

BOOST_AUTO_TEST_CASE(receipt_matches_the_production_batch) {
  const Routing routing = make("receipt", 4096, 288, 8);
  const RoutingStats stats = routing_stats(routing);
  BOOST_TEST(stats.active == 284u);
  BOOST_TEST(stats.max_m >= 924u);
  BOOST_TEST(stats.max_m <= 944u);
  check_distinct(routing);
  BOOST_TEST(routing_hash(routing) == routing_hash(make("receipt", 4096, 288, 8)));
}

BOOST_AUTO_TEST_CASE(receipt_curve_solves_its_equation) {
  double sum = 0;
  for (int rank = 0; rank < 284; ++rank) sum += std::exp(-receipt_decay * std::pow(rank / 283.0, receipt_bend));
  BOOST_CHECK_CLOSE(sum, 32768.0 / 934.0, 1e-3);
  BOOST_CHECK_CLOSE(std::exp(-receipt_decay), 1.5 / 934.0, 1e-3);
}

BOOST_AUTO_TEST_CASE(receipt_keeps_its_curve_at_other_token_counts) {
  const RoutingStats full = routing_stats(make("receipt", 4096, 288, 8));
  for (const uint32_t tokens : {1u, 16u, 100u, 512u, 2048u, 8192u}) {
    const Routing routing = make("receipt", tokens, 288, 8);
    check_distinct(routing);
    const RoutingStats stats = routing_stats(routing);
    for (size_t e = 0; e < 288; ++e) {
      // Both are rounded shares of the same curve: within one row each.
      const double share = static_cast<double>(full.rows[e]) * tokens / 4096;
      BOOST_REQUIRE_SMALL(static_cast<double>(stats.rows[e]) - share, 1.0 + 1.0 * std::max(1.0, tokens / 4096.0));
    }
  }
}

BOOST_AUTO_TEST_CASE(receipt_and_uniform_generalize) {
  const uint32_t sizes[][3] = {{5, 1, 1},     {64, 8, 8},     {64, 8, 2},   {100, 32, 32}, {33, 40, 32},
                               {7, 1024, 32}, {300, 512, 10}, {128, 60, 4}, {0, 288, 8}};
  for (const auto& [tokens, experts, top_k] : sizes) {
    check_distinct(make("receipt", tokens, experts, top_k));
    check_distinct(make("uniform:seed=3", tokens, experts, top_k));
  }
}

BOOST_AUTO_TEST_CASE(uniform_is_uniform_and_seeded) {
  const Routing routing = make("uniform:seed=1", 20000, 16, 4);
  // Each expert is in a token's set with probability 1/4: 5000 rows, standard deviation 61.
  for (const uint64_t rows : routing_stats(routing).rows)
    BOOST_TEST(std::abs(static_cast<double>(rows) - 5000) < 5 * 61);
  BOOST_TEST(routing_hash(routing) == routing_hash(make("uniform:seed=1", 20000, 16, 4)));
  BOOST_TEST(routing_hash(routing) != routing_hash(make("uniform:seed=2", 20000, 16, 4)));
}

BOOST_AUTO_TEST_CASE(one_hot_names_the_same_experts) {
  const Routing routing = make("one_hot:expert=6", 9, 8, 3);
  for (size_t pair = 0; pair < routing.ids.size(); pair += 3) {
    BOOST_TEST(routing.ids[pair] == 6);
    BOOST_TEST(routing.ids[pair + 1] == 7);
    BOOST_TEST(routing.ids[pair + 2] == 0);
  }
  BOOST_TEST(routing_stats(routing).max_m == 9u);
}

BOOST_AUTO_TEST_CASE(weights_sum_to_one_and_fall) {
  const Routing routing = make("receipt", 64, 288, 8);
  for (size_t begin = 0; begin < routing.weights.size(); begin += 8) {
    float sum = 0;
    for (size_t c = 0; c < 8; ++c) {
      BOOST_TEST(routing.weights[begin + c] > 0.0f);
      if (c > 0) BOOST_TEST(routing.weights[begin + c] <= routing.weights[begin + c - 1]);
      sum += routing.weights[begin + c];
    }
    BOOST_CHECK_CLOSE(sum, 1.0f, 1e-3f);
  }
}

BOOST_AUTO_TEST_CASE(apportion_is_exact_and_capped) {
  const std::vector<uint64_t> weights{1000, 1, 1, 1, 0, 1};
  const std::vector<uint64_t> lengths = apportion(weights, 3, 100);
  BOOST_TEST(lengths == (std::vector<uint64_t>{100, 50, 50, 50, 0, 50}), boost::test_tools::per_element());
  BOOST_TEST(apportion(weights, 6, 100).empty());  // five experts cannot give six choices
  const std::vector<uint64_t> all = apportion(weights, 5, 7);
  BOOST_TEST(all == (std::vector<uint64_t>{7, 7, 7, 7, 0, 7}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(statistics_of_odd_routings) {
  Routing routing{4, 2, 3, {-1, 3, 3, 3, 0, -1}, {}, "by hand"};
  const RoutingStats all = routing_stats(routing);
  BOOST_TEST(all.pairs == 6u);
  BOOST_TEST(all.local_pairs == 4u);
  BOOST_TEST(all.active == 2u);
  BOOST_TEST(all.max_m == 3u);
  BOOST_TEST(all.min_m == 1u);
  BOOST_TEST(all.mean_m == 2.0);
  BOOST_TEST(all.skew == 3.0);
  BOOST_TEST(padding(all, 8) == 4.0);
  BOOST_TEST(rows_histogram(all) == (std::vector<uint32_t>{2, 1, 0, 1}), boost::test_tools::per_element());
  const RoutingStats remote = routing_stats(routing, {1, 2});
  BOOST_TEST(remote.local_pairs == 0u);
  BOOST_TEST(remote.active == 0u);
  BOOST_TEST(padding(remote, 8) == 1.0);
}

BOOST_AUTO_TEST_CASE(hash_sees_sizes_ids_and_order) {
  const Routing routing = make("uniform", 16, 32, 4);
  Routing other = routing;
  other.experts = 33;
  BOOST_TEST(routing_hash(other) != routing_hash(routing));
  other = routing;
  std::swap(other.ids[0], other.ids[1]);
  BOOST_TEST(routing_hash(other) != routing_hash(routing));
  other = routing;
  other.weights[0] = 0;
  BOOST_TEST(routing_hash(other) == routing_hash(routing));
}

BOOST_AUTO_TEST_CASE(batches_differ_by_seed_alone) {
  const std::vector<Routing> batches = make_routings(parse_routing_spec("uniform:seed=5"), {10, 16, 2}, 3);
  BOOST_TEST(batches.size() == 3u);
  BOOST_TEST(routing_hash(batches[2]) == routing_hash(make("uniform:seed=7", 10, 16, 2)));
  BOOST_TEST(batches[2].name == "uniform:seed=7");
}

BOOST_AUTO_TEST_CASE(permuted_tokens_keep_their_choices) {
  const Routing routing = make("uniform", 3, 16, 2);
  const Routing permuted = permute_tokens(routing, {2, 0, 1});
  BOOST_TEST(permuted.ids[0] == routing.ids[4]);
  BOOST_TEST(permuted.ids[5] == routing.ids[3]);
  BOOST_TEST(permuted.weights[1] == routing.weights[5]);
}

BOOST_AUTO_TEST_CASE(specs_have_a_canonical_text) {
  for (const char* text : {"probe", "receipt", "receipt:seed=4", "decode", "uniform:seed=18446744073709551615",
                           "one_hot:expert=2", "trace:a/b.csv", "trace:c:d.csv:layer=0:seed=9:runs=16"}) {
    BOOST_TEST(spec_text(parse_routing_spec(text)) == text);
  }
  const RoutingSpec spec = parse_routing_spec("trace:x:y=1.csv:runs=2:layer=7");
  BOOST_TEST(spec.path == "x:y=1.csv");
  BOOST_TEST(spec.layer.value() == 7u);
  BOOST_TEST(spec.runs == 2u);
}

BOOST_AUTO_TEST_CASE(batches_have_a_largest_size) {
  const RoutingSpec spec = parse_routing_spec("uniform");
  BOOST_TEST(make_routing(spec, {most_tokens, 8, 2}).tokens == 131072u);
  for (const uint32_t tokens : {most_tokens + 1, UINT32_MAX}) {
    BOOST_CHECK_EXCEPTION(make_routing(spec, {tokens, 8, 2}), InputError, [&](const InputError& error) {
      return std::string(error.what()) ==
             std::to_string(tokens) + " tokens are more than the 131072 a batch can have; split the batch";
    });
  }
}

BOOST_AUTO_TEST_CASE(bad_specs_say_what_is_wrong) {
  BOOST_TEST(error_of("zipf").find("'zipf' is not one of probe, receipt") != std::string::npos);
  BOOST_TEST(error_of("probe:seed=1").find("no option 'seed=1'") != std::string::npos);
  BOOST_TEST(error_of("uniform:seed=x").find("seed=x") != std::string::npos);
  BOOST_TEST(error_of("uniform:seed=-1").find("seed=-1") != std::string::npos);
  BOOST_TEST(error_of("trace").find("needs a file") != std::string::npos);
  BOOST_TEST(error_of("trace:f:runs=0").find("runs=0") != std::string::npos);
  BOOST_TEST(error_of("probe:").find("no option") != std::string::npos);
  BOOST_CHECK_THROW(make("uniform", 4, 4, 5), InputError);
  BOOST_CHECK_THROW(make("uniform", 4, 64, 33), InputError);
  BOOST_CHECK_THROW(make("uniform", 4, 64, 0), InputError);
  BOOST_CHECK_THROW(make("one_hot:expert=4", 4, 4, 1), InputError);
}

BOOST_AUTO_TEST_SUITE_END()
