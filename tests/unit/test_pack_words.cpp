// The word-level steps of the repack kernels, run lane by lane on the host: their words must be the reference's words.
// Also what kernels and hosts agree on: which block does what, the refusal word, names and sources of the entries.
//
// Run by ctest as unit.pack_words; needs no GPU.
#include <boost/test/unit_test.hpp>

#include <fulcrum/pack/reference.hpp>
#include <fulcrum/pack/repack_entries.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "harness/checkpoint.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

// One unit of 16 rows x 64 columns as a kernel's shared memory has it.
template <class Reader>
struct UnitRows {
  const Checkpoint& checkpoint;

  const uint8_t* codes(uint32_t row) const {
    return checkpoint.codes[0].data() + row * Reader::codes_unit_bytes +
           (Reader::separate_scales ? 0 : block36_scale_bytes);
  }
  uint32_t scales(uint32_t row) const {
    const uint8_t* bytes = Reader::separate_scales ? checkpoint.scales[0].data() + row * Reader::scales_unit_bytes
                                                   : checkpoint.codes[0].data() + row * Reader::codes_unit_bytes;
    return reference::load_word(bytes);
  }
};

uint32_t pair_of(const uint8_t* group, uint32_t c, Block36) { return group[2 * c] | group[2 * c + 1] << 8; }
uint32_t pair_of(const uint8_t* group, uint32_t c, Modelopt) { return group[c] | group[c + 4] << 8; }
uint32_t octet_of(const uint8_t* codes, uint32_t block, uint32_t c, Block36) {
  const uint8_t* group = codes + (2 * block + c / 2) * group_code_bytes;
  return Block36::permuted_codes({reference::load_word(group), reference::load_word(group + 4)}, c);
}
uint32_t octet_of(const uint8_t* codes, uint32_t block, uint32_t c, Modelopt) {
  return Modelopt::permuted_codes(reference::load_word(codes + 16 * block + 4 * c));
}

template <class Reader, CodeWord code_word, KOrder k_order>
void check_unit(const Checkpoint& checkpoint, const std::vector<uint8_t>& packed) {
  const UnitRows<Reader> rows{checkpoint};
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t r = lane / 4, c = lane % 4;
    const uint32_t nonzero[2] = {nonzero_scales(Reader::canonical_x4(rows.scales(r))),
                                 nonzero_scales(Reader::canonical_x4(rows.scales(r + 8)))};
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t nibbles = 0;
      if (k_order == KOrder::natural) {
        nibbles = Reader::natural_codes(
            pair_of(rows.codes(r) + i * group_code_bytes, c, Reader{}) & scale_mask(nonzero[0], i),
            pair_of(rows.codes(r + 8) + i * group_code_bytes, c, Reader{}) & scale_mask(nonzero[1], i));
      } else {
        nibbles =
            octet_of(rows.codes(r + 8 * (i % 2)), i / 2, c, Reader{}) & scale_mask(nonzero[i % 2], i / 2 * 2 + c / 2);
      }
      const uint32_t word = spread_codes<code_word>(nibbles);
      BOOST_TEST(word == reference::load_word(&packed[16 * lane + 4 * i]));
      BOOST_TEST(gather_codes<code_word>(word) == nibbles);
    }
  }
  for (uint32_t r = 0; r < 8; ++r) {
    const uint32_t upper = Reader::canonical_x4(rows.scales(r)), lower = Reader::canonical_x4(rows.scales(r + 8));
    const Vec2 words = spread_scales<code_word, k_order>(upper, lower);
    BOOST_TEST(words.x == reference::load_word(&packed[512 + 8 * r]));
    BOOST_TEST(words.y == reference::load_word(&packed[512 + 8 * r + 4]));
    const Vec2 back = gather_scales<code_word, k_order>(words);
    BOOST_TEST(back.x == upper);
    BOOST_TEST(back.y == lower);
  }
}

template <CheckpointFormat format, CodeWord code_word, KOrder k_order>
void check_kind() {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Checkpoint checkpoint = make_checkpoint({format, seed % 2 ? ScaleDraw::any : ScaleDraw::exact, seed, 16, 64, 1, 1});
    RepackParams params = checkpoint_params(checkpoint);
    std::vector<uint8_t> packed(unit_bytes);
    params.packed = packed.data();
    BOOST_REQUIRE_EQUAL(reference::pack({format, {code_word, k_order}}, params), no_refusal);
    check_unit<typename FormatOf<format>::Reader, code_word, k_order>(checkpoint, packed);
  }
}

template <CodeWord code_word, KOrder k_order>
void check_layout() {
  check_kind<CheckpointFormat::block36, code_word, k_order>();
  check_kind<CheckpointFormat::modelopt, code_word, k_order>();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pack_words)

