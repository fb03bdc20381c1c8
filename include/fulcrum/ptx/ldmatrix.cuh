// ldmatrix and movmatrix: 8 x 8 matrices of 16-bit elements between shared memory, or rows, and mma fragments.
//
// Called by tile/tokens.cuh (fragments of tokens) and tile/epilogue.cuh (transposed outputs).
// Invariant: all 32 lanes of the warp call together.
#pragma once
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

// Four matrices; lane l gives the address of row l%8 of matrix l/8 and receives, of each matrix, row l/4 columns
// 2(l%4), 2(l%4)+1. Addresses 16-byte aligned.
FULCRUM_DEVICE Vec4 ldmatrix_x4(SharedAddress row) {
  Vec4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(row.value));
  return v;
}

// Transposes a matrix held as row l/4, columns 2(l%4), 2(l%4)+1 in each lane.
FULCRUM_DEVICE uint32_t movmatrix_trans(uint32_t value) {
  uint32_t transposed;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(value));
  return transposed;
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
