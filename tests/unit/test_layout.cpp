// core/layout.h: places of codes and scales are one to one, inside the expert, and where mma's fragments want them.
//
// Run by ctest as unit.layout; needs no GPU.
#include <boost/test/unit_test.hpp>

#include <fulcrum/core/layout.h>

#include <set>
#include <tuple>
#include <vector>

using namespace fulcrum;

namespace {

constexpr CodeWord code_words[] = {CodeWord::plain, CodeWord::f16, CodeWord::bf16};
constexpr KOrder k_orders[] = {KOrder::natural, KOrder::permuted};

struct Size {
  uint32_t n, k;
};
constexpr Size sizes[] = {{16, 64}, {64, 64}, {80, 128}, {160, 672}, {112, 48}};

}  // namespace

BOOST_AUTO_TEST_SUITE(layout)

BOOST_AUTO_TEST_CASE(a_packed_row_knows_its_part) {
  for (const uint32_t rows : {16u, 80u}) {  // of a part
    for (uint32_t row = 0; row < rows; ++row) {
      const PartRow plain = part_row(false, packed_row(false, 0, row));
      BOOST_TEST((plain.part == 0 && plain.row == row));
      for (const uint32_t part : {0u, 1u}) {
        const PartRow from = part_row(true, packed_row(true, part, row));
        BOOST_TEST((from.part == part && from.row == row));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(bits_of_a_word_are_used_once_and_come_back) {
  for (const CodeWord code_word : code_words) {
    uint32_t code_bits = 0, scale_bits = 0;
    for (uint32_t place = 0; place < 8; ++place)
      for (uint32_t bit = 0; bit < 4; ++bit) code_bits ^= 1u << code_bit(code_word, place / 2, place % 2, bit);
    for (uint32_t place = 0; place < 4; ++place)
      for (uint32_t bit = 0; bit < 8; ++bit) scale_bits ^= 1u << scale_bit(code_word, place / 2, place % 2, bit);
    BOOST_TEST(code_bits == ~0u);
    BOOST_TEST(scale_bits == ~0u);
    for (uint32_t place = 0; place < 8; ++place)
      for (uint32_t code = 0; code < 16; ++code) {
        const uint32_t word = encode_code(code_word, place / 2, place % 2, code);
        BOOST_TEST(decode_code(code_word, place / 2, place % 2, word) == code);
      }
    for (uint32_t place = 0; place < 4; ++place)
      for (uint32_t scale = 0; scale < 0x7F; ++scale) {
        const uint32_t word = encode_scale(code_word, place / 2, place % 2, scale);
        BOOST_TEST(decode_scale(code_word, place / 2, place % 2, word) == scale);
      }
  }
}

BOOST_AUTO_TEST_CASE(every_code_and_scale_has_its_own_place) {
  for (const Size size : sizes)
    for (const KOrder k_order : k_orders) {
      const Layout layout{CodeWord::plain, k_order};
      const uint32_t padded_k = round_up(size.k, unit_k);
      std::set<std::tuple<uint64_t, uint32_t, uint32_t>> codes, scales;
      for (uint32_t row = 0; row < size.n; ++row) {
        for (uint32_t column = 0; column < padded_k; ++column) {
          const CodePlace at = code_place(layout, size.n, size.k, row, column);
          BOOST_REQUIRE(at.word_bytes % 4 == 0 && at.half < 2 && at.slot < 4);
          BOOST_REQUIRE_LT(at.word_bytes % unit_bytes, unit_code_bytes);
          BOOST_REQUIRE_LT(at.word_bytes, expert_bytes(size.n, size.k));
          BOOST_REQUIRE(codes.insert({at.word_bytes, at.half, at.slot}).second);
        }
        for (uint32_t group = 0; group < padded_k / scale_group; ++group) {
          const ScalePlace at = scale_place(layout, size.n, size.k, row, group);
          BOOST_REQUIRE(at.word_bytes % 4 == 0 && at.half < 2 && at.turn < 2);
          BOOST_REQUIRE_GE(at.word_bytes % unit_bytes, unit_code_bytes);
          BOOST_REQUIRE_LT(at.word_bytes, expert_bytes(size.n, size.k));
          BOOST_REQUIRE(scales.insert({at.word_bytes, at.half, at.turn}).second);
        }
      }
      // nothing is left over: half a byte a code and one byte a scale fill the expert
      BOOST_TEST(codes.size() / 2 + scales.size() == expert_bytes(size.n, size.k));
    }
}

// Written out as the fragments of mma.m16n8k16 have it, not as code_place() computes it.
BOOST_AUTO_TEST_CASE(a_lane_owns_the_registers_of_its_fragment) {
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t word = 0; word < 4; ++word)
      for (uint32_t slot = 0; slot < 4; ++slot)
        for (uint32_t half = 0; half < 2; ++half) {
          const uint32_t r = lane / 4, c = lane % 4;
          const uint32_t natural_row = slot == 0 || slot == 2 ? r : r + 8;
          const uint32_t natural_column = 16 * word + 2 * c + (slot >= 2 ? 8 : 0) + half;
          const uint32_t permuted_row = r + 8 * (word & 1), permuted_column = 32 * (word / 2) + 8 * c + 2 * slot + half;
          for (const bool natural : {true, false}) {
            const Layout layout{CodeWord::plain, natural ? KOrder::natural : KOrder::permuted};
            const CodePlace at = code_place(layout, 16, 64, natural ? natural_row : permuted_row,
                                            natural ? natural_column : permuted_column);
            BOOST_TEST(at.word_bytes == 16 * lane + 4 * word);
            BOOST_TEST(at.slot == slot);
            BOOST_TEST(at.half == half);
          }
        }
}

BOOST_AUTO_TEST_CASE(scale_words_serve_the_lanes_that_need_them) {
  for (uint32_t row = 0; row < 16; ++row)
    for (uint32_t group = 0; group < 4; ++group) {
      const ScalePlace natural = scale_place({CodeWord::f16, KOrder::natural}, 16, 64, row, group);
      BOOST_TEST(natural.word_bytes == 512 + 8 * (row % 8) + 4 * (group / 2));
      BOOST_TEST(natural.turn == group % 2);
      BOOST_TEST(natural.half == row / 8);
      // permuted: lanes c and word pair b read group 2b + c/2: word c/2, turn b
      const ScalePlace permuted = scale_place({CodeWord::f16, KOrder::permuted}, 16, 64, row, group);
      BOOST_TEST(permuted.word_bytes == 512 + 8 * (row % 8) + 4 * (group % 2));
      BOOST_TEST(permuted.turn == group / 2);
      BOOST_TEST(permuted.half == row / 8);
    }
}

BOOST_AUTO_TEST_CASE(units_lie_group_by_group_and_the_last_group_is_short) {
  const uint32_t n = 160, k = 672;  // 10 units of rows: groups of 4, 4 and 2; 11 units of columns
  uint64_t expected = 0;
  for (uint32_t group = 0; group < 3; ++group)
    for (uint32_t k_unit = 0; k_unit < 11; ++k_unit)
      for (uint32_t unit = 0; unit < units_in_group(n, group); ++unit, expected += unit_bytes)
        BOOST_TEST(unit_offset_bytes(n, k, group * 4 + unit, k_unit) == expected);
  BOOST_TEST(expected == expert_bytes(n, k));
  BOOST_TEST(expert_bytes(64, 64) == 2304u);
  BOOST_TEST(expert_bytes(1280, 4096) == 1280u * 4096 * 9 / 16);
}

BOOST_AUTO_TEST_CASE(offsets_pass_32_bits) {
  const uint32_t n = 1u << 20, k = 1u << 16;
  BOOST_TEST(expert_bytes(n, k) == (uint64_t(n) * k / 16) * 9);
  BOOST_TEST(unit_offset_bytes(n, k, n / 16 - 1, k / 64 - 1) == expert_bytes(n, k) - unit_bytes);
  const CodePlace last = code_place({}, n, k, n - 1, k - 1);
  BOOST_TEST(last.word_bytes == expert_bytes(n, k) - unit_scale_bytes - 4);
}

BOOST_AUTO_TEST_CASE(gate_and_up_share_a_unit) {
  std::vector<int> seen(96);
  for (uint32_t part = 0; part < 2; ++part)
    for (uint32_t row = 0; row < 48; ++row) {
      const uint32_t packed = packed_row(true, part, row);
      BOOST_TEST(packed / 16 == row / 8);             // the unit of the output column's group of eight
      BOOST_TEST(packed % 16 == 8 * part + row % 8);  // rows r and r + 8 of a unit are gate and up of one column
      ++seen.at(packed);
    }
  for (const int count : seen) BOOST_TEST(count == 1);
  BOOST_TEST(packed_row(false, 0, 37) == 37u);
}

BOOST_AUTO_TEST_SUITE_END()
