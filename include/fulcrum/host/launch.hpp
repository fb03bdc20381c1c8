// launch(): one grouped GEMM on a stream, after everything about the call has been checked.
//
// Called by engines for every projection of every layer, inside or outside of a graph capture.
// Invariant: launch() allocates nothing, synchronizes nothing, uses no stream but the caller's and restores the current
// device. A call that is wrong launches nothing and says which argument, which value and which limit.
// Thread-safe: any number of threads and streams may use one Plan and one Weights at once, each with its own workspace;
// two launches that can run at the same time on one workspace are the caller's error.
#pragma once

#include <fulcrum/host/plan.hpp>
#include <fulcrum/host/weights.hpp>

FULCRUM_NAMESPACE_BEGIN

/// Which pairs each expert gets, as build_routing() leaves it on the device for this Plan's tile_m.
struct RoutingView {
  const TokenTile* token_tiles = nullptr;    // [plan.max_tiles(num_tokens)], 16-byte aligned
  const int32_t* num_token_tiles = nullptr;  // [1]
  const int32_t* pair_ids = nullptr;         // [pairs]
};

/// The data of one call; device memory throughout. A stride of 0 means dense rows.
struct Buffers {
  uint64_t num_tokens = 0;  // tokens of the batch, or the most it may have where the count is on the device
  RoutingView routing{};
  const void* tokens = nullptr;      // rows of k values; 16-byte aligned
  uint64_t tokens_stride_bytes = 0;  // a multiple of 16
  RowOrder input_rows = RowOrder::token;
  const float* row_scales = nullptr;    // one factor a row of `tokens`, or null
  const float* pair_weights = nullptr;  // [pairs], applied last, or null
  void* out = nullptr;                  // rows of out_columns(shape) values; 16-byte aligned
  uint64_t out_stride_bytes = 0;        // a multiple of 4: outputs are stored in pairs
  RowOrder output_rows = RowOrder::pair;
  void* workspace = nullptr;  // plan.workspace_bytes(), zeroed once by prepare_workspace()
  uint64_t workspace_bytes = 0;
  uint64_t num_token_tiles = 0;  // grid_extent=active: the tiles of this batch, where the host knows them; else 0
};

