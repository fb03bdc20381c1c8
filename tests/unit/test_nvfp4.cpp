// E2M1, E4M3 and E5M3 against published values, and the arithmetic of dequantization in emulated f16 and bf16.
// Invariant under test: code * scale * 2^-dequant_fold comes out of every code word's bits without a rounding.
//
// Run by ctest as unit.nvfp4; needs no GPU.
#include "vectors.hpp"

#include <boost/test/unit_test.hpp>

#include <fulcrum/core/layout.h>
#include <fulcrum/core/shape.h>

#include <algorithm>
#include <cmath>

using namespace fulcrum;

namespace {

// A 16-bit float type: significant bits (the hidden one included) and the exponents of its smallest and largest binade.
struct Float16 {
  int significant_bits, least_exponent, most_exponent;
};
constexpr Float16 f16_type{11, -14, 15}, bf16_type{8, -126, 127};

double value_of(Float16 type, uint32_t bits) {
  const int mantissa_bits = type.significant_bits - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << (15 - mantissa_bits)) - 1));
  const double mantissa = bits & ((1u << mantissa_bits) - 1);
  BOOST_REQUIRE_LT(exponent, type.most_exponent - type.least_exponent + 2);  // neither Inf nor NaN
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, type.least_exponent - mantissa_bits)
                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - 1 + type.least_exponent - mantissa_bits);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Whether the type holds the value, subnormals included; then a correctly rounded product of that value is exact.
bool holds(Float16 type, double value) {
  if (value == 0) return true;
  int exponent = 0;
  (void)std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  if (exponent - 1 > type.most_exponent) return false;
  const int last_bit = std::max(exponent - 1, type.least_exponent) - (type.significant_bits - 1);
  const double units = std::ldexp(value, -last_bit);
  return units == std::trunc(units);
}

double multiply(Float16 type, double a, double b) {
  BOOST_REQUIRE(holds(type, a) && holds(type, b) && holds(type, a * b));
  return a * b;
}

uint32_t rotate(uint32_t word, uint32_t bits) { return word << bits | word >> (32 - bits); }

// The word that dequantization multiplies for a slot (signs of f16's slots 2 and 3 put in before, not after).
uint32_t slot_bits(CodeWord code_word, uint32_t slot, uint32_t word) {
  if (code_word == CodeWord::f16) {
    const uint32_t magnitude = word << 3 * slot & 0x0E000E00u;
    const uint32_t sign[4] = {word, word << 3, word << 1, word << 2};
    return magnitude | (sign[slot] & 0x80008000u);
  }
  const uint32_t mask = 0x81C081C0u, mantissa = 0x00400040u;
  switch (slot) {
    case 0: return word & mask;
    case 1: return word << 6 & mask;
    case 2: return rotate(word, 12) & mask;
    default: return ((rotate(word, 10) & ~mantissa) | (word << 2 & mantissa)) & mask;
  }
}

// The scale as the multiply sees it, from a scale word of an f16 or bf16 layout.
double scale_factor(CodeWord code_word, uint32_t half, uint32_t turn, uint32_t word) {
  const uint32_t placed = turn == 0 ? word : rotate(word, 8);
  if (code_word == CodeWord::f16) return value_of(f16_type, (placed & 0x7F807F80u) >> 16 * half & 0xFFFF);
  return value_of(bf16_type, ((placed & 0x0FF00FF0u) | 0x70007000u) >> 16 * half & 0xFFFF);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nvfp4)

BOOST_AUTO_TEST_CASE(codes_and_scales_have_the_published_values) {
  const nlohmann::json golden = read_vectors("nvfp4_golden.json");
  for (const auto& entry : golden["e2m1_decode"]) {
    const float value = e2m1_value(entry["code"].get<uint32_t>());
    BOOST_TEST(value == entry["value"].get<float>());
    BOOST_TEST(std::signbit(value) == std::signbit(entry["value"].get<float>()));
  }
  for (const auto& entry : golden["ue4m3_decode"])
    BOOST_TEST(e4m3_value(entry["code"].get<uint32_t>()) == entry["value"].get<float>());

  const nlohmann::json halves = read_vectors("gguf_nvfp4_blocks.json")["ue4m3_decode_times_half"];
  BOOST_REQUIRE_EQUAL(halves.size(), 256u);
  for (uint32_t byte = 0; byte < 0x7F; ++byte) BOOST_TEST(e4m3_value(byte) == 2 * halves[byte].get<float>());
}

BOOST_AUTO_TEST_CASE(e5m3_is_the_scale_times_128_as_f16_and_comes_back) {
  for (uint32_t byte = 0; byte < 0x7F; ++byte) {
    const uint32_t e5m3 = e5m3_from_e4m3(byte);
    BOOST_TEST(e5m3 < 256u);
    BOOST_TEST(value_of(f16_type, e5m3 << 7) == 128.0 * e4m3_value(byte));
    BOOST_TEST(e4m3_from_e5m3(e5m3) == byte);
  }
}

