// Host side of harness/oracle.hpp: factors, sampled rows, whole small problems, and differences in words.
//
// Called by ProblemOnDevice, check() and the tests. Invariant: see oracle.hpp; the same problem gives the same samples.
#include "harness/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/random.hpp"

namespace fulcrum::harness {

CheckpointRecipe recipe_of(const Problem& problem, Data data) {
  CheckpointRecipe recipe;
  recipe.format = problem.format;
  recipe.scales = problem.edge_scales && data == Data::random ? ScaleDraw::any : scale_draw(data);
  recipe.seed = problem.seed;
  recipe.n = problem.shape.n;
  recipe.k = problem.shape.k;
  recipe.num_experts = problem.shape.local_experts;
  recipe.num_parts = problem.shape.projection == Projection::gate_up ? 2 : 1;
  return recipe;
}

Factors draw_factors(const Problem& problem, Data data) {
  const CheckpointRecipe recipe = recipe_of(problem, data);
  Factors factors;
  for (uint32_t expert = 0; expert < recipe.num_experts; ++expert)
    for (uint32_t part = 0; part < recipe.num_parts; ++part)
      factors.global_scales.push_back(draw_global_scale(recipe, expert, part));
  const uint64_t num_input_rows = num_rows(problem, problem.input_rows);
  for (uint64_t row = 0; problem.row_scales && row < num_input_rows; ++row)
    factors.row_scales.push_back(draw_row_scale(data, problem.seed, row));
  const uint64_t num_biases = uint64_t{recipe.num_experts} * recipe.n;
  for (uint64_t i = 0; problem.bias && i < num_biases; ++i) factors.bias.push_back(draw_bias(data, problem.seed, i));
  if (problem.pair_weights && data == Data::random) factors.pair_weights = problem.routing.weights;
  if (problem.pair_weights && data == Data::exact) {
    for (uint64_t pair = 0; pair < problem.routing.num_pairs(); ++pair)
      factors.pair_weights.push_back(draw_exact_pair_weight(problem.seed, pair));
  }
  return factors;
}

uint64_t tokens_stride_bytes(const Problem& problem) { return uint64_t{problem.shape.k} * 2 + problem.token_gap_bytes; }
uint64_t out_stride_bytes(const Problem& problem) {
  return uint64_t{out_columns(problem.shape)} * 2 + problem.out_gap_bytes;
}

uint32_t row_of(const Problem& problem, const Csr& csr, RowOrder order, uint32_t position) {
  const auto pair = static_cast<uint32_t>(csr.pair_ids[position]);
  switch (order) {
    case RowOrder::token: return pair / problem.shape.top_k;
    case RowOrder::pair: return pair;
    default: return position;
  }
}

std::vector<OracleRow> sample_rows(const Problem& problem, const Csr& csr, uint64_t limit) {
  const uint64_t count = csr.pair_ids.size();
  std::vector<uint8_t> chosen(count, 0);
  uint64_t num_chosen = 0;
  const auto choose = [&](uint64_t position) {
    if (num_chosen == limit || chosen[position] != 0) return;
    chosen[position] = 1;
    ++num_chosen;
  };
  for (size_t expert = 0; expert + 1 < csr.offsets.size(); ++expert) {
    if (csr.offsets[expert] == csr.offsets[expert + 1]) continue;
    choose(static_cast<uint64_t>(csr.offsets[expert]));
    choose(static_cast<uint64_t>(csr.offsets[expert + 1]) - 1);
  }
  Random random(problem.seed);
  if (count <= limit) std::fill(chosen.begin(), chosen.end(), uint8_t{1});
  while (count > limit && num_chosen < limit) choose(random.below(count));

  std::vector<OracleRow> rows;
  for (size_t expert = 0; expert + 1 < csr.offsets.size(); ++expert) {
    for (auto s = static_cast<uint32_t>(csr.offsets[expert]); s < static_cast<uint32_t>(csr.offsets[expert + 1]); ++s) {
      if (chosen[s] == 0) continue;
      rows.push_back({static_cast<uint32_t>(expert), row_of(problem, csr, problem.input_rows, s),
                      row_of(problem, csr, problem.output_rows, s), static_cast<uint32_t>(csr.pair_ids[s])});
    }
  }
  return rows;
}

HostProblem::HostProblem(const Problem& given, Data kind)
    : problem(given),
      data(kind),
      checkpoint(make_checkpoint(recipe_of(given, kind))),
      factors(draw_factors(given, kind)),
      tokens(num_rows(given, given.input_rows) * tokens_stride_bytes(given), 0xFF) {
  const uint64_t stride = tokens_stride_bytes(given);
  for (uint64_t row = 0; row * stride < tokens.size(); ++row) {
    for (uint32_t column = 0; column < given.shape.k; ++column) {
      const uint16_t bits = draw_token(kind, given.shape.dtype, given.seed, given.shape.k, row, column);
      tokens[row * stride + uint64_t{column} * 2] = static_cast<uint8_t>(bits);
      tokens[row * stride + uint64_t{column} * 2 + 1] = static_cast<uint8_t>(bits >> 8);
    }
  }
}

OracleInput HostProblem::input() const {
  OracleInput input;
  input.data = data;
  input.recipe = checkpoint.recipe;
  for (uint32_t part = 0; part < 2; ++part) {
    input.codes[part] = checkpoint.codes[part].data();
    input.scales[part] =
        problem.format == CheckpointFormat::block36 ? input.codes[part] : checkpoint.scales[part].data();
  }
  const auto optional = [](const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); };
  input.global_scales = factors.global_scales.data();
  input.tokens = tokens.data();
  input.tokens_stride_bytes = tokens_stride_bytes(problem);
  input.row_scales = optional(factors.row_scales);
  input.bias = optional(factors.bias);
  input.pair_weights = optional(factors.pair_weights);
  input.dtype = problem.shape.dtype;
  input.activation = problem.shape.activation;
  return input;
}

