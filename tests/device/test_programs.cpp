// Programs over single instructions (tests/programs) against results that plain loops compute from the layouts of the
// PTX ISA: copies by tensor map, runs and groups, mbarrier phases, fragments, conversions, and wgmma with its
// descriptors.
//
// Run by ctest as device.programs; needs a GPU of compute capability 9.0. The emulator's tests compile this file too,
// so it reaches the device through host headers alone.
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>

#include <fulcrum/core/nvfp4.h>
#include <fulcrum/host/tensor_map.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

#include "../programs/programs.hpp"
#include "harness/device_memory.hpp"

using namespace fulcrum;
using namespace fulcrum::programs;
using fulcrum::harness::DeviceBuffer;
using fulcrum::harness::require;

namespace {

boost::test_tools::assertion_result needs_hopper(boost::unit_test::test_unit_id id) {
  boost::test_tools::assertion_result result = needs_gpu(id);
  if (!result) return result;
  result = query_device(0)->arch.cc == 90;
  if (!result) result.message() << "the programs are machine code for compute capability 9.0";
  return result;
}

template <class Params>
void run(const char* name, Params& params, uint32_t threads, uint32_t shared_bytes) {
  const cuda_api::Function function = program(name);
  BOOST_REQUIRE_MESSAGE(function.address != nullptr, "there is no program " << name);
  void* arguments[] = {&params};
  require(cuda_api::launch(function, {1, threads, shared_bytes}, nullptr, arguments), std::string(name) + ": ");
  require(cuda_api::synchronize(nullptr), std::string(name) + ": ");
}

template <class T>
DeviceBuffer<T> upload(const std::vector<T>& values) {
  return DeviceBuffer<T>(values, nullptr);
}

TensorMap encoded(const TensorMap2d& tensor) {
  const Result<TensorMap> map = encode_tensor_map(tensor);
  require(map.status());
  return *map;
}

void expect_words(const DeviceBuffer<uint32_t>& out, const std::vector<uint32_t>& expected) {
  const std::vector<uint32_t> actual = out.download(nullptr);
  BOOST_REQUIRE_EQUAL(actual.size(), expected.size());
  const auto wrong = std::mismatch(actual.begin(), actual.end(), expected.begin());
  if (wrong.first != actual.end()) {
    BOOST_ERROR("word " << wrong.first - actual.begin() << " is " << std::hex << *wrong.first << " and should be "
                        << *wrong.second);
  } else {
    BOOST_TEST(true);
  }
}

std::vector<uint32_t> words_of(const std::vector<uint8_t>& bytes) {
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

uint32_t float_word(float value) {
  uint32_t word = 0;
  std::memcpy(&word, &value, 4);
  return word;
}

/// A number that looks random, of 24 bits.
uint32_t noise(uint32_t index) { return (index * 2654435761u ^ index * index * 40503u) >> 8; }

std::vector<uint8_t> noise_bytes(size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(noise(static_cast<uint32_t>(i)) >> 7);
  return bytes;
}

/// Bits of an integer from -8 to 8.
uint16_t bits_of(DType dtype, int value) {
  if (value == 0) return 0;
  uint32_t exponent = 0;
  const auto magnitude = static_cast<uint32_t>(std::abs(value));
  while (magnitude >> (exponent + 1) != 0) ++exponent;
  const uint32_t fraction = magnitude - (1u << exponent);  // of 2^exponent
  const uint32_t sign = value < 0 ? 0x8000 : 0;
  return static_cast<uint16_t>(dtype == DType::f16 ? sign | (exponent + 15) << 10 | fraction << (10 - exponent)
                                                   : sign | (exponent + 127) << 7 | fraction << (7 - exponent));
}

/// Small integers, and their 16-bit floats row by row.
struct Matrix {
  uint32_t rows, columns;
  std::vector<int> values;

  Matrix(uint32_t num_rows, uint32_t num_columns, uint32_t seed) : rows(num_rows), columns(num_columns) {
    for (uint32_t i = 0; i < rows * columns; ++i)
      values.push_back(static_cast<int>(noise(i + 7919 * seed) >> 5) % 9 - 4);
  }
  int at(uint32_t row, uint32_t column) const { return values[row * columns + column]; }
  /// Columns `column` and `column` + 1, as a register holds them.
  uint32_t pair(DType dtype, uint32_t row, uint32_t column) const {
    return bits_of(dtype, at(row, column)) | static_cast<uint32_t>(bits_of(dtype, at(row, column + 1))) << 16;
  }
  std::vector<uint8_t> bytes(DType dtype) const {
    std::vector<uint8_t> all;
    for (const int value : values) {
      all.push_back(static_cast<uint8_t>(bits_of(dtype, value) & 0xFF));
      all.push_back(static_cast<uint8_t>(bits_of(dtype, value) >> 8));
    }
    return all;
  }
};

int product(const Matrix& weights, uint32_t output, const Matrix& tokens, uint32_t token) {
  int sum = 0;
  for (uint32_t k = 0; k < weights.columns; ++k) sum += weights.at(output, k) * tokens.at(token, k);
  return sum;
}

// Tensor copies out of one matrix with a gap behind each row.
constexpr uint32_t source_rows = 37, source_columns = 100;

struct BoxCase {
  uint32_t element_bytes, box_columns, box_rows;
  TensorSwizzle swizzle;
  int32_t x, y;
};

constexpr BoxCase box_cases[] = {
    {2, 64, 16, TensorSwizzle::bytes_128, 0, 0},
    {2, 64, 16, TensorSwizzle::bytes_128, 64, 30},  // out at the right and below
    {2, 64, 8, TensorSwizzle::bytes_128, -8, -3},   // out at the left and above
    {2, 64, 200, TensorSwizzle::bytes_128, 16, 1},
    {1, 128, 24, TensorSwizzle::bytes_128, 16, 20},
    {2, 64, 24, TensorSwizzle::none, 40, 20},
    {2, 8, 40, TensorSwizzle::none, 96, -1},     // rows of 16 bytes
    {2, 256, 64, TensorSwizzle::none, -8, -10},  // the whole matrix and zeros around it
    {2, 24, 7, TensorSwizzle::none, -24, 0},     // nothing of it
    {1, 48, 9, TensorSwizzle::none, 80, 33},
};

std::vector<uint32_t> expected_box(const BoxCase& box, const std::vector<uint8_t>& source, uint64_t row_bytes) {
  std::vector<uint8_t> bytes(box_capacity, static_cast<uint8_t>(untouched));
  for (uint32_t i = 0; i < box.box_rows; ++i) {
    for (uint32_t j = 0; j < box.box_columns * box.element_bytes; ++j) {
      const int64_t row = box.y + int64_t{i}, column = box.x + int64_t{j / box.element_bytes};
      const bool inside = row >= 0 && row < source_rows && column >= 0 && column < source_columns;
      const uint64_t from = static_cast<uint64_t>(row) * row_bytes + static_cast<uint64_t>(column) * box.element_bytes +
                            j % box.element_bytes;
      const uint32_t to = box.swizzle == TensorSwizzle::none ? i * box.box_columns * box.element_bytes + j
                                                             : i * 128 + (j / 16 ^ i % 8) * 16 + j % 16;
      bytes[to] = inside ? source[from] : uint8_t{0};
    }
  }
  return words_of(bytes);
}

void check_box(const BoxCase& box) {
  BOOST_TEST_INFO_SCOPE("box " << box.box_columns << " x " << box.box_rows << " at " << box.x << ", " << box.y);
  const uint64_t row_bytes = source_columns * box.element_bytes / 16 * 16 + 32;
  const std::vector<uint8_t> source = noise_bytes(source_rows * row_bytes);
  const DeviceBuffer<uint8_t> memory = upload(source);
  const DeviceBuffer<uint32_t> out(box_capacity / 4);
  TensorMap2d tensor;
  tensor.base = memory.data();
  tensor.columns = source_columns;
  tensor.rows = source_rows;
  tensor.row_bytes = row_bytes;
  tensor.box_columns = box.box_columns;
  tensor.box_rows = box.box_rows;
  tensor.swizzle = box.swizzle;
  tensor.element_bytes = box.element_bytes;
  TensorCopyParams params{encoded(tensor), out.data(), box.x, box.y, box_bytes(tensor)};
  run("tensor_copy", params, 128, tensor_copy_shared_bytes);
  expect_words(out, expected_box(box, source, row_bytes));
}

// wgmma: each size with everything that can differ beside it.
struct WgmmaCase {
  const char* program;
  uint32_t n;
  DType dtype;
  TensorSwizzle swizzle;
  TileFill fill;
};

TensorMap tile_map(const DeviceBuffer<uint8_t>& memory, uint32_t rows, TensorSwizzle swizzle) {
  TensorMap2d tensor;
  tensor.base = memory.data();
  tensor.columns = wgmma_k;
  tensor.rows = rows;
  tensor.row_bytes = wgmma_row_bytes;
  tensor.box_columns = swizzle == TensorSwizzle::none ? 8 : wgmma_k;
  tensor.box_rows = rows;
  tensor.swizzle = swizzle;
  return encoded(tensor);
}

void check_wgmma(const WgmmaCase& each) {
  BOOST_TEST_INFO_SCOPE("n " << each.n << (each.dtype == DType::f16 ? " f16" : " bf16")
                             << (each.swizzle == TensorSwizzle::none ? " plain" : " swizzled")
                             << (each.fill == TileFill::copied ? " copied" : " stored"));
  const Matrix weights(wgmma_outputs, wgmma_k, 1), tokens(each.n, wgmma_k, 2);
  const DeviceBuffer<uint8_t> weight_memory = upload(weights.bytes(each.dtype));
  const DeviceBuffer<uint8_t> token_memory = upload(tokens.bytes(each.dtype));
  const DeviceBuffer<uint32_t> out(wgmma_outputs * each.n);
  WgmmaParams params{};
  params.tokens_map = tile_map(token_memory, each.n, each.swizzle);
  params.weights_map = tile_map(weight_memory, wgmma_outputs, each.swizzle);
  params.tokens = token_memory.data();
  params.weights = weight_memory.data();
  params.out = out.data();
  params.n = each.n;
  params.dtype = each.dtype;
  params.swizzle = each.swizzle;
  params.fill = each.fill;
  run(each.program, params, wgmma_threads, wgmma_shared_bytes(each.n));
  std::vector<uint32_t> expected;
  for (uint32_t output = 0; output < wgmma_outputs; ++output)
    for (uint32_t token = 0; token < each.n; ++token)
      expected.push_back(float_word(static_cast<float>(product(weights, output, tokens, token))));
  expect_words(out, expected);
}

void check_wgmma_program(const char* program) {
  for (const uint32_t n : {8u, 16u, 24u, 32u, 64u, 128u})
    for (const DType dtype : {DType::f16, DType::bf16})
      for (const TensorSwizzle swizzle : {TensorSwizzle::bytes_128, TensorSwizzle::none})
        for (const TileFill fill : {TileFill::copied, TileFill::stored})
          check_wgmma({program, n, dtype, swizzle, fill});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(programs, *boost::unit_test::precondition(needs_hopper))

BOOST_AUTO_TEST_CASE(tensor_copy) {
  for (const BoxCase& box : box_cases) check_box(box);
}

BOOST_AUTO_TEST_CASE(bulk_copy) {
  for (const uint32_t bytes : {16u, 48u, 4096u, run_capacity}) {
    std::vector<uint8_t> expected = noise_bytes(bytes);
    const DeviceBuffer<uint8_t> in = upload(expected);
    const DeviceBuffer<uint32_t> out(run_capacity / 4);
    BulkCopyParams params{in.data(), out.data(), bytes};
    run("bulk_copy", params, 128, bulk_copy_shared_bytes);
    expected.resize(run_capacity, static_cast<uint8_t>(untouched));
    expect_words(out, words_of(expected));
  }
}

BOOST_AUTO_TEST_CASE(cp_async_groups) {
  std::vector<uint8_t> pieces = noise_bytes(cp_async_threads * 16), words = noise_bytes(cp_async_threads * 4);
  const DeviceBuffer<uint8_t> piece_memory = upload(pieces), word_memory = upload(words);
  const DeviceBuffer<uint32_t> out_pieces(cp_async_threads * 4), out_words(cp_async_threads);
  CpAsyncParams params{piece_memory.data(), word_memory.data(), out_pieces.data(), out_words.data()};
  run("cp_async_groups", params, cp_async_threads, cp_async_shared_bytes);
  std::vector<uint8_t> expected_pieces(pieces.size()), expected_words(words.size());
  for (uint32_t thread = 0; thread < cp_async_threads; ++thread) {
    const uint32_t neighbour = thread ^ 1;
    std::copy_n(pieces.begin() + 16 * neighbour, neighbour % 17, expected_pieces.begin() + 16 * thread);
    std::copy_n(words.begin() + 4 * neighbour, neighbour % 5, expected_words.begin() + 4 * thread);
  }
  expect_words(out_pieces, words_of(expected_pieces));
  expect_words(out_words, words_of(expected_words));
}

BOOST_AUTO_TEST_CASE(mbarrier_phases) {
  const std::vector<uint32_t> in = words_of(noise_bytes(phase_rounds * 32 * 4));
  const DeviceBuffer<uint32_t> in_memory = upload(in), out(in.size());
  PhasesParams params{in_memory.data(), out.data()};
  run("mbarrier_phases", params, 64, phases_shared_bytes);
  std::vector<uint32_t> expected(in.size());
  for (uint32_t i = 0; i < in.size(); ++i) expected[i] = in[i / 32 * 32 + 31 - i % 32];
  expect_words(out, expected);
}

BOOST_AUTO_TEST_CASE(fragments) {
  const Matrix weights(16, 16, 3), tokens(8, 16, 4);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const DeviceBuffer<uint8_t> weight_memory = upload(weights.bytes(dtype)),
                                token_memory = upload(tokens.bytes(dtype));
    const DeviceBuffer<uint32_t> out(32 * fragment_words);
    FragmentsParams params{weight_memory.data(), token_memory.data(), out.data(), dtype};
    run("fragments", params, 32, fragments_shared_bytes);
    std::vector<uint32_t> expected;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t r = lane / 4, c = 2 * (lane % 4);
      for (uint32_t i = 0; i < 4; ++i) expected.push_back(weights.pair(dtype, r + 8 * (i % 2), c + 8 * (i / 2)));
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t row = 8 * (i % 2) + c, column = 8 * (i / 2) + r;
        expected.push_back(bits_of(dtype, weights.at(row, column)) |
                           static_cast<uint32_t>(bits_of(dtype, weights.at(row + 1, column))) << 16);
      }
      for (uint32_t i = 0; i < 4; ++i) {
        const int sum = product(weights, r + 8 * (i / 2), tokens, c + i % 2);
        expected.push_back(float_word(static_cast<float>(sum + static_cast<int>(4 * lane + i))));
      }
    }
    expect_words(out, expected);
  }
}

BOOST_AUTO_TEST_CASE(e4m3) {
  const DeviceBuffer<uint32_t> out(e4m3_threads * 2);
  E4m3Params params{out.data()};
  run("e4m3", params, e4m3_threads, 0);
  const auto half = [](uint32_t byte) -> uint32_t {
    if (e4m3_is_nan(byte)) return 0x7FFF;
    const uint32_t times_128 = e5m3_from_e4m3(byte & 0x7F) << 7;
    return (byte & 0x80) << 8 | (times_128 == 0 ? 0 : times_128 - (7u << 10));
  };
  std::vector<uint32_t> expected;
  for (uint32_t byte = 0; byte < 256; byte += 2) expected.push_back(half(byte) | half(byte + 1) << 16);
  expect_words(out, expected);
}

BOOST_AUTO_TEST_CASE(wgmma_registers) { check_wgmma_program("wgmma_registers"); }

BOOST_AUTO_TEST_CASE(wgmma_descriptors) { check_wgmma_program("wgmma_descriptors"); }

BOOST_AUTO_TEST_SUITE_END()
