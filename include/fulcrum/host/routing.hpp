// Builds the routing of a batch on the device: expert ids in, sorted pairs and token tiles out.
//
// Called once a batch (one call serves gate_up and down: two lists of tiles) before launch(), on the same stream.
// Invariant: no allocation, no synchronization, may be captured; sizes that depend on the ids stay on the device.
// Thread-safe: a RoutingPlan is immutable; two calls that can run at once need two workspaces.
#pragma once

#include <fulcrum/core/csr.h>
#include <fulcrum/host/launch.hpp>

FULCRUM_NAMESPACE_BEGIN

/// Every kernel that build_routing() may launch: names for find_auxiliary, sources for jit::compile_auxiliary. In the
/// order of CsrStep.
inline constexpr AuxiliarySource routing_sources[] = {
    {"fulcrum_csr_single", "#include <fulcrum/layer/csr.cuh>\nFULCRUM_CSR_KERNEL(single)\n"},
    {"fulcrum_csr_count", "#include <fulcrum/layer/csr.cuh>\nFULCRUM_CSR_KERNEL(count)\n"},
    {"fulcrum_csr_columns", "#include <fulcrum/layer/csr.cuh>\nFULCRUM_CSR_KERNEL(columns)\n"},
    {"fulcrum_csr_tiles", "#include <fulcrum/layer/csr.cuh>\nFULCRUM_CSR_KERNEL(tiles)\n"},
    {"fulcrum_csr_place", "#include <fulcrum/layer/csr.cuh>\nFULCRUM_CSR_KERNEL(place)\n"},
    {"fulcrum_csr_validate", "#include <fulcrum/layer/csr.cuh>\nFULCRUM_CSR_KERNEL(validate)\n"},
};
inline constexpr uint32_t num_routing_kernels = sizeof(routing_sources) / sizeof(routing_sources[0]);

/// The kernels, in the order of CsrStep.
struct RoutingKernels {
  Auxiliary steps[num_routing_kernels];
};

/// Sizes of one routing problem, checked once.
struct RoutingPlan {
  RoutingKernels kernels{};
  int32_t device = -1;
  uint32_t max_tokens = 0;
  uint32_t top_k = 0;
  uint32_t experts = 0;
  uint32_t first_expert = 0;
  uint32_t local_experts = 0;

  constexpr uint64_t max_pairs() const { return uint64_t{max_tokens} * top_k; }
  constexpr uint64_t workspace_bytes() const { return csr_workspace_bytes(max_pairs(), local_experts); }
};

/// What build_routing() reads and writes; device memory. Alignment: each pointer to its element, token tiles to 16
/// bytes.
struct RoutingBuffers {
  const int32_t* ids = nullptr;                // [num_tokens][top_k] global expert ids; -1 and other ranks' are skipped
  uint64_t ids_row_stride = 0;                 // elements from one token to the next; 0: dense
  uint64_t num_tokens = 0;                     // of this batch, or the most where device_num_tokens says how many
  const int32_t* device_num_tokens = nullptr;  // [1], or null
  int32_t* offsets = nullptr;                  // [local_experts + 1]
  int32_t* pair_ids = nullptr;                 // [num_tokens * top_k]
  CsrTileList lists[2];                        // token tiles; a list without pointers is not made
  void* workspace = nullptr;                   // plan.workspace_bytes()
  uint64_t workspace_bytes = 0;
  const int64_t* wide_ids = nullptr;  // in place of `ids`, where an engine keeps them in 64 bits
};