std::vector<OracleValue> oracle_rows(const OracleInput& input, const std::vector<OracleRow>& rows, uint32_t columns) {
  std::vector<OracleValue> values;
  values.reserve(rows.size() * columns);
  for (const OracleRow& row : rows)
    for (uint32_t column = 0; column < columns; ++column) values.push_back(oracle_value(input, row, column));
  return values;
}

namespace {

std::string describe_misplaced(const Comparison& comparison, const OutView& out, cuda_api::Stream stream) {
  const uint64_t byte = comparison.first_misplaced * 2;
  const std::string count = fmt::format(" ({} such values)", comparison.num_misplaced);
  if (byte < out.guard_bytes) {
    return fmt::format("the output was written {} bytes before its first row{}", out.guard_bytes - byte, count);
  }
  const uint64_t inner = byte - out.guard_bytes, row = inner / out.stride_bytes, column = inner % out.stride_bytes / 2;
  if (row >= out.rows) {
    return fmt::format("the output was written {} bytes past its last row{}", inner - out.rows * out.stride_bytes,
                       count);
  }
  if (column >= out.columns) return fmt::format("the gap after output row {} was written{}", row, count);
  uint8_t written = 0;
  require(cuda_api::copy_async(&written, out.written + row, 1, stream));
  require(cuda_api::synchronize(stream));
  return written != 0
             ? fmt::format("output row {}, column {} was not written, or is NaN{}", row, column, count)
             : fmt::format("output row {}, column {} was written, and no pair belongs there{}", row, column, count);
}

}  // namespace

std::string describe(const Comparison& comparison, const Expected& expected, const OutView& out,
                     cuda_api::Stream stream) {
  if (comparison.num_wrong == 0) {
    return comparison.num_misplaced == 0 ? std::string() : describe_misplaced(comparison, out, stream);
  }
  const OracleRow& row = expected.host_rows[comparison.first_wrong / expected.columns];
  const uint64_t column = comparison.first_wrong % expected.columns;
  uint16_t bits = 0;
  Expectation bounds{};
  require(cuda_api::copy_async(&bits, out.out() + row.output_row * out.stride_bytes + column * 2, 2, stream));
  require(cuda_api::copy_async(&bounds, expected.bounds.data() + comparison.first_wrong, sizeof bounds, stream));
  require(cuda_api::synchronize(stream));
  const auto value = [&](uint16_t each) { return value_of(expected.dtype, each); };
  const std::string right = bounds.low == bounds.high ? fmt::format("{} (0x{:04x})", value(bounds.low), bounds.low)
                                                      : fmt::format("{} to {}", value(bounds.low), value(bounds.high));
  return fmt::format(
      "output row {} (expert {}, pair {}), column {} is {} (0x{:04x}), the oracle says {} ({} of {} values differ)",
      row.output_row, row.expert, row.pair, column, value(bits), bits, right, comparison.num_wrong,
      expected.bounds.size());
}

}  // namespace fulcrum::harness
