// Tests of core/rules.h: legality at the edges of every lever and of shapes. Run by ctest as unit.rules.
#include <boost/test/unit_test.hpp>

#include <fulcrum/core/rules.h>

#include <string>

using namespace fulcrum;

namespace {

constexpr KernelKind plain_f16{DType::f16, false, Activation::none};
constexpr Shape layer{1280, 4096, 288, 288, 0, 8, DType::f16, Projection::gate_up, Activation::silu};

std::string reason_of(const Shape& shape) {
  const char* reason = illegal_reason(default_config(kernel_kind(shape), Arch{80}), Arch{90}, shape);
  return reason == nullptr ? "" : reason;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rules)

BOOST_AUTO_TEST_CASE(the_default_is_legal_everywhere) {
  for (const int cc : supported_archs)
    for (const DType dtype : {DType::f16, DType::bf16})
      for (const bool gate_up : {false, true}) {
        const KernelKind kind{dtype, gate_up, gate_up ? Activation::silu : Activation::none};
        BOOST_TEST(illegal_reason(default_config(kind, Arch{cc}), Arch{cc}, kind) == nullptr);
      }
  BOOST_TEST(illegal_reason(default_config(plain_f16, Arch{80}), Arch{75}, plain_f16) != nullptr);
}

// No number that a text can hold overflows, divides by zero or passes: 2^29 warps times 8 tokens is 0 in 32 bits.
BOOST_AUTO_TEST_CASE(extreme_numbers_have_a_reason) {
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    if (lever_infos[lever].values.count > 0) continue;
    for (const int32_t value : {268435456, 536870912, 999999999}) {
      Config config = default_config(plain_f16, Arch{80});
      config.copy = Copy::bulk;
      set_lever(config, lever, value);
      BOOST_TEST_CONTEXT(lever_infos[lever].name << "=" << value)
      BOOST_TEST(illegal_reason(config, Arch{90}, plain_f16) != nullptr);
    }
  }
  Config none = default_config(plain_f16, Arch{80});
  none.warps_m = 0;
  BOOST_TEST(illegal_reason(none, Arch{90}, plain_f16) != nullptr);
}

BOOST_AUTO_TEST_CASE(registers_come_from_four_files) {
  Config config = default_config(plain_f16, Arch{80});
  config.copy = Copy::bulk;  // 4 + 1 warps
  BOOST_TEST(registers_for_blocks(config, 1) == 255);
  BOOST_TEST(registers_for_blocks(config, 2) == 168);  // 10 warps: three in a file of 512 registers a lane
  BOOST_TEST(registers_for_blocks(config, 4) == 96);   // 20 warps: five in a file, 102 rounded down to a step of 8
}

BOOST_AUTO_TEST_CASE(shapes_have_bounds) {
  BOOST_TEST(reason_of(layer) == "");
  for (const uint32_t n : {0u, 17u, (1u << 30) + 16, 4294967280u}) {
    Shape shape = layer;
    shape.n = n;
    BOOST_TEST(reason_of(shape) == "n is a positive multiple of 16, at most 2^30");
    shape = layer;
    shape.k = n;
    BOOST_TEST(reason_of(shape) == "k is a positive multiple of 16, at most 2^30");
  }
  Shape shape = layer;
  shape.first_expert = 1;
  BOOST_TEST(reason_of(shape) != "");
  shape = layer;
  shape.top_k = 33;
  BOOST_TEST(reason_of(shape) != "");
}

BOOST_AUTO_TEST_CASE(every_part_of_k_has_columns) {
  Config config = default_config(plain_f16, Arch{80});
  config.split_k = 4;
  Shape shape = layer;
  shape.dtype = DType::f16;
  const auto legal_at = [&](uint32_t k) {
    shape.k = k;
    return illegal_reason(config, Arch{90}, shape) == nullptr;
  };
  BOOST_TEST(!legal_at(192));  // three units of 64 columns
  BOOST_TEST(legal_at(208));
}

BOOST_AUTO_TEST_CASE(blocks_per_sm_is_of_persistent_grids) {
  Config config = default_config(plain_f16, Arch{80});
  config.blocks_per_sm = 2;
  BOOST_TEST(illegal_reason(config, Arch{90}, plain_f16) == nullptr);
  config.grid_extent = GridExtent::bound;
  BOOST_TEST(illegal_reason(config, Arch{90}, plain_f16) != nullptr);
}