namespace routing_rules {

inline constexpr const char* sizes = "{detail}";
inline constexpr const char* two_ids = "ids and {subject} are both given; expert ids are of one width";
inline constexpr const char* kernels = "the routing kernel {subject} is missing; fill every entry of RoutingKernels";

inline CsrParams params(const RoutingPlan& plan, const RoutingBuffers& buffers) {
  CsrParams csr;
  csr.ids = buffers.ids;
  csr.ids_row_stride = buffers.ids_row_stride != 0 ? buffers.ids_row_stride : plan.top_k;
  csr.num_tokens = buffers.device_num_tokens;
  csr.max_tokens = static_cast<uint32_t>(buffers.num_tokens);
  csr.top_k = plan.top_k;
  csr.experts = plan.experts;
  csr.first_expert = plan.first_expert;
  csr.local_experts = plan.local_experts;
  csr.offsets = buffers.offsets;
  csr.pair_ids = buffers.pair_ids;
  csr.lists[0] = buffers.lists[0];
  csr.lists[1] = buffers.lists[1];
  csr.workspace = static_cast<uint32_t*>(buffers.workspace);
  csr.wide_ids = buffers.wide_ids;
  return csr;
}

inline Status check_list(const CsrTileList& list) {
  if (list.token_tiles == nullptr && list.num_token_tiles == nullptr) return success();
  const Status status = launch_rules::check_pointer(list.token_tiles, "lists.token_tiles", 16);
  return status.ok() ? launch_rules::check_pointer(list.num_token_tiles, "lists.num_token_tiles", 4) : status;
}

inline Status check_ids(const RoutingBuffers& given) {
  if (given.wide_ids == nullptr) return launch_rules::check_pointer(given.ids, "ids", 4);
  if (given.ids != nullptr) return make_error(Code::invalid_argument, two_ids, "wide_ids");
  return launch_rules::check_pointer(given.wide_ids, "wide_ids", 8);
}

inline Status check_buffers(const RoutingPlan& plan, const RoutingBuffers& given) {
  if (given.num_tokens > plan.max_tokens) {
    return make_error(Code::invalid_argument, launch_rules::tokens, "num_tokens", error_value(given.num_tokens),
                      plan.max_tokens);
  }
  const char* reason = illegal_csr(params(plan, given));
  if (reason != nullptr) return make_error(Code::invalid_argument, sizes, "routing", 0, 0, reason);
  const uint64_t needed = csr_workspace_bytes(given.num_tokens * plan.top_k, plan.local_experts);
  if (given.workspace_bytes < needed) {
    return make_error(Code::invalid_argument, launch_rules::workspace, "workspace", error_value(given.workspace_bytes),
                      error_value(needed));
  }
  Status status = needed > 0 ? launch_rules::check_pointer(given.workspace, "workspace", 4) : success();
  if (status.ok() && given.num_tokens > 0) status = check_ids(given);
  if (status.ok() && given.num_tokens > 0) status = launch_rules::check_pointer(given.pair_ids, "pair_ids", 4);
  if (status.ok()) status = launch_rules::check_optional(given.device_num_tokens, "device_num_tokens", 4);
  if (status.ok()) status = launch_rules::check_pointer(given.offsets, "offsets", 4);
  if (status.ok()) status = check_list(given.lists[0]);
  if (status.ok()) status = check_list(given.lists[1]);
  return status;
}

inline Status launch_step(const RoutingPlan& plan, CsrStep step, CsrParams& csr, cuda_api::Stream stream) {
  const uint32_t blocks = csr_blocks(step, csr);
  void* arguments[] = {&csr};
  const cuda_api::LaunchShape shape{blocks, csr_threads, csr_shared(plan.local_experts).total_bytes};
  return cuda_api::launch(plan.kernels.steps[static_cast<uint32_t>(step)].function, shape, stream, arguments);
}

}  // namespace routing_rules

/// Checks the sizes of a routing: those of `shape`, for batches of up to max_tokens, on the current device. Errors:
/// invalid_argument, no_device.
inline Result<RoutingPlan> make_routing_plan(const RoutingKernels& kernels, const Shape& shape, uint64_t max_tokens) {
  RoutingPlan plan;
  plan.kernels = kernels;
  plan.top_k = shape.top_k;
  plan.experts = shape.experts;
  plan.first_expert = shape.first_expert;
  plan.local_experts = shape.local_experts;
  plan.max_tokens = static_cast<uint32_t>(min_of<uint64_t>(max_tokens, 0xFFFFFFFFu));  // illegal_csr refuses that many
  const char* reason = illegal_csr(routing_rules::params(
      plan, RoutingBuffers{nullptr, 0, plan.max_tokens, nullptr, nullptr, nullptr, {}, nullptr, 0, nullptr}));
  if (reason != nullptr) return make_error(Code::invalid_argument, routing_rules::sizes, "routing", 0, 0, reason);
  for (uint32_t step = 0; step < num_routing_kernels; ++step) {
    if (kernels.steps[step].function.address == nullptr) {
      return make_error(Code::invalid_argument, routing_rules::kernels, routing_sources[step].name);
    }
  }
  const Result<int> device = cuda_api::current_device();
  if (!device.ok()) return device.status();
  plan.device = *device;
  return plan;
}

/// Sorts the batch's pairs by local expert and cuts them into token tiles. A batch of 0 tokens still writes offsets and
/// the numbers of tiles (all 0). Errors: invalid_argument; foreign_cuda; cuda.
inline Status build_routing(const RoutingPlan& plan, const RoutingBuffers& buffers, cuda_api::Stream stream) noexcept {
  Status status = routing_rules::check_buffers(plan, buffers);
  if (!status.ok()) return status;
  const CurrentDevice current(plan.device);
  status = current.status();
  if (status.ok()) status = cuda_api::foreign_error();
  CsrParams csr = routing_rules::params(plan, buffers);
  const CsrPath path = csr_path(uint64_t{csr.max_tokens} * csr.top_k);
  for (uint32_t step = 0; step < path.num_steps && status.ok(); ++step) {
    status = routing_rules::launch_step(plan, path.steps[step], csr, stream);
  }
  return status;
}

/// Debug check of the ids: writes the smallest pair whose id is below -1 or not below shape.experts to
/// `first_bad_pair` (one device word), or csr_no_bad_pair. Errors as build_routing.
inline Status validate_routing(const RoutingPlan& plan, const RoutingBuffers& buffers, uint32_t* first_bad_pair,
                               cuda_api::Stream stream) noexcept {
  Status status = routing_rules::check_buffers(plan, buffers);
  if (status.ok()) status = launch_rules::check_pointer(first_bad_pair, "first_bad_pair", 4);
  if (!status.ok()) return status;
  const CurrentDevice current(plan.device);
  status = current.status();
  if (status.ok()) status = cuda_api::foreign_error();
  if (!status.ok()) return status;
  CsrParams csr = routing_rules::params(plan, buffers);
  csr.first_bad_pair = first_bad_pair;
  return routing_rules::launch_step(plan, CsrStep::validate, csr, stream);
}

FULCRUM_NAMESPACE_END
