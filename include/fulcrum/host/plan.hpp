// Plan: everything that is decided before pointers exist - the kernel, its shared memory, the grid rule, the workspace.
//
// Called once per (kernel, shape, most tokens) and device; launch() takes it from there.
// Invariant: a Plan is immutable and holds no memory of its own, so layers, threads and streams share it. Limits are
// those that the loaded kernel and the device report; nothing is assumed about either.
#pragma once

#include <fulcrum/core/params.h>
#include <fulcrum/core/shared_memory.h>
#include <fulcrum/host/kernel.hpp>

FULCRUM_NAMESPACE_BEGIN

struct Workspace {
  uint64_t split_counts_offset = 0;
  uint64_t counter_bytes = 0;  // tickets and counts; partial sums follow
  uint64_t split_stride = 0;   // values of one part
  uint64_t total_bytes = 0;
};

struct Plan {
  Kernel kernel{};
  Shape shape{};
  Layout layout{};
  int32_t device = -1;
  Arch arch{0};
  uint64_t max_tokens = 0;
  uint32_t n_tiles = 0;          // tiles of outputs
  uint32_t blocks_per_sm = 0;    // resident at once, or the lever where that is less
  uint32_t resident_blocks = 0;  // blocks_per_sm times SMs
  uint32_t max_grid = 0;

  /// Bytes that launch() needs at Buffers.workspace, for each stream that runs this Plan; 0 for a fixed tile queue and
  /// split_k=1.
  constexpr uint64_t workspace_bytes() const { return workspace().total_bytes; }

  /// Where what lies in the workspace. Counters come first, because they must be zero before the first launch.
  constexpr Workspace workspace() const {
    Workspace w{};
    if (kernel.config.tile_queue == TileQueue::ticket) w.split_counts_offset = round_up<uint64_t>(ticket_bytes, 16);
    w.counter_bytes = w.split_counts_offset;
    if (kernel.config.split_k > 1) {
      const uint64_t warps = max_tiles(max_tokens) * n_tiles * consumer_warps(kernel.config);
      w.counter_bytes = w.split_counts_offset + round_up<uint64_t>(warps * 4, 16);
      w.split_stride = max_tokens * shape.top_k * shape.n;
    }
    w.total_bytes = w.counter_bytes + w.split_stride * static_cast<uint32_t>(kernel.config.split_k) * 4;
    return w;
  }

  /// Work items that `tokens` tokens can make at most.
  constexpr uint64_t max_items(uint64_t tokens) const { return max_tiles(tokens) * items_per_tile(); }
  constexpr uint64_t items_per_tile() const { return uint64_t{n_tiles} * static_cast<uint32_t>(kernel.config.split_k); }

  /// Token tiles that `tokens` tokens can make at most, and that the list in Buffers must have room for.
  constexpr uint64_t max_tiles(uint64_t tokens) const {
    return max_token_tiles(tokens * shape.top_k, shape.local_experts, static_cast<uint32_t>(kernel.config.tile_m));
  }
};

namespace plan_rules {

inline constexpr const char* config = "{detail}";
inline constexpr const char* kind =
    "the kernel was compiled for another kind of projection than the shape's ({subject} differs); compile it with "
    "kernel_kind(shape)";
inline constexpr const char* layout =
    "the kernel reads weights of another layout ({subject} is {detail} in its Config); pass the layout that the "
    "weights were packed for, and a Config chosen for that layout";
inline constexpr const char* arch =
    "the kernel was compiled for {subject} and this device is {detail}; compile it for {detail}";
inline constexpr const char* no_code =
    "the kernels compiled into this program have no code for {subject}; add it to CUDA_ARCHITECTURES, or use "
    "jit::compile";
inline constexpr const char* threads =
    "a block of {value} threads; this kernel on this device may have {limit}: use fewer warps";
inline constexpr const char* registers =
    "a block needs {value} registers; this device gives a block {limit}: use fewer warps or a register_cap";
inline constexpr const char* shared =
    "a block needs {value} bytes of shared memory; this device gives a block {limit}: use fewer stages or smaller "
    "tiles";
inline constexpr const char* resident =
    "no block of this kernel fits an SM of this device; use fewer warps, stages or registers";
inline constexpr const char* extent =
    "{subject} is {value}; a weight has at most {limit}: split it over ranks or along {subject}";
inline constexpr const char* pairs =
    "max_tokens * top_k is {value}; a pair index must stay below {limit}: split the batch";
inline constexpr const char* grid =
    "max_tokens makes up to {value} work items; a launch counts to {limit}: split the batch, or use larger tiles";

inline Status check_extents(const Shape& shape) {
  const uint32_t most = shape.n > shape.k ? shape.n : shape.k;
  if (most <= max_extent) return success();
  return make_error(Code::invalid_argument, extent, shape.n > max_extent ? "n" : "k",
                    shape.n > max_extent ? shape.n : shape.k, max_extent);
}

inline Status check_kernel(const Kernel& kernel, const Device& device, const Shape& shape, Layout wanted) {
  const Status status = check_extents(shape);
  if (!status.ok()) return status;
  const char* reason = illegal_reason(kernel.config, device.arch, shape);
  if (reason != nullptr) return make_error(Code::illegal_config, config, "config", 0, 0, reason);
  const KernelKind needed = kernel_kind(shape);
  if (!(kernel.kind == needed)) {
    const char* what = kernel.kind.dtype != needed.dtype       ? "dtype"
                       : kernel.kind.gate_up != needed.gate_up ? "projection"
                                                               : "activation";
    return make_error(Code::invalid_argument, kind, what);
  }
  const Layout own = layout_of(kernel.config);
  if (own.code_word != wanted.code_word) {
    return make_error(Code::invalid_argument, layout, "code_word", 0, 0, value_name(own.code_word));
  }
  if (own.k_order != wanted.k_order)
    return make_error(Code::invalid_argument, layout, "k_order", 0, 0, value_name(own.k_order));
  if (kernel.arch.cc != 0 && kernel.arch.cc != device.arch.cc) {
    return make_error(Code::unsupported, arch, arch_name(kernel.arch), kernel.arch.cc, device.arch.cc,
                      arch_name(device.arch));
  }
  return success();
}

inline Status check_limits(const Kernel& kernel, const Device& device, const cuda_api::FunctionAttributes& attributes) {
  const uint32_t most_threads = min_of(attributes.max_threads, device.max_threads_per_block);
  if (kernel.threads > most_threads)
    return make_error(Code::unsupported, threads, "threads", kernel.threads, most_threads);
  const uint64_t num_registers = uint64_t{attributes.registers} * kernel.threads;
  if (num_registers > device.registers_per_block) {
    return make_error(Code::unsupported, registers, "registers", static_cast<int64_t>(num_registers),
                      device.registers_per_block);
  }
  const uint64_t bytes = uint64_t{kernel.shared_bytes} + attributes.static_shared_bytes;
  if (bytes > device.shared_per_block_bytes) {
    return make_error(Code::unsupported, shared, "shared memory", static_cast<int64_t>(bytes),
                      device.shared_per_block_bytes);
  }
  return success();
}

/// A pair's index is an int32 on the device, and a work item's a uint32 that also counts past the last by a grid.
inline Status check_sizes(const Plan& plan) {
  constexpr uint64_t most = 0x7FFFFFFF;
  if (plan.max_tokens > most / plan.shape.top_k) {
    const uint64_t num_pairs = plan.max_tokens > most ? plan.max_tokens : plan.max_tokens * plan.shape.top_k;
    return make_error(Code::invalid_argument, pairs, "max_tokens", error_value(num_pairs), error_value(most));
  }
  const uint64_t num_items = plan.max_items(plan.max_tokens);
  const uint64_t limit = min_of<uint64_t>(most, plan.max_grid);
  if (num_items > limit) {
    return make_error(Code::invalid_argument, grid, "max_tokens", error_value(num_items), error_value(limit));
  }
  return success();
}

}  // namespace plan_rules

