// Arithmetic of the tensor core and of 16-bit pairs on bit patterns.
//
// Called by the twins of cvt.cuh and mma_sync.cuh. Invariant: products are exact; a sum of 16 products and the
// accumulator is rounded once to f32. Poison stays poison, column by column of tokens.
#include <emulator/device.h>
#include <fulcrum/core/nvfp4.h>

#include <bit>
#include <cmath>

#include "harness/half.h"
#include "runtime/mma_tables.hpp"
#include "runtime/shared_memory.hpp"

namespace fulcrum::emulator {
namespace {

using harness::value_of;

DType type_of(bool is_f16) { return is_f16 ? DType::f16 : DType::bf16; }

bool is_poison(float x) { return std::bit_cast<uint32_t>(x) == poison_word; }

// One product of two 16-bit floats, rounded to nearest even; the finite becomes infinite past the range.
uint16_t product(DType type, uint16_t a, uint16_t b) {
  const float exact = value_of(type, a) * value_of(type, b);  // 22 bits at most
  const float least_infinite = type == DType::f16 ? 65520.0f : 0x1.ffp127f;
  if (std::fabs(exact) < least_infinite || std::isnan(exact)) return harness::round_to(type, exact);
  return static_cast<uint16_t>((std::signbit(exact) ? 0x8000 : 0) | (type == DType::f16 ? 0x7C00 : 0x7F80));
}

uint16_t round_or_poison(DType type, float x) { return is_poison(x) ? poison_half : harness::round_to(type, x); }

}  // namespace

uint32_t mul_x2(bool is_f16, uint32_t a, uint32_t b) {
  const DType type = type_of(is_f16);
  const uint32_t low = product(type, static_cast<uint16_t>(a), static_cast<uint16_t>(b));
  return low | static_cast<uint32_t>(product(type, static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16)))
                   << 16;
}

uint32_t cvt_satfinite_x2(bool is_f16, float low, float high) {
  const DType type = type_of(is_f16);
  return round_or_poison(type, low) | static_cast<uint32_t>(round_or_poison(type, high)) << 16;
}

uint32_t cvt_f16x2_e4m3x2(uint32_t bytes) {
  const auto half = [](uint32_t byte) -> uint32_t {
    return e4m3_is_nan(byte) ? 0x7FFF : harness::round_to(DType::f16, e4m3_value(byte));  // f16 holds every value
  };
  return half(bytes & 0xFF) | half(bytes >> 8 & 0xFF) << 16;
}

float approximate_ex2(float x) { return is_poison(x) ? x : std::exp2(x); }
float approximate_rcp(float x) { return is_poison(x) ? x : 1.0f / x; }

void MmaTables::add_weights(uint32_t lane, const uint32_t* a) {
  const uint32_t r = lane / 4, c = 2 * (lane % 4);
  for (uint32_t i = 0; i < 2; ++i)
    for (uint32_t j = 0; j < 4; ++j)
      weights[r + 8 * (j % 2)][c + 8 * (j / 2) + i] = value_of(type, static_cast<uint16_t>(a[j] >> 16 * i));
}

void MmaTables::add_token(uint32_t token, uint32_t column, uint32_t pair) {
  for (uint32_t i = 0; i < 2; ++i) {
    const auto bits = static_cast<uint16_t>(pair >> 16 * i);
    tokens[token][column + i] = value_of(type, bits);
    poisoned[token] = poisoned[token] || bits == poison_half;
  }
}

void MmaTables::accumulate(uint32_t lane, float* d) const {
  for (uint32_t i = 0; i < 4; ++i) {
    const float* row = weights[lane / 4 + 8 * (i / 2)];
    const uint32_t token = 2 * (lane % 4) + i % 2;
    double sum = d[i];
    for (uint32_t k = 0; k < 16; ++k) sum += static_cast<double>(row[k]) * static_cast<double>(tokens[token][k]);
    if (poisoned[token])
      d[i] = std::bit_cast<float>(poison_word);
    else if (!is_poison(d[i]))
      d[i] = static_cast<float>(sum);
  }
}

void multiply_m16n8k16(bool is_f16, void* const* lanes) {
  MmaTables tables{type_of(is_f16)};
  for (uint32_t l = 0; l < 32; ++l) {
    const MmaLane& lane = *static_cast<const MmaLane*>(lanes[l]);
    tables.add_weights(l, lane.a);
    for (uint32_t j = 0; j < 2; ++j) tables.add_token(l / 4, 2 * (l % 4) + 8 * j, lane.b[j]);
  }
  for (uint32_t l = 0; l < 32; ++l) tables.accumulate(l, static_cast<const MmaLane*>(lanes[l])->d);
}

}  // namespace fulcrum::emulator
