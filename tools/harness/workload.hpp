// The two reference workloads by name: sizes per rank, token counts and the routing that belongs to each.
//
// Called by the verbs, the tuner and the benches, so that a name means the same everywhere.
// Invariant: `prefill` is one rank of tensor parallel 2 and has all experts; `decode` is rank 0 of expert parallel 2.
#pragma once

#include <fulcrum/core/shape.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "harness/routing.hpp"

namespace fulcrum::harness {

struct WorkloadCase {
  std::string_view name;  // the token count, or K and the drafted tokens of a step
  uint32_t tokens;
};

struct Workload {
  std::string_view name;
  uint32_t hidden;
  uint32_t intermediate;  // of this rank
  uint32_t experts;
  ExpertRange local;
  uint32_t top_k;
  DType dtype;
  RoutingKind routing;
  std::span<const WorkloadCase> cases;
  bool gated = true;  // else the first GEMM is `up` alone
  bool bias = false;
};

inline constexpr std::array prefill_cases{WorkloadCase{"512", 512}, WorkloadCase{"2048", 2048},
                                          WorkloadCase{"4096", 4096}};
// 16 requests verify K drafted tokens and their own next one: 16 * (K + 1) rows.
inline constexpr std::array decode_cases{WorkloadCase{"K0", 16}, WorkloadCase{"K1", 32}, WorkloadCase{"K3", 64},
                                         WorkloadCase{"K4", 80}, WorkloadCase{"K7", 128}};

inline constexpr std::array workloads{
    Workload{"prefill", 4096, 640, 288, {0, 288}, 8, DType::f16, RoutingKind::probe, prefill_cases},
    Workload{"decode", 2560, 640, 512, {0, 256}, 10, DType::bf16, RoutingKind::decode, decode_cases},
};

// Null when no workload has that name.
constexpr const Workload* find_workload(std::string_view name) {
  for (const Workload& workload : workloads) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

}  // namespace fulcrum::harness