namespace launch_rules {

inline constexpr const char* null_pointer = "{subject} is null and the batch is not empty";
inline constexpr const char* alignment = "{subject} must be a multiple of {limit} bytes; it is off by {value}";
inline constexpr const char* tokens =
    "the batch has {value} tokens and the Plan was made for at most {limit}; make a larger Plan";
inline constexpr const char* stride = "{subject} is {value} bytes; it must be at least {limit}, or 0 for dense";
inline constexpr const char* workspace =
    "the workspace has {value} bytes and this Plan needs {limit}; ask plan.workspace_bytes() and call "
    "prepare_workspace() once";
inline constexpr const char* weights = "the weights' {subject} is {value} and the Plan's is {limit}";
inline constexpr const char* packed = "the weights were packed for another {subject} than the Plan's";
inline constexpr const char* out_rows =
    "output_rows cannot be token: several pairs share a token's row; use pair or csr";
inline constexpr const char* row_order = "{subject} is {value}; a RowOrder is at most {limit}: token, pair or csr";
inline constexpr const char* tiles = "num_token_tiles is {value}; this batch can have at most {limit}";

inline Status check_pointer(const void* pointer, const char* name, uint32_t bytes) {
  if (pointer == nullptr) return make_error(Code::invalid_argument, null_pointer, name);
  const uint64_t off = fulcrum::detail::address_bits(pointer) % bytes;
  return off == 0 ? success() : make_error(Code::invalid_argument, alignment, name, static_cast<int64_t>(off), bytes);
}

inline Status check_optional(const void* pointer, const char* name, uint32_t bytes) {
  return pointer == nullptr ? success() : check_pointer(pointer, name, bytes);
}

inline Status check_stride(uint64_t given, uint64_t row_bytes, const char* name, uint32_t multiple) {
  if (given != 0 && given < row_bytes) {
    return make_error(Code::invalid_argument, stride, name, error_value(given), error_value(row_bytes));
  }
  return given % multiple == 0
             ? success()
             : make_error(Code::invalid_argument, alignment, name, static_cast<int64_t>(given % multiple), multiple);
}

inline Status check_row_order(RowOrder given, const char* name) {
  constexpr auto last = static_cast<uint32_t>(RowOrder::csr);
  const auto number = static_cast<uint32_t>(given);
  return number <= last ? success() : make_error(Code::invalid_argument, row_order, name, number, last);
}

inline Status check_bank(const uint8_t* bank, const char* bank_name, const uint8_t* const* table,
                         const char* table_name, uint32_t multiple) {
  return table == nullptr ? check_pointer(bank, bank_name, multiple) : check_pointer(table, table_name, 8);
}

inline Status check_weights(const Plan& plan, const Weights& given) {
  const Shape& shape = plan.shape;
  const auto differ = [](const char* what, uint32_t has, uint32_t needs) {
    return make_error(Code::invalid_argument, weights, what, has, needs);
  };
  if (given.n != shape.n) return differ("n", given.n, shape.n);
  if (given.k != shape.k) return differ("k", given.k, shape.k);
  if (given.num_experts != shape.local_experts)
    return differ("number of experts", given.num_experts, shape.local_experts);
  if (given.layout.code_word != plan.layout.code_word) return make_error(Code::invalid_argument, packed, "code_word");
  if (given.layout.k_order != plan.layout.k_order) return make_error(Code::invalid_argument, packed, "k_order");
  const bool in_place = given.layout.code_word == CodeWord::block36;
  const uint32_t multiple = in_place ? 4 : 16;
  Status status =
      check_bank(given.packed, "weights.packed", given.expert_pointers, "weights.expert_pointers", multiple);
  if (status.ok() && in_place && shape.projection == Projection::gate_up) {
    status = check_bank(given.packed_up, "weights.packed_up", given.expert_pointers_up, "weights.expert_pointers_up",
                        multiple);
  }
  if (status.ok()) {
    status = check_stride(given.expert_stride_bytes, dense_expert_bytes(shape, given.layout),
                          "weights.expert_stride_bytes", multiple);
  }
  if (status.ok()) status = check_pointer(given.global_scales, "weights.global_scales", 4);
  if (status.ok()) status = check_optional(given.bias, "weights.bias", 4);
  return status;
}

inline Status check_buffers(const Plan& plan, const Buffers& given) {
  const uint64_t row_bytes = uint64_t{plan.shape.k} * 2;
  const uint64_t out_bytes = uint64_t{out_columns(plan.shape)} * 2;
  const uint64_t most_tiles = plan.max_tiles(given.num_tokens);
  Status status = check_row_order(given.input_rows, "input_rows");
  if (status.ok()) status = check_row_order(given.output_rows, "output_rows");
  if (!status.ok()) return status;
  if (given.output_rows == RowOrder::token && plan.shape.top_k > 1) return make_error(Code::invalid_argument, out_rows);
  if (given.num_token_tiles > most_tiles) {
    return make_error(Code::invalid_argument, tiles, "num_token_tiles", error_value(given.num_token_tiles),
                      error_value(most_tiles));
  }
  if (given.workspace_bytes < plan.workspace_bytes()) {
    return make_error(Code::invalid_argument, workspace, "workspace", error_value(given.workspace_bytes),
                      error_value(plan.workspace_bytes()));
  }
  status = check_pointer(given.tokens, "tokens", 16);
  if (status.ok()) status = check_pointer(given.out, "out", 16);
  if (status.ok()) status = check_stride(given.tokens_stride_bytes, row_bytes, "tokens_stride_bytes", 16);
  if (status.ok()) status = check_stride(given.out_stride_bytes, out_bytes, "out_stride_bytes", 4);
  if (status.ok()) status = check_pointer(given.routing.token_tiles, "routing.token_tiles", 16);
  if (status.ok()) status = check_pointer(given.routing.num_token_tiles, "routing.num_token_tiles", 4);
  if (status.ok()) status = check_pointer(given.routing.pair_ids, "routing.pair_ids", 4);
  if (status.ok()) status = check_optional(given.row_scales, "row_scales", 4);
  if (status.ok()) status = check_optional(given.pair_weights, "pair_weights", 4);
  if (status.ok() && plan.workspace_bytes() > 0) status = check_pointer(given.workspace, "workspace", 16);
  return status;
}

}  // namespace launch_rules

/// What launch() would refuse, without a GPU. An empty batch is right whatever its pointers are.
inline Status check_launch(const Plan& plan, const Weights& weights, const Buffers& buffers) {
  if (buffers.num_tokens > plan.max_tokens) {
    return make_error(Code::invalid_argument, launch_rules::tokens, "num_tokens", error_value(buffers.num_tokens),
                      error_value(plan.max_tokens));
  }
  if (buffers.num_tokens == 0) return success();
  const Status status = launch_rules::check_weights(plan, weights);
  return status.ok() ? launch_rules::check_buffers(plan, buffers) : status;
}