// 36-byte blocks: what cannot copy them or expects packed words is refused; k must be whole blocks.
BOOST_AUTO_TEST_CASE(weights_read_in_place_are_copied_in_words) {
  const Layout in_place{CodeWord::block36, KOrder::natural};
  const auto reason = [&](auto change) -> std::string {
    Config config = default_config(plain_f16, Arch{90}, in_place);
    change(config);
    const char* words = illegal_reason(config, Arch{90}, plain_f16);
    return words == nullptr ? "" : words;
  };
  BOOST_TEST(reason([](Config&) {}) == "");
  BOOST_TEST(reason([](Config& c) { c.copy = Copy::bulk; }).find("copy=cp_async") != std::string::npos);
  BOOST_TEST(reason([](Config& c) { c.l2_hint = L2Hint::weights; }).find("l2_hint=none") != std::string::npos);
  BOOST_TEST(reason([](Config& c) { c.k_order = KOrder::permuted; }).find("k_order=natural") != std::string::npos);
  BOOST_TEST(reason([](Config& c) { c.dequant = Dequant::prmt; }).find("dequant=bits") != std::string::npos);
  BOOST_TEST(reason([](Config& c) { c.scale_decode = ScaleDecode::cvt; }).find("scale_decode=bits") !=
             std::string::npos);
  Shape shape = layer;
  for (const int cc : supported_archs) {
    const Config config = default_config(kernel_kind(shape), Arch{cc}, in_place);
    BOOST_TEST((layout_of(config) == in_place));
    shape.k = 640;
    BOOST_TEST(illegal_reason(config, Arch{cc}, shape) == nullptr);
    shape.k = 656;
    BOOST_TEST(std::string(illegal_reason(config, Arch{cc}, shape)) ==
               "code_word=block36 needs k to be a multiple of 64, the columns of a block");
  }
}

BOOST_AUTO_TEST_CASE(converted_scales_are_of_plain_words_and_sm_89) {
  constexpr KernelKind plain_bf16{DType::bf16, false, Activation::none};
  const auto reason = [](CodeWord code_word, Arch arch, KernelKind kind) -> std::string {
    Config config = default_config(kind, Arch{80});
    config.code_word = code_word;
    config.scale_decode = ScaleDecode::cvt;
    const char* words = illegal_reason(config, arch, kind);
    return words == nullptr ? "" : words;
  };
  for (const KernelKind kind : {plain_f16, plain_bf16}) {
    BOOST_TEST(reason(CodeWord::plain, Arch{89}, kind) == "");
    BOOST_TEST(reason(CodeWord::plain, Arch{90}, kind) == "");
    BOOST_TEST(reason(CodeWord::plain, Arch{86}, kind) == "scale_decode=cvt needs sm_89 or later");
  }
  const std::string placed =
      "scale_decode=cvt converts the E4M3 scales of code_word=plain: other code words hold placed bits";
  BOOST_TEST(reason(CodeWord::f16, Arch{90}, plain_f16) == placed);
  BOOST_TEST(reason(CodeWord::bf16, Arch{90}, plain_bf16) == placed);
}

// What texts without the lever mean, and the names of kernels with and without it.
BOOST_AUTO_TEST_CASE(scale_decode_has_a_text_and_a_name) {
  Config config;
  BOOST_REQUIRE(parse_config("code_word=plain,dequant=prmt", config).what == nullptr);
  BOOST_TEST((config.scale_decode == ScaleDecode::bits));
  char text[config_text_capacity];
  const auto has = [&](const char* words) { return std::string(text).find(words) != std::string::npos; };
  (void)write_id(config, text, config_text_capacity);
  BOOST_TEST(!has("_sd"));
  BOOST_REQUIRE(parse_config("scale_decode=cvt", config).what == nullptr);
  (void)write_id(config, text, config_text_capacity);
  BOOST_TEST(has("_sdcvt"));
  BOOST_TEST(write_config(config, text, config_text_capacity) < config_text_capacity);
  BOOST_TEST(has(",scale_decode=cvt,"));
  Config again;
  BOOST_REQUIRE(parse_config(text, again).what == nullptr);
  BOOST_TEST((again == config));
  BOOST_TEST(parse_config("scale_decode=fma", again).what == "no such value");
}

BOOST_AUTO_TEST_SUITE_END()
