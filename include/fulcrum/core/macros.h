// The macros that all headers share. Every header includes this one first, directly or not.
//
// All macros are prefixed FULCRUM_. The others stand with what they make: FULCRUM_LEVER (a line of levers.def), and
// those that define a kernel: FULCRUM_VARIANT (with FULCRUM_BLOCK_SIZE), FULCRUM_CSR_KERNEL and FULCRUM_REPACK.
// Invariant: headers mean the same under g++, clang++, nvcc (both passes) and NVRTC, and include no standard or CUDA
// header.
#pragma once

#define FULCRUM_VERSION_MAJOR 0
#define FULCRUM_VERSION_MINOR 1
#define FULCRUM_VERSION_PATCH 0
#define FULCRUM_VERSION_TEXT "0.1.0"

// The inline namespace carries the version, so that two embedded copies of the library can live in one program.
#define FULCRUM_NAMESPACE_BEGIN \
  namespace fulcrum {           \
  inline namespace v0_1 {
#define FULCRUM_NAMESPACE_END \
  }                           \
  }

#if defined(__CUDACC__)
#define FULCRUM_HD __host__ __device__
#define FULCRUM_DEVICE __device__ __forceinline__
#define FULCRUM_GLOBAL __global__
#else
#define FULCRUM_HD
#define FULCRUM_DEVICE inline
#define FULCRUM_GLOBAL
#endif
