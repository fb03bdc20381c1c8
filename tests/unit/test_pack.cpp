// pack/: published blocks read as their authors read them, packing and unpacking on the CPU, refusals with positions.
//
// Run by ctest as unit.pack; needs no GPU.
#include "vectors.hpp"

#include <boost/test/unit_test.hpp>

#include <fulcrum/pack/reference.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "harness/checkpoint.hpp"
#include "harness/input_error.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

std::vector<RepackKind> all_kinds() {
  std::vector<RepackKind> kinds;
  for (const CheckpointFormat format : {CheckpointFormat::block36, CheckpointFormat::modelopt})
    for (const CodeWord code_word : {CodeWord::plain, CodeWord::f16, CodeWord::bf16})
      for (const KOrder k_order : {KOrder::natural, KOrder::permuted}) kinds.push_back({format, {code_word, k_order}});
  return kinds;
}

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t at = 0; at < text.size(); at += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(at, 2), nullptr, 16)));
  return bytes;
}

// What a kernel would read: code * scale of a packed row, both taken from the packed bytes.
double packed_value(Layout layout, const RepackParams& params, uint32_t expert, uint32_t row, uint32_t column) {
  const uint8_t* bytes = static_cast<const uint8_t*>(params.packed) + expert * expert_bytes(params.n, params.k);
  const CodePlace code = code_place(layout, params.n, params.k, row, column);
  const ScalePlace scale = scale_place(layout, params.n, params.k, row, column / scale_group);
  const uint32_t code_bits = reference::load_word(bytes + code.word_bytes);
  const uint32_t scale_bits = reference::load_word(bytes + scale.word_bytes);
  return double(e2m1_value(decode_code(layout.code_word, code.slot, code.half, code_bits))) *
         e4m3_value(decode_scale(layout.code_word, scale.half, scale.turn, scale_bits));
}

// Sixteen equal rows of one block36 block, packed; returns the refusal word.
uint64_t pack_block(Layout layout, const std::string& hex, RepackParams& params, std::vector<uint8_t>& rows,
                    std::vector<uint8_t>& packed) {
  rows.clear();
  for (uint32_t row = 0; row < 16; ++row) {
    const std::vector<uint8_t> block = from_hex(hex);
    BOOST_REQUIRE_EQUAL(block.size(), block36_bytes);
    rows.insert(rows.end(), block.begin(), block.end());
  }
  packed.assign(expert_bytes(16, 64), 0xEE);
  params = RepackParams{};
  params.n = 16;
  params.k = 64;
  params.num_experts = 1;
  params.codes_row_bytes = block36_bytes;
  params.parts[0].codes.bank = rows.data();
  params.packed = packed.data();
  return reference::pack({CheckpointFormat::block36, layout}, params);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pack)

