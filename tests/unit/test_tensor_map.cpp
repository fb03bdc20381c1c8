// core/tensor_map.h and core/matrix_descriptor.h: what makes a tensor map illegal, the swizzle, and descriptors' bits.
//
// Run by ctest as unit.tensor_map; needs no GPU.
#include <boost/test/unit_test.hpp>

#include <fulcrum/core/matrix_descriptor.h>
#include <fulcrum/host/tensor_map.hpp>

#include <set>
#include <string>

using namespace fulcrum;

namespace {

alignas(16) constexpr uint8_t memory[32] = {};

TensorMap2d legal() {
  TensorMap2d tensor;
  tensor.base = memory;
  tensor.columns = 100;
  tensor.rows = 7;
  tensor.row_bytes = 208;
  tensor.box_columns = 64;
  tensor.box_rows = 8;
  tensor.swizzle = TensorSwizzle::bytes_128;
  return tensor;
}

template <class T>
std::string reason_with(T TensorMap2d::*field, T value) {
  TensorMap2d tensor = legal();
  tensor.*field = value;
  const char* reason = illegal_tensor_map(tensor);
  return reason == nullptr ? "" : reason;
}

constexpr uint64_t most = uint64_t{1} << 32;

}  // namespace

BOOST_AUTO_TEST_SUITE(tensor_map)

BOOST_AUTO_TEST_CASE(limits_are_named) {
  BOOST_TEST((illegal_tensor_map(legal()) == nullptr));
  BOOST_TEST(reason_with<const void*>(&TensorMap2d::base, nullptr) != "");
  BOOST_TEST(reason_with<const void*>(&TensorMap2d::base, memory + 8) != "");
  BOOST_TEST(reason_with<uint64_t>(&TensorMap2d::columns, 0) != "");
  BOOST_TEST(reason_with<uint64_t>(&TensorMap2d::columns, 105) != "");  // 210 bytes, rows 208 apart
  BOOST_TEST(reason_with<uint64_t>(&TensorMap2d::columns, 104) == "");
  BOOST_TEST(reason_with<uint64_t>(&TensorMap2d::rows, 0) != "");
  BOOST_TEST(reason_with<uint64_t>(&TensorMap2d::rows, most) == "");
  BOOST_TEST(reason_with<uint64_t>(&TensorMap2d::rows, most + 1) != "");
  BOOST_TEST(reason_with<uint64_t>(&TensorMap2d::row_bytes, 216) != "");
  BOOST_TEST(reason_with<uint64_t>(&TensorMap2d::row_bytes, uint64_t{1} << 40) != "");
  BOOST_TEST(reason_with<uint32_t>(&TensorMap2d::box_columns, 0) != "");
  BOOST_TEST(reason_with<uint32_t>(&TensorMap2d::box_columns, 60) != "");
  BOOST_TEST(reason_with<uint32_t>(&TensorMap2d::box_columns, 72) != "");  // 144 bytes in a swizzled row
  BOOST_TEST(reason_with<uint32_t>(&TensorMap2d::box_rows, 0) != "");
  BOOST_TEST(reason_with<uint32_t>(&TensorMap2d::box_rows, 256) == "");
  BOOST_TEST(reason_with<uint32_t>(&TensorMap2d::box_rows, 257) != "");
  BOOST_TEST(reason_with<uint32_t>(&TensorMap2d::element_bytes, 4) != "");
  BOOST_TEST(reason_with<uint32_t>(&TensorMap2d::element_bytes, 1) == "");
}

BOOST_AUTO_TEST_CASE(an_illegal_map_is_refused_with_words) {
  TensorMap2d tensor = legal();
  tensor.box_rows = 300;
  const Result<TensorMap> map = encode_tensor_map(tensor);
  BOOST_TEST((map.status().code == Code::invalid_argument));
  BOOST_TEST(message(map.status()) == "invalid argument: the tensor map cannot be made: a box has 1 to 256 rows");
}

BOOST_AUTO_TEST_CASE(a_map_is_aligned_wherever_it_lies) {
  struct {
    char before;
    TensorMap map;
  } held;
  BOOST_TEST(reinterpret_cast<uintptr_t>(&held.map) % 128 == 0u);
  BOOST_TEST(sizeof(TensorMap) == 128u);
}

BOOST_AUTO_TEST_CASE(swizzle_permutes_the_pieces_of_a_row) {
  for (uint32_t byte = 0; byte < 4096; ++byte) {
    const uint32_t row = byte / 128, piece = byte % 128 / 16;
    BOOST_REQUIRE(swizzled(TensorSwizzle::none, byte) == byte);
    BOOST_REQUIRE(swizzled(TensorSwizzle::bytes_128, byte) == row * 128 + (piece ^ row % 8) * 16 + byte % 16);
    BOOST_REQUIRE(swizzled(TensorSwizzle::bytes_128, swizzled(TensorSwizzle::bytes_128, byte)) == byte);
  }
}

BOOST_AUTO_TEST_CASE(descriptors_come_back) {
  static_assert(matrix_descriptor(0x2420) == (0x242ull | 1ull << 16 | 64ull << 32 | 1ull << 62));
  for (const TensorSwizzle swizzle : {TensorSwizzle::none, TensorSwizzle::bytes_128})
    for (const uint32_t start : {0u, 16u, 1024u, 0x3FFF0u})
      for (const uint32_t leading : {16u, 128u, 0x3FFF0u}) {
        MatrixDescriptor fields;
        BOOST_TEST(decode_matrix_descriptor(matrix_descriptor({start, leading, 2048, swizzle}), fields));
        BOOST_TEST((fields.start == start && fields.leading_bytes == leading && fields.stride_bytes == 2048 &&
                    fields.swizzle == swizzle));
      }
  MatrixDescriptor fields;
  BOOST_TEST(!decode_matrix_descriptor(matrix_descriptor(1024) | 1ull << 49, fields));  // a base offset
  BOOST_TEST(!decode_matrix_descriptor(2ull << 62, fields));                            // a swizzle of 64 bytes
}

BOOST_AUTO_TEST_CASE(operands_take_each_byte_once) {
  // 16 rows of one k16 step, from the third step of a swizzled tile, and of a plain one
  for (const MatrixDescriptor& fields :
       {MatrixDescriptor{2048 + 64}, MatrixDescriptor{2048, 256, 128, TensorSwizzle::none}}) {
    std::set<uint32_t> addresses;
    for (uint32_t row = 0; row < 16; ++row)
      for (uint32_t byte = 0; byte < 32; ++byte) addresses.insert(matrix_address(fields, row, byte));
    BOOST_TEST(addresses.size() == 16 * 32);
    BOOST_TEST(*addresses.begin() >= 2048);
    BOOST_TEST(*addresses.rbegin() < 2048 + 16 * swizzle_row_bytes);
  }
  BOOST_TEST(matrix_address({2048 + 64}, 9, 17) == 2048 + 9 * 128 + (5 ^ 1) * 16 + 1);
}

BOOST_AUTO_TEST_SUITE_END()