BOOST_AUTO_TEST_CASE(both_code_words_give_exact_products) {
  for (const CodeWord code_word : {CodeWord::f16, CodeWord::bf16}) {
    const Float16 type = code_word == CodeWord::f16 ? f16_type : bf16_type;
    for (uint32_t scale = 0; scale < 0x7F; ++scale)
      for (uint32_t place = 0; place < 32; ++place) {  // slot, its half, and the half and turn of the scale
        const uint32_t slot = place % 4, half = place / 4 % 2, scale_half = place / 8 % 2, turn = place / 16;
        const uint32_t others = encode_scale(code_word, 1 - scale_half, turn, 0x7E - scale) |
                                encode_scale(code_word, scale_half, 1 - turn, 0x55);
        const uint32_t scale_word = encode_scale(code_word, scale_half, turn, scale) | others;
        const double factor = scale_factor(code_word, scale_half, turn, scale_word);
        for (uint32_t code = 0; code < 16; ++code) {
          if (scale == 0 && code_word == CodeWord::bf16 && code != 0) continue;  // repack writes code 0 there
          uint32_t word = encode_code(code_word, slot, half, code);
          for (uint32_t other = 0; other < 8; ++other)  // neighbours full of ones must not leak in
            if (other != slot * 2 + half) word |= encode_code(code_word, other / 2, other % 2, 15);
          const double weight = value_of(type, slot_bits(code_word, slot, word) >> 16 * half & 0xFFFF);
          const double product = multiply(type, weight, factor);
          const double expected = std::ldexp(double(e2m1_value(code)) * e4m3_value(scale), -dequant_fold);
          if (product != expected) BOOST_ERROR("code " << code << " scale " << scale << " slot " << slot);
        }
      }
  }
}

// The plain code word: nibbles placed by shifts carry 2^-14 or 2^-126 as above; an E4M3 byte placed in f16 is
// scale * 2^-8 and in bf16 scale * 2^-120, and multiplications by powers of two bring it to 2^7 or 2^119.
BOOST_AUTO_TEST_CASE(plain_scales_reach_their_exponent_exactly) {
  for (uint32_t scale = 0; scale < 0x7F; ++scale) {
    const double in_f16 = value_of(f16_type, scale << 7), in_bf16 = value_of(bf16_type, scale << 4);
    BOOST_TEST(in_f16 == std::ldexp(e4m3_value(scale), -8));
    BOOST_TEST(in_bf16 == std::ldexp(e4m3_value(scale), -120));
    const double f16_scale = multiply(f16_type, in_f16, std::ldexp(1, 15));
    const double bf16_scale = multiply(bf16_type, multiply(bf16_type, in_bf16, std::ldexp(1, 127)), std::ldexp(1, 112));
    for (uint32_t code = 0; code < 16; ++code) {
      const double expected = std::ldexp(double(e2m1_value(code)) * e4m3_value(scale), -dequant_fold);
      BOOST_TEST(multiply(f16_type, std::ldexp(e2m1_value(code), -14), f16_scale) == expected);
      BOOST_TEST(multiply(bf16_type, std::ldexp(e2m1_value(code), -126), bf16_scale) == expected);
      // and with whole values from a table, the scale times 2^-7
      BOOST_TEST(multiply(f16_type, e2m1_value(code), multiply(f16_type, in_f16, 2)) == expected);
      BOOST_TEST(multiply(bf16_type, e2m1_value(code), multiply(bf16_type, in_bf16, std::ldexp(1, 113))) == expected);
    }
  }
}

// Converted scales: a sum in the exponent of the f16 gives what the multiplications above do, in both types; with a
// table the f16 is taken as it is and the table has 2^-7.
BOOST_AUTO_TEST_CASE(converted_scales_reach_their_exponent_exactly) {
  for (uint32_t scale = 1; scale < 0x7F; ++scale) {  // under a zero scale repack writes code 0
    const uint32_t in_f16 = (e5m3_from_e4m3(scale) << 7) - (7u << 10);
    BOOST_TEST(value_of(f16_type, in_f16) == e4m3_value(scale));
    const uint32_t pair = in_f16 << 16 | in_f16, in_bf16 = pair >> 3;
    const auto both = [&](Float16 type, uint32_t word, int exponent) {
      const double expected = std::ldexp(e4m3_value(scale), exponent);
      return value_of(type, word & 0xFFFF) == expected && value_of(type, word >> 16) == expected;
    };
    BOOST_TEST(both(f16_type, pair + 0x1C001C00u, 7));
    BOOST_TEST(both(bf16_type, in_bf16 + 0x73807380u, 119));
    BOOST_TEST(both(bf16_type, in_bf16 + 0x34803480u, -7));
    for (uint32_t code = 0; code < 16; ++code) {
      const double expected = std::ldexp(double(e2m1_value(code)) * e4m3_value(scale), -dequant_fold);
      BOOST_TEST(multiply(f16_type, std::ldexp(e2m1_value(code), -7), e4m3_value(scale)) == expected);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