BOOST_AUTO_TEST_CASE(blocks_decode_as_llama_cpp_decodes_them) {
  const nlohmann::json vectors = read_vectors("gguf_nvfp4_blocks.json");
  BOOST_TEST(vectors["sizeof_block_nvfp4"].get<uint32_t>() == block36_bytes);
  std::vector<nlohmann::json> blocks = vectors["quantize"];
  for (const auto& block : vectors["dequantize"]) blocks.push_back(block);
  blocks.push_back(vectors["nibble_order_probe"]);
  BOOST_REQUIRE_EQUAL(blocks.size(), 8u);
  RepackParams params;
  std::vector<uint8_t> rows, packed;
  for (const RepackKind kind : all_kinds()) {
    if (kind.format != CheckpointFormat::block36) continue;
    for (const auto& block : blocks) {
      BOOST_TEST_CONTEXT(block["name"]) {
        const uint64_t refusal = pack_block(kind.layout, block["block_hex"], params, rows, packed);
        // one block holds a scale byte 0xFF, in group 2: 480 to llama.cpp, refused here
        const bool refused = block["name"] == "scales_00_7F_FF_B8";
        BOOST_TEST(refusal == (refused ? refusal_word({0, 0, 0, 2, 0xFF}) : no_refusal));
        const std::vector<double> expected = block["dequant"];
        for (uint32_t row = 0; row < 16; ++row)
          for (uint32_t column = 0; column < 64; ++column)
            if (!refused || column / 16 != 2)
              BOOST_TEST(packed_value(kind.layout, params, 0, row, column) == expected[column]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(scale_bytes_mean_what_each_format_says) {
  const nlohmann::json halves = read_vectors("gguf_nvfp4_blocks.json")["ue4m3_decode_times_half"];
  for (uint32_t byte = 0; byte < 256; ++byte) {
    BOOST_TEST(Block36::refuses_scale(byte) == (byte == 0xFF));
    if (byte != 0xFF) BOOST_TEST(e4m3_value(Block36::canonical_scale(byte)) == 2 * halves[byte].get<float>());
    BOOST_TEST(Modelopt::refuses_scale(byte) == (byte >= 0x7F));
    if (byte < 0x7F) BOOST_TEST(Modelopt::canonical_scale(byte) == byte);
  }
}

BOOST_AUTO_TEST_CASE(modelopt_rows_read_as_published) {
  const nlohmann::json golden = read_vectors("nvfp4_golden.json");
  const std::vector<uint8_t> codes = golden["packing"]["packed_bytes"];
  for (uint32_t column = 0; column < 16; ++column) {
    const NibblePlace at = Modelopt::code_place(column);
    BOOST_TEST((codes[at.byte] >> at.shift & 15) == golden["packing"]["logical_codes"][column].get<uint32_t>());
  }
  const nlohmann::json block = golden["reconstruction"];
  const std::vector<uint8_t> bytes = block["packed_bytes"], scales = block["scale_codes"];
  const std::vector<double> values = block["values"];
  const float global = global_scale_factor(GlobalScale::factor, block["global_scale"].get<float>());
  for (uint32_t column = 0; column < 16; ++column) {
    const NibblePlace at = Modelopt::code_place(column);
    const double weight = double(e2m1_value(bytes[at.byte] >> at.shift & 15)) *
                          e4m3_value(scales[Modelopt::scale_byte(column / 16)]) * global;
    BOOST_TEST(weight == values[column]);
  }
}

// Every stated group size in the metadata of real checkpoints is the one that the layout is built on.
BOOST_AUTO_TEST_CASE(real_checkpoints_have_groups_of_16) {
  uint32_t num_stated = 0;
  const auto visit = [&](const auto& self, const nlohmann::json& node) -> void {
    if (node.is_object() && node.contains("group_size") && node["group_size"].is_number()) {
      BOOST_TEST(node["group_size"].get<uint32_t>() == scale_group);
      ++num_stated;
    }
    if (node.is_structured())
      for (const auto& child : node) self(self, child);
  };
  for (const char* model :
       {"DeepSeek-V3.1-NVFP4", "GLM-5.2-NVFP4", "Gemma-4-26B-A4B-NVFP4", "Kimi-K2.6-NVFP4", "MiniMax-M2.7-NVFP4",
        "NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", "Qwen3-235B-A22B-NVFP4", "Qwen3.6-35B-A3B-NVFP4"})
    visit(visit, read_vectors("modelopt_hf_quant_config/nvidia--" + std::string(model) + "_hf_quant_config.json"));
  BOOST_TEST(num_stated >= 8u);
}

BOOST_AUTO_TEST_CASE(packing_keeps_values_and_unpacking_gives_canonical_bytes) {
  struct Size {
    uint32_t n, k, parts;
  };
  for (const Size size : {Size{16, 64, 1}, Size{160, 128, 2}, Size{80, 192, 1}, Size{48, 336, 2}, Size{32, 16, 1}})
    for (const RepackKind kind : all_kinds()) {
      if (kind.format == CheckpointFormat::block36 && size.k % 64 != 0) continue;
      for (const ScaleDraw scales : {ScaleDraw::any, ScaleDraw::model, ScaleDraw::exact}) {
        Checkpoint checkpoint = make_checkpoint({kind.format, scales, 7, size.n, size.k, 2, size.parts});
        const Checkpoint expected = canonical(checkpoint);
        RepackParams params = checkpoint_params(checkpoint);
        std::vector<uint8_t> packed(2 * expert_bytes(size.n, size.k), 0xEE);
        params.packed = packed.data();
        BOOST_REQUIRE_EQUAL(reference::pack(kind, params), no_refusal);

        uint64_t num_wrong = 0;
        for (uint32_t expert = 0; expert < 2; ++expert)
          for (uint32_t part = 0; part < size.parts; ++part)
            for (uint32_t row = 0; row < size.n / size.parts; ++row)
              for (uint32_t column = 0; column < size.k; ++column)
                num_wrong += packed_value(kind.layout, params, expert, packed_row(size.parts == 2, part, row),
                                          column) != weight_value(checkpoint, expert, part, row, column);
        BOOST_TEST(num_wrong == 0u);

        Checkpoint back = empty_checkpoint(checkpoint.recipe);
        RepackParams back_params = checkpoint_params(back);
        back_params.packed = packed.data();
        reference::unpack(kind, back_params);
        for (uint32_t part = 0; part < size.parts; ++part) {
          BOOST_TEST((back.codes[part] == expected.codes[part]));
          BOOST_TEST((back.scales[part] == expected.scales[part]));
        }
        if (scales == ScaleDraw::exact) BOOST_TEST((back.codes[0] == checkpoint.codes[0]));
      }
    }
}

BOOST_AUTO_TEST_CASE(padding_of_k_is_zero) {
  const uint32_t n = 32, k = 80;
  Checkpoint checkpoint = make_checkpoint({CheckpointFormat::modelopt, ScaleDraw::exact, 3, n, k, 1, 1});
  RepackParams params = checkpoint_params(checkpoint);
  std::vector<uint8_t> packed(expert_bytes(n, k), 0xEE);
  params.packed = packed.data();
  for (const CodeWord code_word : {CodeWord::plain, CodeWord::f16, CodeWord::bf16}) {
    const Layout layout{code_word, KOrder::natural};
    BOOST_REQUIRE_EQUAL(reference::pack({CheckpointFormat::modelopt, layout}, params), no_refusal);
    for (uint32_t row = 0; row < n; ++row)
      for (uint32_t column = k; column < 128; ++column) {
        const CodePlace code = code_place(layout, n, k, row, column);
        const ScalePlace scale = scale_place(layout, n, k, row, column / 16);
        BOOST_TEST(decode_code(code_word, code.slot, code.half, reference::load_word(&packed[code.word_bytes])) == 0u);
        BOOST_TEST(decode_scale(code_word, scale.half, scale.turn, reference::load_word(&packed[scale.word_bytes])) ==
                   0u);
      }
  }
}

BOOST_AUTO_TEST_CASE(experts_may_come_from_a_table_in_any_order) {
  const RepackKind kind{CheckpointFormat::modelopt, {CodeWord::f16, KOrder::natural}};
  Checkpoint checkpoint = make_checkpoint({kind.format, ScaleDraw::exact, 5, 16, 64, 3, 1});
  RepackParams params = checkpoint_params(checkpoint);
  std::vector<uint8_t> from_bank(3 * expert_bytes(16, 64)), from_table(from_bank.size());
  params.packed = from_bank.data();
  BOOST_TEST(reference::pack(kind, params) == no_refusal);
  void* codes[3];
  void* scales[3];
  for (uint32_t expert = 0; expert < 3; ++expert) {
    codes[expert] = checkpoint.codes[0].data() + (2 - expert) * params.parts[0].codes.expert_bytes;
    scales[expert] = checkpoint.scales[0].data() + (2 - expert) * params.parts[0].scales.expert_bytes;
  }
  params.parts[0].codes.table = codes;
  params.parts[0].scales.table = scales;
  params.packed = from_table.data();
  BOOST_TEST(reference::pack(kind, params) == no_refusal);
  for (uint64_t at = 0; at < from_bank.size(); ++at) {
    const uint64_t expert = at / expert_bytes(16, 64), byte = at % expert_bytes(16, 64);
    BOOST_REQUIRE_EQUAL(from_table[at], from_bank[(2 - expert) * expert_bytes(16, 64) + byte]);
  }
}

BOOST_AUTO_TEST_CASE(the_first_refused_scale_is_named) {
  for (const RepackKind kind : all_kinds()) {
    const bool block36 = kind.format == CheckpointFormat::block36;
    Checkpoint checkpoint = make_checkpoint({kind.format, ScaleDraw::exact, 9, 64, 128, 3, 2});
    const uint64_t row_bytes = block36 ? 72 : 8;
    for (uint32_t part = 0; part < 2; ++part) {
      std::vector<uint8_t>& scales = block36 ? checkpoint.codes[part] : checkpoint.scales[part];
      const auto spoil = [&](uint32_t expert, uint32_t row, uint32_t group, uint8_t byte) {
        scales[(expert * 32 + row) * row_bytes + checkpoint_scale_byte(kind.format, group)] = byte;
      };
      spoil(2, 0, 0, 0xFF);
      if (part == 1) spoil(1, 17, 6, block36 ? 0xFF : 0x80);  // the first of all three
      if (part == 1) spoil(1, 18, 2, 0xFF);
    }
    RepackParams params = checkpoint_params(checkpoint);
    std::vector<uint8_t> packed(3 * expert_bytes(64, 128));
    params.packed = packed.data();
    const ScaleRefusal at = scale_refusal(reference::pack(kind, params));
    BOOST_TEST(at.expert == 1u);
    BOOST_TEST(at.part == 1u);
    BOOST_TEST(at.row == 17u);
    BOOST_TEST(at.group == 6u);
    BOOST_TEST(at.byte == (block36 ? 0xFFu : 0x80u));
  }
}

BOOST_AUTO_TEST_CASE(sizes_that_cannot_be_packed_are_refused_in_words) {
  BOOST_CHECK_THROW(make_checkpoint({CheckpointFormat::block36, ScaleDraw::exact, 1, 16, 80, 1, 1}), InputError);
  BOOST_CHECK_THROW(make_checkpoint({CheckpointFormat::modelopt, ScaleDraw::exact, 1, 24, 64, 1, 1}), InputError);
  RepackParams params = dense_params({CheckpointFormat::modelopt, ScaleDraw::exact, 1, 16, 64, 1, 1});
  BOOST_TEST(illegal_repack(CheckpointFormat::modelopt, params) == nullptr);
  params.scales_granule = 8;
  BOOST_TEST(illegal_repack(CheckpointFormat::modelopt, params) != nullptr);
  params = dense_params({CheckpointFormat::modelopt, ScaleDraw::exact, 1, 16, 64, 70000, 1});
  BOOST_TEST(illegal_repack(CheckpointFormat::modelopt, params) != nullptr);
}

BOOST_AUTO_TEST_CASE(global_scales_are_read_both_ways_and_bad_ones_refused) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const GlobalScale form : {GlobalScale::factor, GlobalScale::reciprocal}) {
    for (const float bad : {0.0f, -0.0f, -1.0f, infinity, -infinity, nan})
      BOOST_TEST(illegal_global_scale(form, bad) != nullptr);
    BOOST_TEST(illegal_global_scale(form, 1.0f) == nullptr);
  }
  BOOST_TEST(global_scale_factor(GlobalScale::factor, 0.25f) == 0.25f);
  BOOST_TEST(global_scale_factor(GlobalScale::reciprocal, 2688.0f) == 1.0f / 2688.0f);
  // the kernels' factor of 128 must stay finite
  const float largest = std::numeric_limits<float>::max();
  BOOST_TEST(illegal_global_scale(GlobalScale::factor, largest / 128) == nullptr);
  BOOST_TEST(illegal_global_scale(GlobalScale::factor, std::nextafter(largest / 128, largest)) != nullptr);
  BOOST_TEST(illegal_global_scale(GlobalScale::reciprocal, largest) == nullptr);
  const float least = 1.0f / max_global_scale;
  BOOST_TEST(illegal_global_scale(GlobalScale::reciprocal, least) == nullptr);
  BOOST_TEST(std::isfinite(128 * global_scale_factor(GlobalScale::reciprocal, least)));
  BOOST_TEST(illegal_global_scale(GlobalScale::reciprocal, std::nextafter(least, 0.0f)) != nullptr);
  BOOST_TEST(illegal_global_scale(GlobalScale::reciprocal, std::numeric_limits<float>::denorm_min()) != nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