BOOST_AUTO_TEST_CASE(eight_codes_at_a_time_equal_one_at_a_time) {
  check_layout<CodeWord::plain, KOrder::natural>();
  check_layout<CodeWord::plain, KOrder::permuted>();
  check_layout<CodeWord::f16, KOrder::natural>();
  check_layout<CodeWord::f16, KOrder::permuted>();
  check_layout<CodeWord::bf16, KOrder::natural>();
  check_layout<CodeWord::bf16, KOrder::permuted>();
}

BOOST_AUTO_TEST_CASE(four_scale_bytes_at_a_time_equal_one_at_a_time) {
  for (uint32_t byte = 0; byte < 256; ++byte)
    for (uint32_t place = 0; place < 32; place += 8) {
      const uint32_t scales = (0x01384038u & ~(0xFFu << place)) | byte << place;
      BOOST_TEST((Block36::refused_x4(scales) == (Block36::refuses_scale(byte) ? 0x80u << place : 0u)));
      BOOST_TEST((Modelopt::refused_x4(scales) == (Modelopt::refuses_scale(byte) ? 0x80u << place : 0u)));
      if (byte != 0xFF) BOOST_TEST((Block36::canonical_x4(scales) >> place & 0xFF) == Block36::canonical_scale(byte));
      if (byte >= 0x7F) continue;
      BOOST_TEST((e5m3_from_e4m3_x4(scales) >> place & 0xFF) == e5m3_from_e4m3(byte));
      BOOST_TEST(e4m3_from_e5m3_x4(e5m3_from_e4m3_x4(scales)) == scales);
      BOOST_TEST(scale_mask(nonzero_scales(scales), place / 8) == (byte == 0 ? 0u : ~0u));
    }
}

BOOST_AUTO_TEST_CASE(pairs_and_nibbles_come_back) {
  for (uint64_t at = 0; at < 200; ++at) {
    const uint32_t codes = static_cast<uint32_t>(mixed_bits(1, at));
    const Vec2 block36 = Block36::natural_pairs(codes), modelopt = Modelopt::natural_pairs(codes);
    BOOST_TEST(Block36::natural_codes(block36.x, block36.y) == codes);
    BOOST_TEST(Modelopt::natural_codes(modelopt.x, modelopt.y) == codes);
    const Vec2 nibbles = Block36::permuted_nibbles(codes);
    BOOST_TEST(Block36::permuted_codes(nibbles, 0) == codes);
    BOOST_TEST(Block36::permuted_codes({nibbles.x << 4, nibbles.y << 4}, 1) == codes);
    BOOST_TEST(Modelopt::permuted_codes(Modelopt::permuted_codes(codes)) == codes);
  }
}

// What a kernel that reads blocks in place makes of two bytes of a row and two of the row eight below: the codes of
// columns 2c, 2c + 1 and, in the high nibbles, 2c + 8 and 2c + 9, each in the slot that the fragment wants.
BOOST_AUTO_TEST_CASE(two_pairs_of_bytes_are_a_word_read_in_place) {
  constexpr uint32_t upper = 0x9A21, lower = 0xBC43;  // bytes 2c (low) and 2c + 1
  const uint32_t word = Block36::natural_codes(upper, lower);
  const auto code = [&](uint32_t slot, uint32_t half) { return decode_code(CodeWord::block36, slot, half, word); };
  BOOST_TEST((code(0, 0) == 0x1 && code(0, 1) == 0xA));  // row r, columns 2c and 2c + 1
  BOOST_TEST((code(1, 0) == 0x3 && code(1, 1) == 0xC));  // row r + 8
  BOOST_TEST((code(2, 0) == 0x2 && code(2, 1) == 0x9));  // row r, eight columns on
  BOOST_TEST((code(3, 0) == 0x4 && code(3, 1) == 0xB));
}

BOOST_AUTO_TEST_CASE(blocks_cover_every_unit_once) {
  for (const uint32_t n : {16u, 48u, 64u, 160u, 1856u})
    for (const uint32_t k : {16u, 64u, 512u, 672u, 2880u}) {
      RepackParams params = dense_params({CheckpointFormat::modelopt, ScaleDraw::exact, 1, n, k, 3, 1});
      std::set<uint64_t> offsets;
      for (uint32_t block = 0; block < repack_blocks(params); ++block) {
        const RepackTile tile = repack_tile(params, block);
        const uint64_t first = unit_offset_bytes(n, k, tile.first_row / unit_n, tile.first_k_unit);
        for (uint32_t unit = 0; unit < tile.num_units * tile.num_k_units; ++unit) {
          const uint32_t row = tile.first_row + tile.first_unit_row(unit),
                         k_unit = tile.first_k_unit + tile.k_unit(unit);
          const uint64_t offset = first + unit * unit_bytes;
          BOOST_REQUIRE_EQUAL(offset, unit_offset_bytes(n, k, row / unit_n, k_unit));
          BOOST_REQUIRE(offsets.insert(tile.expert * expert_bytes(n, k) + offset).second);
        }
      }
      BOOST_TEST(offsets.size() * unit_bytes == 3 * expert_bytes(n, k));
    }
}

