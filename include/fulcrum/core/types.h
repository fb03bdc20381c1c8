// Fixed-width integers and register vectors for code that may include no standard header (NVRTC compiles it alone).
//
// Included by every header of core/ and ptx/.
// Invariant: the integer types are those of <cstdint> on every LP64 system, so the two can be mixed freely.
#pragma once
#include <fulcrum/core/macros.h>

FULCRUM_NAMESPACE_BEGIN

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long;
using uint64_t = unsigned long;
static_assert(sizeof(int64_t) == 8, "fulcrum supports LP64 systems");

// 8 and 16 bytes as the register pairs and quads that vector loads fill.
struct alignas(8) Vec2 {
  uint32_t x, y;
};
struct alignas(16) Vec4 {
  uint32_t x, y, z, w;
};

template <class T>
FULCRUM_HD constexpr T ceil_div(T value, T divisor) {
  return (value + divisor - 1) / divisor;
}

template <class T>
FULCRUM_HD constexpr T round_up(T value, T multiple) {
  return ceil_div(value, multiple) * multiple;
}

template <class T>
FULCRUM_HD constexpr T min_of(T a, T b) {
  return a < b ? a : b;
}

template <class T>
FULCRUM_HD constexpr T max_of(T a, T b) {
  return a < b ? b : a;
}

FULCRUM_NAMESPACE_END
