// What a grouped GEMM computes: sizes, types and the kind of projection; and what each architecture allows.
//
// Host, device and codegen share it. A Shape is a key of best-config tables.
// Invariant: the part of a Shape that changes machine code is a KernelKind, and nothing else of it does.
#pragma once
#include <fulcrum/core/types.h>

FULCRUM_NAMESPACE_BEGIN

enum class DType : uint8_t { f16, bf16 };                  // of token rows and of the output
enum class Projection : uint8_t { plain, gate_up, down };  // down is a plain GEMM whose rows are pairs
enum class Activation : uint8_t { none, silu };            // silu: silu(gate) * up; only with gate_up

// n counts rows of the packed weight (gate_up: 2 * intermediate, gate and up interleaved); n and k are multiples of 16.
// This rank owns the experts [first_expert, first_expert + local_experts) of `experts`.
struct Shape {
  uint32_t n = 0;
  uint32_t k = 0;
  uint32_t experts = 0;
  uint32_t local_experts = 0;
  uint32_t first_expert = 0;
  uint32_t top_k = 0;
  DType dtype = DType::f16;
  Projection projection = Projection::plain;
  Activation activation = Activation::none;
};

FULCRUM_HD constexpr uint32_t out_columns(const Shape& shape) {
  return shape.projection == Projection::gate_up ? shape.n / 2 : shape.n;
}

// The compile-time part of a Shape.
struct KernelKind {
  DType dtype = DType::f16;
  bool gate_up = false;  // two packed rows make one output column
  Activation activation = Activation::none;
};

FULCRUM_HD constexpr KernelKind kernel_kind(const Shape& shape) {
  return {shape.dtype, shape.projection == Projection::gate_up, shape.activation};
}

FULCRUM_HD constexpr bool operator==(KernelKind a, KernelKind b) {
  return a.dtype == b.dtype && a.gate_up == b.gate_up && a.activation == b.activation;
}

// Compute capability as one number, 90 for 9.0.
struct Arch {
  int cc = 0;
};

inline constexpr int supported_archs[] = {80, 86, 89, 90, 100, 103, 120, 121};

// The name that ptxas takes. From 9.0 on the architecture-specific target ("a") is used: its cubins run on that
// compute capability only, and a cubin is always made for the GPU at hand.
FULCRUM_HD constexpr const char* arch_name(Arch arch) {
  switch (arch.cc) {
    case 80: return "sm_80";
    case 86: return "sm_86";
    case 89: return "sm_89";
    case 90: return "sm_90a";
    case 100: return "sm_100a";
    case 103: return "sm_103a";
    case 120: return "sm_120a";
    case 121: return "sm_121a";
    default: return nullptr;
  }
}

// Shared memory that one block may use, and an SM has, in bytes (CUDA C++ Programming Guide, table of technical
// specifications). A launched block also pays 1 KiB that the system reserves on compute capability 8.0 and later.
struct ArchLimits {
  uint32_t block_shared_bytes;
  uint32_t sm_shared_bytes;
  uint32_t sm_threads;
  uint32_t sm_blocks;
};
inline constexpr uint32_t reserved_shared_bytes = 1024;
inline constexpr uint32_t sm_registers = 65536;

FULCRUM_HD constexpr ArchLimits arch_limits(Arch arch) {
  switch (arch.cc) {
    case 80: return {163 * 1024, 164 * 1024, 2048, 32};
    case 86: return {99 * 1024, 100 * 1024, 1536, 16};
    case 89: return {99 * 1024, 100 * 1024, 1536, 24};
    case 90:
    case 100:
    case 103: return {227 * 1024, 228 * 1024, 2048, 32};
    default: return {99 * 1024, 100 * 1024, 1536, 24};  // 12.x
  }
}

FULCRUM_NAMESPACE_END