/// make_plan() without the calls to CUDA: from what the loader and the device reported.
inline Result<Plan> plan_for(const Kernel& kernel, const Device& device, const cuda_api::FunctionAttributes& attributes,
                             uint32_t blocks_per_sm, const Shape& shape, Layout layout, uint64_t max_tokens) {
  Status status = plan_rules::check_kernel(kernel, device, shape, layout);
  if (status.ok()) status = plan_rules::check_limits(kernel, device, attributes);
  if (status.ok() && blocks_per_sm == 0) status = make_error(Code::unsupported, plan_rules::resident);
  if (!status.ok()) return status;
  Plan plan;
  plan.kernel = kernel;
  plan.kernel.registers = attributes.registers;
  plan.kernel.spill_bytes = attributes.local_bytes;
  plan.shape = shape;
  plan.layout = layout;
  plan.device = device.ordinal;
  plan.arch = device.arch;
  plan.max_tokens = max_tokens;
  plan.n_tiles = ceil_div(shape.n, static_cast<uint32_t>(kernel.config.tile_n));
  const auto most = static_cast<uint32_t>(kernel.config.blocks_per_sm);
  plan.blocks_per_sm = most == 0 ? blocks_per_sm : min_of(blocks_per_sm, most);
  plan.resident_blocks = plan.blocks_per_sm * device.num_sms;
  plan.max_grid = device.max_grid;
  status = plan_rules::check_sizes(plan);
  if (!status.ok()) return status;
  return plan;
}

/// Loads the kernel on the current device and decides how it will be launched, for batches of up to max_tokens tokens.
/// Errors: illegal_config; invalid_argument (kind, layout, sizes); unsupported (architecture, limits), all with the
/// value and the limit; no_device; cuda. Thread-safe. May load code and so allocate: not while a stream is capturing.
inline Result<Plan> make_plan(const Kernel& kernel, const Shape& shape, Layout layout, uint64_t max_tokens) {
  const Result<int> ordinal = cuda_api::current_device();
  if (!ordinal.ok()) return ordinal.status();
  const Result<Device> device = query_device(*ordinal);
  if (!device.ok()) return device.status();
  Status status = plan_rules::check_kernel(kernel, *device, shape, layout);
  if (!status.ok()) return status;  // before loading: the loader's words for a wrong architecture are worse
  const Result<cuda_api::FunctionAttributes> attributes = cuda_api::function_attributes(kernel.function);
  if (!attributes.ok()) {
    if (kernel.arch.cc != 0 || !cuda_api::is_missing_code(attributes.status())) return attributes.status();
    return make_error(Code::unsupported, plan_rules::no_code, arch_name(device->arch));
  }
  status = plan_rules::check_limits(kernel, *device, *attributes);
  if (status.ok()) status = cuda_api::allow_shared(kernel.function, kernel.shared_bytes);
  if (!status.ok()) return status;
  const Result<int> blocks = cuda_api::blocks_per_sm(kernel.function, kernel.threads, kernel.shared_bytes);
  if (!blocks.ok()) return blocks.status();
  return plan_for(kernel, *device, *attributes, static_cast<uint32_t>(*blocks), shape, layout, max_tokens);
}

FULCRUM_NAMESPACE_END
