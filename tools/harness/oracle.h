// The oracle: one output of a grouped GEMM in f64, from the bytes of the checkpoint, with the error a kernel may make.
//
// Called on the host by oracle.cpp (small problems, tests) and on a GPU by oracle_device.cu (sampled rows of any size).
// Invariant: it knows checkpoints through pack/formats.h only; the packed layout, its code words and the kernels'
// tricks play no part, so no mistake in them can hide here as well.
#pragma once

#include <fulcrum/core/params.h>

#include <cmath>

#include "harness/draw_inputs.h"

namespace fulcrum::harness {

// Everything that an output depends on; pointers of the memory that the caller runs in. Rows of tokens are dense or
// tokens_stride_bytes apart. Exact data makes the f32 sums exact: their error is zero.
struct OracleInput {
  Data data = Data::exact;
  CheckpointRecipe recipe;
  const uint8_t* codes[2] = {};          // [part][expert][row][bytes]
  const uint8_t* scales[2] = {};         // modelopt; block36: the same as codes
  const float* global_scales = nullptr;  // [expert][part]
  const uint8_t* tokens = nullptr;
  uint64_t tokens_stride_bytes = 0;
  const float* row_scales = nullptr;    // or null, as in Params
  const float* bias = nullptr;          // [expert][part][row]
  const float* pair_weights = nullptr;  // [pair]
  DType dtype = DType::f16;
  Activation activation = Activation::none;
};

// One row to compute: rows of `tokens` and of `out`, and what its factors are found by.
struct OracleRow {
  uint32_t expert = 0;  // local
  uint32_t input_row = 0;
  uint32_t output_row = 0;
  uint32_t pair = 0;
};

// A value before it is rounded to 16 bits, and how far from it a right kernel's f32 may be.
struct OracleValue {
  double value = 0;
  double error = 0;
};

inline constexpr double f32_half_ulp = 1.0 / (1 << 24);  // relative, of one rounding to nearest

FULCRUM_HD inline double magnitude(double value) { return value < 0 ? -value : value; }
FULCRUM_HD inline double larger(double a, double b) { return a < b ? b : a; }

// Cuts of a tensor core per k16 step, each of at most 2^-23 of the largest magnitude present: it aligns the products
// and the accumulator to the largest, cuts each, and cuts the sum; once for 16 products (18 cuts), or twice for 8 (20).
inline constexpr double cuts_per_step = 20;

// Dot product of a token row and one row of weights, without the global scale. The largest magnitude in a step is at
// most `peak`, the largest |partial sum| at any column, plus the 32 products that k_order=permuted reorders.
FULCRUM_HD inline OracleValue oracle_dot(const OracleInput& in, uint32_t expert, uint32_t part, uint32_t row,
                                         uint32_t input_row) {
  const CheckpointRecipe& recipe = in.recipe;
  const CheckpointFormat format = recipe.format;
  const uint64_t weight_row = uint64_t(expert) * part_rows(recipe) + row;
  const bool block36 = format == CheckpointFormat::block36;
  const uint64_t codes_row_bytes = checkpoint_codes_row_bytes(format, recipe.k);
  const uint8_t* codes = in.codes[part] + weight_row * codes_row_bytes;
  const uint8_t* scales =
      block36 ? codes : in.scales[part] + weight_row * checkpoint_scales_row_bytes(format, recipe.k);
  const uint16_t* tokens = reinterpret_cast<const uint16_t*>(in.tokens + input_row * in.tokens_stride_bytes);
  double sum = 0, peak = 0, largest = 0;
  for (uint32_t group = 0; group < recipe.k / scale_group; ++group) {
    const uint32_t byte = scales[checkpoint_scale_byte(format, group)];
    const double scale = e4m3_value(checkpoint_canonical_scale(format, byte));
    for (uint32_t i = 0; i < scale_group; ++i) {
      const uint32_t column = group * scale_group + i;
      const NibblePlace place = checkpoint_code_place(format, column);
      const double weight = e2m1_value(codes[place.byte] >> place.shift & 15) * scale;
      const double product = weight * value_of(in.dtype, tokens[column]);
      sum += product;
      peak = larger(peak, magnitude(sum));
      largest = larger(largest, magnitude(product));
    }
  }
  if (in.data == Data::exact) return {sum, 0};
  const double steps = ceil_div(recipe.k, 16u);
  return {sum, steps * cuts_per_step * 2 * f32_half_ulp * (peak + 32 * largest)};
}

// One f32 rounding of a value that may already be off.
FULCRUM_HD inline OracleValue rounded(OracleValue v) {
  return {v.value, v.error + f32_half_ulp * (magnitude(v.value) + v.error)};
}
FULCRUM_HD inline OracleValue scaled(OracleValue v, double factor, bool exact) {
  const OracleValue product{v.value * factor, v.error * magnitude(factor)};
  return exact ? product : rounded(product);
}

// silu(x) = x * rcp(1 + ex2(-x log2 e)) in f32. With s = 1 / (1 + e^x), the share of e^-x in 1 + e^-x, its relative
// error is s * (|x| 2^-23 from rounding the exponent and log2 e, + 2^-22 from ex2.approx) + 2^-24 from the sum + 2^-23
// from rcp.approx + 2^-24 from the product: (s (|x| + 2) + 2) 2^-23. Below x = -87 the result is less than 2^-118 or
// zero.
FULCRUM_HD inline OracleValue oracle_silu(OracleValue x) {
  const double s = 1 / (1 + exp(x.value));
  const double value = x.value / (1 + exp(-x.value));  // not x (1 - s), whose difference cancels below x = -37
  const double own = (s * (magnitude(x.value) + 2) + 2) * 2 * f32_half_ulp;
  constexpr double steepest = 1.1;     // the derivative of silu lies in -0.1 .. 1.1
  constexpr double underflow = 1e-35;  // of ex2 and rcp past x = -87
  return {value, (magnitude(value) + steepest * x.error) * own + steepest * x.error + underflow};
}

// acc * global * row scale, + bias, activation, * routing weight: the order that the numerics prescribe, in f32.
FULCRUM_HD inline OracleValue oracle_part(const OracleInput& in, const OracleRow& at, uint32_t part, uint32_t row) {
  const bool exact = in.data == Data::exact;
  const uint32_t parts = in.recipe.num_parts;
  OracleValue v = oracle_dot(in, at.expert, part, row, at.input_row);
  v = scaled(v, in.global_scales[at.expert * parts + part], exact);
  if (in.row_scales != nullptr) v = scaled(v, in.row_scales[at.input_row], exact);
  if (in.bias == nullptr) return v;
  v.value += in.bias[(uint64_t(at.expert) * parts + part) * part_rows(in.recipe) + row];
  return exact ? v : rounded(v);
}

// `column` of the output row `at`.
FULCRUM_HD inline OracleValue oracle_value(const OracleInput& in, const OracleRow& at, uint32_t column) {
  OracleValue v = oracle_part(in, at, 0, column);
  if (in.recipe.num_parts == 2) {
    const bool silu = in.activation == Activation::silu;
    const OracleValue gate = silu ? oracle_silu(v) : v;
    const OracleValue up = oracle_part(in, at, 1, column);
    v = {gate.value * up.value, gate.error * magnitude(up.value) + (magnitude(gate.value) + gate.error) * up.error};
    // Without an activation both factors are exact, and so is the f64 product: f32 rounds it once, as the kernel does.
    if (!silu && in.data == Data::exact)
      v.value = float(v.value);
    else
      v = rounded(v);
  }
  if (in.pair_weights != nullptr) v = scaled(v, in.pair_weights[at.pair], in.data == Data::exact && v.error == 0);
  return v;
}

// The 16-bit results that a right kernel may give: rounding is monotonic, so they are all between these two. Equal for
// a value without error: then the bits must be these, the sign of a zero included.
struct Expectation {
  uint16_t low, high;
};
FULCRUM_HD inline Expectation expectation(DType dtype, OracleValue v) {
  return {round_to(dtype, float(v.value - v.error)), round_to(dtype, float(v.value + v.error))};
}

FULCRUM_HD inline bool accepts(DType dtype, Expectation expected, uint16_t bits) {
  if (expected.low == expected.high) return bits == expected.low;
  const float value = value_of(dtype, bits);
  return value >= value_of(dtype, expected.low) && value <= value_of(dtype, expected.high);  // false for NaN
}

}  // namespace fulcrum::harness
