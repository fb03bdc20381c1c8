// mma.sync m16n8k16 with f32 accumulation. Fragments per lane l, r = l/4, c = l%4 (PTX ISA, "Matrix Fragments for
// mma.m16n8k16"): first operand a0..a3 = rows r, r+8, r, r+8 at columns 2c (a0, a1) and 2c+8 (a2, a3); second operand
// b0, b1 = column r at rows 2c and 2c+8; accumulators d0, d1 = row r, columns 2c, 2c+1; d2, d3 the same of row r+8.
#pragma once
#include <fulcrum/core/shape.h>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

template <DType dtype>
FULCRUM_DEVICE void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (dtype == DType::f16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
