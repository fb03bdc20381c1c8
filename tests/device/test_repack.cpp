// The repack kernels against the CPU reference, bit for bit, both ways: all kinds on odd shapes, every granule of
// copies, strided rows, pointer tables, refusals, and one bank over 2^31 bytes.
//
// Built twice: ctest runs device.repack_device on a GPU, and what is small enough on the CPU as emulator.repack_device.
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>

#include <fulcrum/pack/reference.hpp>

#include <vector>

#include "harness/checkpoint.hpp"
#include "harness/device_memory.hpp"
#include "harness/repack_device.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

using Bytes = DeviceBuffer<uint8_t>;

constexpr uint8_t guard = 0xA5;
constexpr uint64_t guard_bytes = 256;  // behind every output

std::vector<RepackKind> kinds_of(CheckpointFormat format) {
  std::vector<RepackKind> kinds;
  for (const CodeWord code_word : {CodeWord::plain, CodeWord::f16, CodeWord::bf16})
    for (const KOrder k_order : {KOrder::natural, KOrder::permuted}) kinds.push_back({format, {code_word, k_order}});
  return kinds;
}

// How a part's bank lies in device memory: bytes in front of it, and bytes between its rows.
struct Placing {
  uint64_t codes_shift = 0, scales_shift = 0;
  uint64_t codes_gap = 0, scales_gap = 0;
};

// Dense rows spread to a stride, with the guard byte in front, between and behind.
std::vector<uint8_t> spread_rows(const std::vector<uint8_t>& dense, uint64_t row_bytes, uint64_t gap, uint64_t shift) {
  if (row_bytes == 0) return {};
  std::vector<uint8_t> bytes(shift + dense.size() / row_bytes * (row_bytes + gap) + guard_bytes, guard);
  for (uint64_t row = 0; row * row_bytes < dense.size(); ++row)
    for (uint64_t at = 0; at < row_bytes; ++at)
      bytes[shift + row * (row_bytes + gap) + at] = dense[row * row_bytes + at];
  return bytes;
}

// A checkpoint on the device, as a Placing lays it out.
struct DeviceCheckpoint {
  Bytes codes[2], scales[2], refusal{sizeof no_refusal};
  RepackParams params;

  DeviceCheckpoint(const Checkpoint& checkpoint, const Placing& placing) {
    const CheckpointRecipe& recipe = checkpoint.recipe;
    params = dense_params(recipe);
    const uint64_t codes_row = params.codes_row_bytes, scales_row = params.scales_row_bytes;
    params.codes_row_bytes += placing.codes_gap;
    params.scales_row_bytes += placing.scales_gap;
    const uint64_t codes_expert = part_rows(recipe) * params.codes_row_bytes;
    const uint64_t scales_expert = part_rows(recipe) * params.scales_row_bytes;
    for (uint32_t part = 0; part < recipe.num_parts; ++part) {
      codes[part] =
          Bytes(spread_rows(checkpoint.codes[part], codes_row, placing.codes_gap, placing.codes_shift), nullptr);
      scales[part] =
          Bytes(spread_rows(checkpoint.scales[part], scales_row, placing.scales_gap, placing.scales_shift), nullptr);
      params.parts[part].codes = {codes[part].data() + placing.codes_shift, nullptr, codes_expert};
      params.parts[part].scales = {scales[part].data() + placing.scales_shift, nullptr, scales_expert};
    }
    // device allocations are 256-byte aligned, so a shift says what an address is a multiple of
    params.codes_granule = copy_granule(placing.codes_shift | params.codes_row_bytes | codes_expert);
    params.scales_granule = copy_granule(placing.scales_shift | params.scales_row_bytes | scales_expert);
    params.refusal = reinterpret_cast<uint64_t*>(refusal.data());
  }

  uint64_t refusal_word() const {
    const std::vector<uint8_t> bytes = refusal.download(nullptr);
    return reference::load_word(bytes.data()) | uint64_t(reference::load_word(bytes.data() + 4)) << 32;
  }
};

uint64_t first_difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  for (uint64_t at = 0; at < a.size(); ++at)
    if (a[at] != b[at]) return at;
  return ~uint64_t(0);
}