BOOST_AUTO_TEST_CASE(packed_rows_find_their_checkpoint_rows) {
  for (uint32_t parts = 1; parts <= 2; ++parts)
    for (uint32_t part = 0; part < parts; ++part)
      for (uint32_t row = 0; row < 40; ++row) {
        const CheckpointRow source = checkpoint_row(parts, packed_row(parts == 2, part, row));
        BOOST_TEST(source.part == part);
        BOOST_TEST(source.row == row);
      }
}

BOOST_AUTO_TEST_CASE(refusal_words_order_positions) {
  const ScaleRefusal positions[] = {
      {0, 0, 0, 0, 0xFF}, {0, 0, 0, 65535, 0x80}, {0, 0, max_repack_rows - 1, 0, 0x7F},
      {0, 1, 0, 0, 0xFF}, {7, 0, 3, 2, 0xFF},     {max_repack_experts - 1, 1, 9, 9, 0x80}};
  uint64_t before = 0;
  for (const ScaleRefusal& at : positions) {
    const uint64_t word = refusal_word(at);
    BOOST_TEST(word > before);
    BOOST_TEST(word < no_refusal);
    const ScaleRefusal back = scale_refusal(word);
    BOOST_TEST(refusal_word(back) == word);
    BOOST_TEST(back.row == at.row);
    BOOST_TEST(back.group == at.group);
    before = word;
  }
}

BOOST_AUTO_TEST_CASE(a_refusal_is_one_clear_sentence) {
  const auto sentence = [](CheckpointFormat format, uint32_t parts, const ScaleRefusal& at) {
    char text[refusal_text_capacity];
    BOOST_TEST(write_refusal(format, parts, at, text, refusal_text_capacity) < refusal_text_capacity);
    return std::string(text);
  };
  BOOST_TEST(sentence(CheckpointFormat::block36, 2, {3, 0, 17, 5, 0xFF}) ==
             "scale byte 0xFF of expert 3, gate row 17, columns 80 to 95 (group 5) is refused: block36 readers do not "
             "agree on what 0xFF means");
  BOOST_TEST(sentence(CheckpointFormat::modelopt, 1, {0, 0, 0, 0, 0x7F}) ==
             "scale byte 0x7F of expert 0, row 0, columns 0 to 15 (group 0) is refused: it is E4M3's NaN");
  BOOST_TEST(sentence(CheckpointFormat::modelopt, 2, {9, 1, 2, 1, 0x80}).find("up row 2, columns 16 to 31") !=
             std::string::npos);
  const ScaleRefusal longest{max_repack_experts - 1, 0, max_repack_rows - 1, 65535, 0x80};
  BOOST_TEST(sentence(CheckpointFormat::modelopt, 2, longest).size() > 100u);
}

BOOST_AUTO_TEST_CASE(offsets_of_large_banks_pass_32_bits) {
  RepackParams params = dense_params({CheckpointFormat::block36, ScaleDraw::exact, 1, 8192, 8192, 1024, 1});
  BOOST_TEST(params.parts[0].codes.expert_bytes == uint64_t(8192) * 8192 * 9 / 16);
  BOOST_TEST(repack_blocks(params) == 1024u * 128 * 16);
  const RepackTile last = repack_tile(params, uint32_t(repack_blocks(params) - 1));
  BOOST_TEST(last.expert == 1023u);
  BOOST_TEST(last.expert * expert_bytes(8192, 8192) +
                 unit_offset_bytes(8192, 8192, last.first_row / 16, last.first_k_unit) +
                 last.num_units * last.num_k_units * unit_bytes ==
             1024 * expert_bytes(8192, 8192));
}

BOOST_AUTO_TEST_CASE(entries_have_distinct_names_and_sources_that_define_them) {
  std::set<std::string> names;
  for (const RepackEntry& entry : repack_entries.entries) {
    BOOST_TEST(&repack_entry(entry.kind, entry.direction) == &entry);
    names.insert(entry.name);
    BOOST_TEST(std::string(entry.source).find(std::string("FULCRUM_REPACK(") + entry.name + ", ") != std::string::npos);
  }
  BOOST_TEST(names.size() == num_repack_entries);
  BOOST_TEST(repack_entry({CheckpointFormat::block36, {CodeWord::f16, KOrder::natural}}, RepackDirection::pack).name ==
             std::string("fulcrum_pack_block36_f16_natural"));
}

BOOST_AUTO_TEST_SUITE_END()
