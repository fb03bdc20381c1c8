// The oracle on the CPU: rounding, exactness of the exact data, and bounds that a plain f32 kernel keeps and a wrong
// one breaks.
//
// Run by ctest as unit.oracle; needs no GPU.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "harness/cases.hpp"
#include "harness/oracle.hpp"
#include "harness/random.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

constexpr DType both_types[] = {DType::f16, DType::bf16};
constexpr KernelKind plain_f16{DType::f16, false, Activation::none};
constexpr KernelKind gate_up_bf16{DType::bf16, true, Activation::none};
constexpr KernelKind silu_f16{DType::f16, true, Activation::silu};

std::vector<OracleRow> some_rows(const Problem& problem) {
  return sample_rows(problem, build_csr(problem.routing, problem.local()), 12);
}

// One dot product in f32 as a simple kernel would take it: k steps of 16, each summed on its own, cut instead of
// rounded.
float f32_dot(const HostProblem& host, const OracleRow& at, uint32_t part, uint32_t row) {
  const uint32_t k = host.problem.shape.k;
  const uint64_t stride = tokens_stride_bytes(host.problem);
  float sum = 0;
  for (uint32_t begin = 0; begin < k; begin += 16) {
    double step = sum;
    for (uint32_t column = begin; column < begin + 16; ++column) {
      const uint8_t* bytes = &host.tokens[at.input_row * stride + column * 2];
      const float token = value_of(host.problem.shape.dtype, static_cast<uint16_t>(bytes[0] | bytes[1] << 8));
      step += weight_value(host.checkpoint, at.expert, part, row, column) * token;
    }
    sum = static_cast<float>(step);
    if (std::fabs(static_cast<double>(sum)) > std::fabs(step)) sum = std::nextafter(sum, 0.0f);
  }
  return sum;
}

// The whole output in f32, factors in the order of the epilogue.
float f32_value(const HostProblem& host, const OracleRow& at, uint32_t column) {
  const bool gate_up = host.problem.shape.projection == Projection::gate_up;
  const uint32_t parts = gate_up ? 2 : 1, rows = part_rows(host.checkpoint.recipe);
  float v[2] = {};
  for (uint32_t part = 0; part < parts; ++part) {
    v[part] = f32_dot(host, at, part, column) * host.factors.global_scales[at.expert * parts + part];
    if (host.problem.row_scales) v[part] *= host.factors.row_scales[at.input_row];
    if (host.problem.bias) v[part] += host.factors.bias[(uint64_t{at.expert} * parts + part) * rows + column];
  }
  if (host.problem.shape.activation == Activation::silu) v[0] = v[0] / (1.0f + std::exp(-v[0]));
  float value = gate_up ? v[0] * v[1] : v[0];
  if (host.problem.pair_weights) value *= host.factors.pair_weights[at.pair];
  return value;
}