void compare(RepackKind kind, const CheckpointRecipe& recipe, const Placing& placing = {}) {
  BOOST_TEST_CONTEXT("format " << int(kind.format) << " code word " << int(kind.layout.code_word) << " k order "
                               << int(kind.layout.k_order) << " n " << recipe.n << " k " << recipe.k << " experts "
                               << recipe.num_experts << " parts " << recipe.num_parts) {
    Checkpoint checkpoint = make_checkpoint(recipe);
    std::vector<uint8_t> expected(recipe.num_experts * expert_bytes(recipe.n, recipe.k));
    RepackParams host = checkpoint_params(checkpoint);
    host.packed = expected.data();
    BOOST_REQUIRE_EQUAL(reference::pack(kind, host), no_refusal);
    expected.resize(expected.size() + guard_bytes, guard);

    DeviceCheckpoint device(checkpoint, placing);
    Bytes packed(expected.size());
    require(cuda_api::memset_async(packed.data(), guard, packed.bytes(), nullptr));
    device.params.packed = packed.data();
    run_repack(kind, RepackDirection::pack, device.params, nullptr);
    BOOST_TEST(first_difference(packed.download(nullptr), expected) == ~uint64_t(0));
    BOOST_TEST(device.refusal_word() == no_refusal);

    const Checkpoint blank = empty_checkpoint(recipe), wanted = canonical(checkpoint);
    DeviceCheckpoint back(blank, placing);
    back.params.packed = packed.data();
    run_repack(kind, RepackDirection::unpack, back.params, nullptr);
    const RepackParams dense = dense_params(recipe);
    for (uint32_t part = 0; part < recipe.num_parts; ++part) {
      const auto codes = spread_rows(wanted.codes[part], dense.codes_row_bytes, placing.codes_gap, placing.codes_shift);
      const auto scales =
          spread_rows(wanted.scales[part], dense.scales_row_bytes, placing.scales_gap, placing.scales_shift);
      BOOST_TEST(first_difference(back.codes[part].download(nullptr), codes) == ~uint64_t(0));
      BOOST_TEST(first_difference(back.scales[part].download(nullptr), scales) == ~uint64_t(0));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(repack_device, *boost::unit_test::precondition(needs_gpu))

BOOST_AUTO_TEST_CASE(all_kinds_on_odd_shapes) {
  for (const RepackKind kind : kinds_of(CheckpointFormat::block36))
    for (const uint32_t parts : {1u, 2u}) {
      compare(kind, {kind.format, ScaleDraw::any, 11, 160, 704, 3, parts});
      compare(kind, {kind.format, ScaleDraw::model, 12, 48, 64, 2, parts});
    }
  for (const RepackKind kind : kinds_of(CheckpointFormat::modelopt))
    for (const uint32_t parts : {1u, 2u}) {
      compare(kind, {kind.format, ScaleDraw::any, 13, 160, 672, 3, parts});
      compare(kind, {kind.format, ScaleDraw::model, 14, 80, 16, 2, parts});
    }
}

BOOST_AUTO_TEST_CASE(shapes_of_models, *boost::unit_test::precondition(not_emulated)) {
  for (const CheckpointFormat format : {CheckpointFormat::block36, CheckpointFormat::modelopt}) {
    const RepackKind natural{format, {CodeWord::f16, KOrder::natural}},
        permuted{format, {CodeWord::bf16, KOrder::permuted}};
    compare(natural, {format, ScaleDraw::any, 21, 1856, 2688, 1, 1});
    compare(permuted, {format, ScaleDraw::model, 22, 2880, 2880, 1, 1});
    compare(natural, {format, ScaleDraw::exact, 23, 1280, 4096, 2, 2});
    compare(permuted, {format, ScaleDraw::any, 24, 4096, 640, 2, 1});
  }
}

BOOST_AUTO_TEST_CASE(copies_of_every_granule) {
  const RepackKind blocks{CheckpointFormat::block36, {CodeWord::f16, KOrder::natural}};
  // 1024 columns are 576 bytes of blocks: dense rows allow 16-byte copies, a shift or a gap of 4 does not
  for (const Placing& placing : {Placing{}, Placing{4, 0, 0, 0}, Placing{0, 0, 4, 0}, Placing{16, 0, 16, 0}})
    compare(blocks, {blocks.format, ScaleDraw::any, 31, 96, 1024, 2, 2}, placing);
  const RepackKind tensors{CheckpointFormat::modelopt, {CodeWord::bf16, KOrder::natural}};
  for (const Placing& placing :
       {Placing{}, Placing{4, 4, 0, 0}, Placing{0, 1, 0, 0}, Placing{0, 0, 8, 3}, Placing{16, 0, 0, 4}})
    compare(tensors, {tensors.format, ScaleDraw::any, 32, 96, 1024, 2, 2}, placing);
}

BOOST_AUTO_TEST_CASE(experts_from_a_pointer_table) {
  const RepackKind kind{CheckpointFormat::modelopt, {CodeWord::f16, KOrder::natural}};
  const CheckpointRecipe recipe{kind.format, ScaleDraw::any, 41, 64, 192, 5, 2};
  Checkpoint checkpoint = make_checkpoint(recipe);
  DeviceCheckpoint device(checkpoint, {});
  Bytes from_bank(5 * expert_bytes(64, 192)), from_table(from_bank.size());
  device.params.packed = from_bank.data();
  run_repack(kind, RepackDirection::pack, device.params, nullptr);
  std::vector<Bytes> tables;
  for (uint32_t part = 0; part < 2; ++part)
    for (ExpertArray* array : {&device.params.parts[part].codes, &device.params.parts[part].scales}) {
      std::vector<uint8_t> pointers;
      for (uint32_t expert = 0; expert < 5; ++expert) {
        const auto address = reinterpret_cast<uint64_t>(array->bank) + expert * array->expert_bytes;
        for (uint32_t i = 0; i < 8; ++i) pointers.push_back(static_cast<uint8_t>(address >> 8 * i));
      }
      tables.emplace_back(pointers, nullptr);
      *array = {nullptr, reinterpret_cast<void* const*>(tables.back().data()), 0};
    }
  device.params.packed = from_table.data();
  run_repack(kind, RepackDirection::pack, device.params, nullptr);
  BOOST_TEST(first_difference(from_bank.download(nullptr), from_table.download(nullptr)) == ~uint64_t(0));
}

BOOST_AUTO_TEST_CASE(the_first_refused_scale_is_reported_whatever_the_block_order) {
  constexpr uint32_t k = on_emulator ? 128 : 1024;
  for (const CheckpointFormat format : {CheckpointFormat::block36, CheckpointFormat::modelopt}) {
    const RepackKind kind{format, {CodeWord::f16, KOrder::natural}};
    Checkpoint checkpoint = make_checkpoint({format, ScaleDraw::exact, 51, 1280, k, 8, 2});
    const RepackParams dense = dense_params(checkpoint.recipe);
    for (uint32_t expert = 3; expert < 8; ++expert)
      for (uint32_t part = 0; part < 2; ++part)
        for (uint32_t row = 300; row < 640; row += 7) {
          const bool block36 = format == CheckpointFormat::block36;
          std::vector<uint8_t>& scales = block36 ? checkpoint.codes[part] : checkpoint.scales[part];
          const uint64_t row_bytes = block36 ? dense.codes_row_bytes : dense.scales_row_bytes;
          const uint32_t group = (row * 5 + expert) % (k / 16);
          scales[(uint64_t(expert) * 640 + row) * row_bytes + checkpoint_scale_byte(format, group)] = 0xFF;
        }
    RepackParams host = checkpoint_params(checkpoint);
    std::vector<uint8_t> expected(8 * expert_bytes(1280, k));
    host.packed = expected.data();
    DeviceCheckpoint device(checkpoint, {});
    Bytes packed(expected.size());
    device.params.packed = packed.data();
    run_repack(kind, RepackDirection::pack, device.params, nullptr);
    BOOST_TEST(device.refusal_word() == reference::pack(kind, host));
    BOOST_TEST(scale_refusal(device.refusal_word()).expert == 3u);
  }
}

// 2^31 bytes and more on either side; two experts, the first and the last, are compared with the reference.
BOOST_AUTO_TEST_CASE(a_bank_over_two_gigabytes, *boost::unit_test::precondition(not_emulated)) {
  const RepackKind kind{CheckpointFormat::block36, {CodeWord::f16, KOrder::natural}};
  const CheckpointRecipe recipe{kind.format, ScaleDraw::model, 61, 1024, 4096, 1000, 1};
  BOOST_REQUIRE_GT(recipe.num_experts * expert_bytes(recipe.n, recipe.k), uint64_t(1) << 31);
  Bytes codes(recipe.num_experts * codes_expert_bytes(recipe)), refusal(sizeof no_refusal);
  Bytes packed(recipe.num_experts * expert_bytes(recipe.n, recipe.k));
  require(fill_checkpoint(recipe, 0, codes.data(), nullptr, nullptr));
  RepackParams params = dense_params(recipe);
  params.parts[0].codes.bank = codes.data();
  params.packed = packed.data();
  params.refusal = reinterpret_cast<uint64_t*>(refusal.data());
  run_repack(kind, RepackDirection::pack, params, nullptr);
  for (const uint32_t expert : {0u, recipe.num_experts - 1}) {
    std::vector<uint8_t> blocks(codes_expert_bytes(recipe)), bytes(expert_bytes(recipe.n, recipe.k)),
        expected(bytes.size());
    require(cuda_api::copy_async(blocks.data(), codes.data() + expert * blocks.size(), blocks.size(), nullptr));
    require(cuda_api::copy_async(bytes.data(), packed.data() + expert * bytes.size(), bytes.size(), nullptr));
    require(cuda_api::synchronize(nullptr));
    for (uint64_t group = 0; group < 64; ++group) {  // the generator's own promise, on a bank this large
      const uint64_t index = expert * (num_groups(recipe) / recipe.num_experts) + group;
      const uint64_t at = scale_offset(recipe, index) - expert * blocks.size();
      BOOST_TEST(blocks[at] == draw_group(recipe, 0, index).scale);
    }
    RepackParams host = dense_params(recipe);
    host.num_experts = 1;
    host.parts[0].codes.bank = blocks.data();
    host.packed = expected.data();
    BOOST_TEST(reference::pack(kind, host) == no_refusal);
    BOOST_TEST(first_difference(bytes, expected) == ~uint64_t(0));
  }
}

BOOST_AUTO_TEST_CASE(the_generator_gives_the_same_bytes_on_both_sides) {
  for (const CheckpointFormat format : {CheckpointFormat::block36, CheckpointFormat::modelopt})
    for (const ScaleDraw scales : {ScaleDraw::exact, ScaleDraw::model, ScaleDraw::any}) {
      const CheckpointRecipe recipe{format, scales, 71, 64, 320, 3, 2};
      const Checkpoint expected = make_checkpoint(recipe);
      for (uint32_t part = 0; part < 2; ++part) {
        Bytes codes(expected.codes[part].size()), scale_bytes(expected.scales[part].size());
        require(fill_checkpoint(recipe, part, codes.data(), scale_bytes.data(), nullptr));
        BOOST_TEST(first_difference(codes.download(nullptr), expected.codes[part]) == ~uint64_t(0));
        BOOST_TEST(first_difference(scale_bytes.download(nullptr), expected.scales[part]) == ~uint64_t(0));
      }
    }
}

BOOST_AUTO_TEST_CASE(nothing_to_do_is_a_success) {
  const RepackKind kind{CheckpointFormat::block36, {CodeWord::f16, KOrder::natural}};
  Bytes refusal(sizeof no_refusal);
  RepackParams params = dense_params({kind.format, ScaleDraw::exact, 1, 64, 64, 0, 1});
  params.refusal = reinterpret_cast<uint64_t*>(refusal.data());
  BOOST_CHECK_NO_THROW(run_repack(kind, RepackDirection::pack, params, nullptr));
}

BOOST_AUTO_TEST_SUITE_END()
