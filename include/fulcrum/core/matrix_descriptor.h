// The 64-bit matrix descriptor by which wgmma finds an operand in shared memory, both ways: fields and bits.
//
// Called by wgmma families (matrix_descriptor) and by whoever executes their instructions elsewhere (the rest).
// Invariant: operands are K-major, which for tokens is their rows as they are; element sizes do not matter here.
//
// Layout (PTX ISA, "Matrix Descriptor Format"); each length is a multiple of 16 bytes, below 2^18, divided by 16:
//   [13:0] start address   [29:16] leading byte offset   [45:32] stride byte offset
//   [51:49] base offset: 0 where the swizzle's pattern starts at a multiple of 1024 bytes, as here always
//   [63:62] swizzle: 0 none, 1 128 bytes (2 64 bytes, 3 32 bytes: not used here)
//
// The two offsets, for rows (of outputs or tokens) in groups of 8 and columns along k in pieces of 16 bytes:
//   none       8 rows of one piece are 128 contiguous bytes; the next piece of k is `leading` bytes on, the next 8 rows
//              `stride` bytes on
//   bytes_128  a row has 128 bytes, 8 rows are 1024, pieces in TensorSwizzle's order; the next 8 rows are `stride` on;
//              `leading` plays no part, and is 16 by convention
// A step along k moves the start address alone: by 2 * leading, or by 32 bytes inside of the swizzled row.
#pragma once
#include <fulcrum/core/tensor_map.h>

FULCRUM_NAMESPACE_BEGIN

struct MatrixDescriptor {
  uint32_t start = 0;  // address in the shared memory window
  uint32_t leading_bytes = 16;
  uint32_t stride_bytes = 8 * swizzle_row_bytes;
  TensorSwizzle swizzle = TensorSwizzle::bytes_128;
};

namespace detail {

inline constexpr uint32_t matrix_length_mask = 0x3FFFF;

FULCRUM_HD constexpr uint64_t matrix_field(uint32_t bytes, int bit) {
  return uint64_t((bytes & matrix_length_mask) >> 4) << bit;
}
FULCRUM_HD constexpr uint32_t matrix_length(uint64_t bits, int bit) {
  return uint32_t(bits >> bit << 4) & (matrix_length_mask - 15);
}

}  // namespace detail

FULCRUM_HD constexpr uint64_t matrix_descriptor(const MatrixDescriptor& fields) {
  return detail::matrix_field(fields.start, 0) | detail::matrix_field(fields.leading_bytes, 16) |
         detail::matrix_field(fields.stride_bytes, 32) | uint64_t(fields.swizzle) << 62;
}

/// The usual operand: swizzled rows of 128 bytes without gaps, in a tile at a multiple of 1024 bytes. `start` is the
/// tile's address, or 32 bytes a k16 step further on.
FULCRUM_HD constexpr uint64_t matrix_descriptor(uint32_t start) { return matrix_descriptor(MatrixDescriptor{start}); }

/// False for bits that no MatrixDescriptor makes: another swizzle, a base offset, or something in between the fields.
FULCRUM_HD constexpr bool decode_matrix_descriptor(uint64_t bits, MatrixDescriptor& fields) {
  fields.start = detail::matrix_length(bits, 0);
  fields.leading_bytes = detail::matrix_length(bits, 16);
  fields.stride_bytes = detail::matrix_length(bits, 32);
  fields.swizzle = TensorSwizzle(bits >> 62 & 1);
  return matrix_descriptor(fields) == bits;
}

/// Address of byte `k_byte` (0 to 31: one k16 step) of row `row` of the operand.
FULCRUM_HD constexpr uint32_t matrix_address(const MatrixDescriptor& fields, uint32_t row, uint32_t k_byte) {
  const uint32_t group = fields.start + row / 8 * fields.stride_bytes;
  return fields.swizzle == TensorSwizzle::none ? group + row % 8 * 16 + k_byte / 16 * fields.leading_bytes + k_byte % 16
                                               : swizzled(fields.swizzle, group + row % 8 * swizzle_row_bytes + k_byte);
}

FULCRUM_NAMESPACE_END