// Calls visit(host, row, column, value of the oracle) for sampled outputs of every small problem of a kind.
template <class Visit>
void for_each_value(const KernelKind& kind, Data data, const Visit& visit) {
  for (const Problem& problem : small_problems(kind, 8)) {
    const HostProblem host(problem, data);
    const OracleInput input = host.input();
    for (const OracleRow& row : some_rows(problem))
      for (uint32_t column = 0; column < out_columns(problem.shape); column += 7)
        visit(host, row, column, oracle_value(input, row, column));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(oracle)

BOOST_AUTO_TEST_CASE(values_of_all_patterns_round_to_themselves) {
  for (const DType dtype : both_types) {
    const uint32_t infinity = dtype == DType::f16 ? 0x7C00 : 0x7F80;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      if ((bits & 0x7FFF) >= infinity) continue;
      BOOST_REQUIRE_EQUAL(round_to(dtype, value_of(dtype, static_cast<uint16_t>(bits))), bits);
    }
  }
}

BOOST_AUTO_TEST_CASE(rounding_takes_the_nearest_and_ties_to_even) {
  for (const DType dtype : both_types) {
    const uint32_t largest = dtype == DType::f16 ? max_f16_bits : max_bf16_bits;
    Random random(3);
    for (int i = 0; i < 20000; ++i) {
      // halfway between two neighbours, a f32 step to either side of it, and anything between
      const auto below = static_cast<uint16_t>(random.below(largest));
      const double low = value_of(dtype, below), high = value_of(dtype, static_cast<uint16_t>(below + 1));
      const auto half = static_cast<float>((low + high) / 2);
      BOOST_REQUIRE_EQUAL(round_to(dtype, half), below + below % 2);
      BOOST_REQUIRE_EQUAL(round_to(dtype, std::nextafter(half, 0.0f)), below);
      BOOST_REQUIRE_EQUAL(round_to(dtype, -std::nextafter(half, std::numeric_limits<float>::max())),
                          0x8000 | (below + 1));
    }
  }
}

BOOST_AUTO_TEST_CASE(finite_values_stay_finite_and_nan_stays_nan) {
  for (const DType dtype : both_types) {
    const uint32_t largest = dtype == DType::f16 ? max_f16_bits : max_bf16_bits;
    for (const float value : {std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()}) {
      BOOST_TEST(round_to(dtype, value) == largest);
      BOOST_TEST(round_to(dtype, -value) == (0x8000 | largest));
    }
    BOOST_TEST(std::isnan(value_of(dtype, round_to(dtype, std::nanf("")))));
  }
}

BOOST_AUTO_TEST_CASE(exact_data_gives_the_same_bits_in_f32) {
  for (const KernelKind& kind : {plain_f16, gate_up_bf16}) {
    for_each_value(kind, Data::exact,
                   [&](const HostProblem& host, const OracleRow& row, uint32_t column, OracleValue v) {
                     BOOST_REQUIRE_EQUAL(v.error, 0.0);
                     BOOST_REQUIRE_EQUAL(v.value, static_cast<double>(f32_value(host, row, column)));
                   });
  }
}

BOOST_AUTO_TEST_CASE(magnitudes_of_exact_data_stay_below_2_22_units) {
  constexpr double unit = 1.0 / 16;
  for (const uint32_t k : {64u, 8192u, 8208u, 16384u, 16400u, 1u << 20}) {
    double sum = 0;
    for (uint32_t column = 0; column < k; ++column) {
      double largest = 0;
      for (uint64_t bits = 0; bits < 10; ++bits)  // all residues of 2 and 5
        largest = std::max(largest, std::fabs(static_cast<double>(draw_exact_token(k, column, bits))));
      sum += largest * 6 * 1.875;
    }
    BOOST_TEST(sum < unit * (1 << 22), "k " << k << " reaches " << sum / unit << " units");
  }
}

BOOST_AUTO_TEST_CASE(f32_arithmetic_stays_within_the_bound_of_random_data) {
  for (const KernelKind& kind : {plain_f16, gate_up_bf16, silu_f16}) {
    for_each_value(kind, Data::random,
                   [&](const HostProblem& host, const OracleRow& row, uint32_t column, OracleValue v) {
                     const uint16_t bits = round_to(kind.dtype, f32_value(host, row, column));
                     BOOST_REQUIRE_MESSAGE(accepts(kind.dtype, expectation(kind.dtype, v), bits),
                                           host.problem.case_name << ": " << value_of(kind.dtype, bits) << " is not "
                                                                  << v.value << " +- " << v.error);
                   });
  }
}

BOOST_AUTO_TEST_CASE(silu_of_exact_sums_leaves_two_neighbours_at_most) {
  uint64_t wide = 0, all = 0;
  for_each_value(silu_f16, Data::exact,
                 [&](const HostProblem& host, const OracleRow& row, uint32_t column, OracleValue v) {
                   const Expectation bounds = expectation(DType::f16, v);
                   BOOST_REQUIRE(accepts(DType::f16, bounds, round_f16(f32_value(host, row, column))));
                   if ((bounds.low ^ bounds.high) != 0x8000) BOOST_REQUIRE_LE(std::abs(bounds.high - bounds.low), 1);
                   wide += bounds.low != bounds.high ? 1 : 0;
                   ++all;
                 });
  // 2^-20 of error beside 2^-11 of rounding: one value in a few hundred is near enough to a tie
  BOOST_TEST(wide * 50 < all, wide << " of " << all << " values have two answers");
}

// silu(-42) = -42 / (1 + e^42), where 1 - 1 / (1 + e^-42) is already 0 in f64.
BOOST_AUTO_TEST_CASE(silu_keeps_its_digits_far_below_zero) {
  for (const double x : {-42.0, -80.0}) {
    const OracleValue v = oracle_silu({x, 0});
    const long double right = x / (1 + std::exp(static_cast<long double>(-x)));
    BOOST_TEST(std::abs(v.value / double(right) - 1) < 1e-14);
  }
  BOOST_TEST(oracle_silu({-800, 0}).value == 0);
}

BOOST_AUTO_TEST_CASE(a_lost_column_breaks_the_bounds) {
  uint64_t caught = 0, all = 0;
  for (const Data data : {Data::exact, Data::random}) {
    for_each_value(plain_f16, data, [&](const HostProblem& host, const OracleRow& row, uint32_t column, OracleValue v) {
      HostProblem other = host;
      const uint64_t at = row.input_row * tokens_stride_bytes(host.problem);
      std::fill_n(other.tokens.begin() + static_cast<std::ptrdiff_t>(at), 32, uint8_t{0});  // the first 16 columns
      if (column % 5 != 0) return;           // the copy is what costs time
      if (host.problem.edge_scales) return;  // a scale of zero hides its columns
      const uint16_t bits = round_f16(f32_value(other, row, column));
      caught += accepts(DType::f16, expectation(DType::f16, v), bits) ? 0 : 1;
      ++all;
    });
  }
  BOOST_TEST(caught * 100 > all * 95, caught << " of " << all << " wrong values were caught");
}

BOOST_AUTO_TEST_CASE(answers_without_error_are_compared_as_bits) {
  const Expectation zero = expectation(DType::f16, {0.0, 0.0});
  BOOST_TEST(accepts(DType::f16, zero, 0x0000));
  BOOST_TEST(!accepts(DType::f16, zero, 0x8000));
  const Expectation around_zero = expectation(DType::f16, {0.0, 1e-30});
  BOOST_TEST(accepts(DType::f16, around_zero, 0x8000));
  BOOST_TEST(!accepts(DType::f16, around_zero, 0xFFFF));
  BOOST_TEST(!accepts(DType::f16, zero, 0x7FFF));
}

BOOST_AUTO_TEST_CASE(samples_hold_both_ends_of_every_expert) {
  const Problem problem = small_problems(plain_f16, 128).front();
  const Csr csr = build_csr(problem.routing, problem.local());
  const std::vector<OracleRow> rows = sample_rows(problem, csr, 40);
  BOOST_TEST(rows.size() == 40);
  std::set<uint32_t> pairs;
  for (const OracleRow& row : rows) pairs.insert(row.pair);
  BOOST_TEST(pairs.size() == rows.size());
  for (uint32_t expert = 0; expert < problem.shape.local_experts; ++expert) {
    const int32_t begin = csr.offsets[expert], end = csr.offsets[expert + 1];
    if (begin == end) continue;
    BOOST_TEST(pairs.count(static_cast<uint32_t>(csr.pair_ids[static_cast<size_t>(begin)])) == 1);
    BOOST_TEST(pairs.count(static_cast<uint32_t>(csr.pair_ids[static_cast<size_t>(end) - 1])) == 1);
  }
  BOOST_TEST(sample_rows(problem, csr, 1u << 20).size() == csr.pair_ids.size());
}

BOOST_AUTO_TEST_CASE(small_problems_have_the_rows_they_promise) {
  for (const Problem& problem : small_problems(gate_up_bf16, 16)) {
    const Csr csr = build_csr(problem.routing, problem.local());
    std::vector<int32_t> rows;
    for (size_t e = 0; e + 1 < csr.offsets.size(); ++e) rows.push_back(csr.offsets[e + 1] - csr.offsets[e]);
    BOOST_TEST(rows == (std::vector<int32_t>{0, 1, 16, 17, 35, 5}), boost::test_tools::per_element());
    const std::vector<int32_t>& ids = problem.routing.ids;
    BOOST_TEST(std::count(ids.begin(), ids.end(), -1) > 0);
    BOOST_TEST(std::count(ids.begin(), ids.end(), 0) > 0);
    BOOST_TEST(ids[0] == ids[1]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
