// Rendered by codegen (render.py wgmma, templates/wgmma_mma.cuh.j2) and committed: the matrix multiplications of wgmma,
// whose operand lists grow with the size. Change the template and render again.
//
// Called by ptx/wgmma.cuh alone, which says what the functions do. The element type enters an instruction as text, by
// asm's constraint C. The instruction's last operands: the predicate that adds to d, the signs of both factors, and 0
// for each factor in shared memory because it is K-major.
#pragma once
#include <fulcrum/core/shape.h>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

template <DType dtype>
struct WgmmaType;
template <>
struct WgmmaType<DType::f16> {
  static constexpr char name[] = "f16";
};
template <>
struct WgmmaType<DType::bf16> {
  static constexpr char name[] = "bf16";
};

// Multiplications by n tokens.
template <int n>
struct WgmmaM64K16;

// clang-format off

template <>
struct WgmmaM64K16<8> {
  template <DType dtype>
  FULCRUM_DEVICE static void registers(float (&d)[1][4], const uint32_t (&a)[4], uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.%9.%9 {"
        "%0, %1, %2, %3"
        "}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }

  template <DType dtype>
  FULCRUM_DEVICE static void shared(float (&d)[1][4], uint64_t a_descriptor, uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.%6.%6 {"
        "%0, %1, %2, %3"
        "}, %4, %5, 1, 1, 1, 0, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3])
        : "l"(a_descriptor), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }
};

template <>
struct WgmmaM64K16<16> {
  template <DType dtype>
  FULCRUM_DEVICE static void registers(float (&d)[2][4], const uint32_t (&a)[4], uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.%13.%13 {"
        "%0, %1, %2, %3, %4, %5, %6, %7"
        "}, {%8, %9, %10, %11}, %12, 1, 1, 1, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
          "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }

  template <DType dtype>
  FULCRUM_DEVICE static void shared(float (&d)[2][4], uint64_t a_descriptor, uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.%10.%10 {"
        "%0, %1, %2, %3, %4, %5, %6, %7"
        "}, %8, %9, 1, 1, 1, 0, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
          "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3])
        : "l"(a_descriptor), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }
};

template <>
struct WgmmaM64K16<24> {
  template <DType dtype>
  FULCRUM_DEVICE static void registers(float (&d)[3][4], const uint32_t (&a)[4], uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n24k16.f32.%17.%17 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11"
        "}, {%12, %13, %14, %15}, %16, 1, 1, 1, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
          "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
          "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }

  template <DType dtype>
  FULCRUM_DEVICE static void shared(float (&d)[3][4], uint64_t a_descriptor, uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n24k16.f32.%14.%14 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11"
        "}, %12, %13, 1, 1, 1, 0, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
          "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
          "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3])
        : "l"(a_descriptor), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }
};

template <>
struct WgmmaM64K16<32> {
  template <DType dtype>
  FULCRUM_DEVICE static void registers(float (&d)[4][4], const uint32_t (&a)[4], uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.%21.%21 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
        "}, {%16, %17, %18, %19}, %20, 1, 1, 1, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
          "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
          "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }

  template <DType dtype>
  FULCRUM_DEVICE static void shared(float (&d)[4][4], uint64_t a_descriptor, uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.%18.%18 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
        "}, %16, %17, 1, 1, 1, 0, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
          "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
          "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3])
        : "l"(a_descriptor), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }
};

template <>
struct WgmmaM64K16<64> {
  template <DType dtype>
  FULCRUM_DEVICE static void registers(float (&d)[8][4], const uint32_t (&a)[4], uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.%37.%37 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
          "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
          "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
          "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]),
          "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
          "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
          "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }

  template <DType dtype>
  FULCRUM_DEVICE static void shared(float (&d)[8][4], uint64_t a_descriptor, uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.%34.%34 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, %32, %33, 1, 1, 1, 0, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
          "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
          "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
          "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]),
          "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
          "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
          "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3])
        : "l"(a_descriptor), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }
};

template <>
struct WgmmaM64K16<128> {
  template <DType dtype>
  FULCRUM_DEVICE static void registers(float (&d)[16][4], const uint32_t (&a)[4], uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.%69.%69 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
          "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
          "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
          "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]),
          "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
          "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
          "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]),
          "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]),
          "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]),
          "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]),
          "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]),
          "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]),
          "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
          "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]),
          "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }

  template <DType dtype>
  FULCRUM_DEVICE static void shared(float (&d)[16][4], uint64_t a_descriptor, uint64_t tokens_descriptor) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.%66.%66 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, 1, 1, 1, 0, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
          "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
          "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
          "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]),
          "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
          "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
          "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]),
          "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]),
          "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]),
          "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]),
          "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]),
          "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]),
          "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
          "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]),
          "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])
        : "l"(a_descriptor), "l"(tokens_descriptor), "C"(WgmmaType<dtype>::name));
  }
};
// clang-format on

}  // namespace ptx

FULCRUM_NAMESPACE_END