/// Blocks of the launch; 0 when there is nothing to do. grid_extent:
///   bound       one block for every work item that the batch can have
///   active      one for every item it has, where the host knows; else as bound
///   persistent  as many as are resident at once, but no more than bound
constexpr uint32_t launch_blocks(const Plan& plan, const Buffers& buffers) {
  uint64_t blocks = plan.max_items(buffers.num_tokens);
  const GridExtent extent = plan.kernel.config.grid_extent;
  if (extent == GridExtent::active && buffers.num_token_tiles > 0)
    blocks = buffers.num_token_tiles * plan.items_per_tile();
  if (extent == GridExtent::persistent) blocks = min_of<uint64_t>(blocks, plan.resident_blocks);
  return static_cast<uint32_t>(blocks);  // make_plan() checked the bound against max_grid
}

inline Params launch_params(const Plan& plan, const Weights& weights, const Buffers& buffers) {
  const Shape& shape = plan.shape;
  Params params{};
  params.weights = weights.expert_pointers != nullptr ? nullptr : weights.packed;
  params.expert_weights = weights.expert_pointers;
  params.weights_up = weights.packed_up;
  params.expert_weights_up = weights.expert_pointers_up;
  params.expert_stride_bytes =
      weights.expert_stride_bytes != 0 ? weights.expert_stride_bytes : dense_expert_bytes(shape, weights.layout);
  params.global_scales = weights.global_scales;
  params.bias = weights.bias;
  params.tokens = static_cast<const uint8_t*>(buffers.tokens);
  params.tokens_stride_bytes = buffers.tokens_stride_bytes != 0 ? buffers.tokens_stride_bytes : uint64_t{shape.k} * 2;
  params.row_scales = buffers.row_scales;
  params.pair_weights = buffers.pair_weights;
  params.out = static_cast<uint8_t*>(buffers.out);
  params.out_stride_bytes = buffers.out_stride_bytes != 0 ? buffers.out_stride_bytes : uint64_t{out_columns(shape)} * 2;
  params.token_tiles = buffers.routing.token_tiles;
  params.num_token_tiles = buffers.routing.num_token_tiles;
  params.pair_ids = buffers.routing.pair_ids;
  const Workspace workspace = plan.workspace();
  auto* memory = static_cast<uint8_t*>(buffers.workspace);
  params.tickets = static_cast<uint32_t*>(buffers.workspace);
  if (plan.kernel.config.split_k > 1) {
    params.split_counts = reinterpret_cast<uint32_t*>(memory + workspace.split_counts_offset);
    params.split_sums = reinterpret_cast<float*>(memory + workspace.counter_bytes);
    params.split_stride = workspace.split_stride;
  }
  params.n = shape.n;
  params.k = shape.k;
  params.top_k = shape.top_k;
  params.input_rows = buffers.input_rows;
  params.output_rows = buffers.output_rows;
  return params;
}

/// Zeroes a workspace's counters before its first launch; every launch leaves them zero. After a kernel that died, call
/// it again.
inline Status prepare_workspace(const Plan& plan, void* workspace, cuda_api::Stream stream) noexcept {
  if (plan.workspace_bytes() == 0) return success();
  const CurrentDevice current(plan.device);
  if (!current.status().ok()) return current.status();
  const Status status = launch_rules::check_pointer(workspace, "workspace", 16);
  return status.ok() ? cuda_api::memset_async(workspace, 0, plan.workspace().counter_bytes, stream) : status;
}

/// Computes out[row] = epilogue(tokens[row] x weights[expert of row]) for every row of the routing, on `stream`, which
/// belongs to the Plan's device. Rows of `out` that no pair writes are left as they were. Work is finished when the
/// stream says so. Errors: invalid_argument; foreign_cuda; cuda (an error of the kernel itself shows at the caller's
/// next synchronization). May be captured: a replay reads whatever the buffers hold then.
inline Status launch(const Plan& plan, const Weights& weights, const Buffers& buffers,
                     cuda_api::Stream stream) noexcept {
  Status status = check_launch(plan, weights, buffers);
  const uint32_t blocks = status.ok() ? launch_blocks(plan, buffers) : 0;
  if (blocks == 0) return status;
  const CurrentDevice current(plan.device);
  status = current.status();
  if (status.ok()) status = cuda_api::foreign_error();
  if (!status.ok()) return status;
  Params params = launch_params(plan, weights, buffers);
  void* arguments[] = {&params};
  const cuda_api::LaunchShape shape{blocks, plan.kernel.threads, plan.kernel.shared_bytes};
  return cuda_api::launch(plan.kernel.function, shape, stream, arguments);
}

FULCRUM_NAMESPACE_END
