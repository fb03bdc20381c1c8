// Tensor maps: what the copy engine (sm_90) knows of a matrix in device memory when it moves boxes of it.
//
// host/tensor_map.hpp encodes a TensorMap2d as a TensorMap, kernels hand that to ptx/tma.cuh.
// Invariant: whatever illegal_tensor_map() accepts, the driver can encode.
#pragma once
#include <fulcrum/core/types.h>

FULCRUM_NAMESPACE_BEGIN

/// Opaque, filled by the driver. Kernels take it as part of a __grid_constant__ parameter or from device memory; a
/// multiple of 64 bytes would do for both, 128 is what the driver's own type has.
struct alignas(128) TensorMap {
  uint64_t words[16];
};

/// How the rows of a box lie in shared memory. none: one behind the other, on a multiple of 128 bytes. bytes_128: one
/// every 128 bytes, on a multiple of 1024, and the 16-byte piece p of row r in the place of piece p ^ r % 8, so that a
/// column of 8 rows lies in different banks.
enum class TensorSwizzle : uint8_t { none, bytes_128 };

inline constexpr uint32_t swizzle_row_bytes = 128;

/// Where byte `byte` of rows of 128 bytes lies, from the start of the box: its own inverse, and true of addresses too,
/// because only bits 4 to 9 play a part.
FULCRUM_HD constexpr uint32_t swizzled(TensorSwizzle swizzle, uint32_t byte) {
  return swizzle == TensorSwizzle::none ? byte : byte ^ (byte >> 3 & 0x70);  // row % 8 is bits 7-9, the piece bits 4-6
}

/// A matrix of `rows` rows that are `row_bytes` apart, and the boxes in which it is copied. Whatever part of a box lies
/// outside of the matrix arrives as zeros.
struct TensorMap2d {
  const void* base = nullptr;
  uint64_t columns = 0, rows = 0;
  uint64_t row_bytes = 0;  // from one row to the next
  uint32_t box_columns = 0, box_rows = 0;
  TensorSwizzle swizzle = TensorSwizzle::none;
  uint32_t element_bytes = 2;  // 1 or 2; bits are copied, whatever type they are of
};

/// What a copy reports to its mbarrier, wherever the box lies.
FULCRUM_HD constexpr uint32_t box_bytes(const TensorMap2d& tensor) {
  return tensor.box_columns * tensor.element_bytes * tensor.box_rows;
}

/// Words that say what the driver would refuse (CUDA driver API, cuTensorMapEncodeTiled), or null.
FULCRUM_HD constexpr const char* illegal_tensor_map(const TensorMap2d& tensor) {
  constexpr uint64_t most_elements = uint64_t(1) << 32, stride_end = uint64_t(1) << 40;
  constexpr uint32_t longest_side = 256;
  const uint32_t line_bytes = tensor.box_columns * tensor.element_bytes;
  if (tensor.element_bytes != 1 && tensor.element_bytes != 2) return "an element has 1 or 2 bytes";
  if (tensor.columns == 0 || tensor.columns > most_elements) return "a tensor has 1 to 2^32 columns";
  if (tensor.rows == 0 || tensor.rows > most_elements) return "a tensor has 1 to 2^32 rows";
  if (tensor.row_bytes % 16 != 0) return "rows must be a multiple of 16 bytes apart";
  if (tensor.row_bytes >= stride_end) return "rows must be less than 2^40 bytes apart";
  if (tensor.rows > 1 && tensor.row_bytes < tensor.columns * tensor.element_bytes)
    return "rows must be at least as far apart as they are long";
  if (tensor.box_columns == 0 || tensor.box_columns > longest_side) return "a box has 1 to 256 columns";
  if (tensor.box_rows == 0 || tensor.box_rows > longest_side) return "a box has 1 to 256 rows";
  if (line_bytes % 16 != 0) return "a row of a box must have a multiple of 16 bytes";
  if (tensor.swizzle == TensorSwizzle::bytes_128 && line_bytes > swizzle_row_bytes)
    return "a row of a swizzled box has at most 128 bytes";
  if (tensor.base == nullptr || reinterpret_cast<uint64_t>(tensor.base) % 16 != 0)
    return "the tensor needs an address that is a multiple of 16 bytes";
  return nullptr;
}

FULCRUM_NAMESPACE_END
