// Emulated ldmatrix and movmatrix.
#pragma once
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

namespace emulated {

// A lane's row of 16 bytes, and the four words it gets: of matrix i, row l/4, columns 2(l%4), 2(l%4)+1.
struct MatrixLane {
  Vec4 row;
  Vec4 fragment;
};

inline void load_matrices(void* const* records) {
  const auto word = [&](uint32_t matrix, uint32_t lane) {
    const Vec4& row = static_cast<const MatrixLane*>(records[8 * matrix + lane / 4])->row;
    const uint32_t words[4] = {row.x, row.y, row.z, row.w};
    return words[lane % 4];
  };
  for (uint32_t lane = 0; lane < 32; ++lane)
    static_cast<MatrixLane*>(records[lane])->fragment = {word(0, lane), word(1, lane), word(2, lane), word(3, lane)};
}

struct TransposeLane {
  uint32_t value, transposed;
};

inline void transpose_matrix(void* const* records) {
  const auto element = [&](uint32_t row, uint32_t column) {
    const uint32_t pair = static_cast<const TransposeLane*>(records[4 * row + column / 2])->value;
    return pair >> 16 * (column % 2) & 0xFFFF;
  };
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t row = lane / 4, column = 2 * (lane % 4);
    static_cast<TransposeLane*>(records[lane])->transposed = element(column, row) | element(column + 1, row) << 16;
  }
}

}  // namespace emulated

FULCRUM_DEVICE Vec4 ldmatrix_x4(SharedAddress row) {
  emulated::MatrixLane lane{emulated::load_shared<Vec4>(__func__, row), {}};
  emulator::meet_warp(__func__, &lane, emulated::load_matrices);
  return lane.fragment;
}

FULCRUM_DEVICE uint32_t movmatrix_trans(uint32_t value) {
  emulated::TransposeLane lane{value, 0};
  emulator::meet_warp(__func__, &lane, emulated::transpose_matrix);
  return lane.transposed;
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
