// The only macros of fulcrum, all prefixed FULCRUM_. Every header includes this one first, directly or not.
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
