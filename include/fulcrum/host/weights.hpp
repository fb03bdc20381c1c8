// Packed weights of one projection of a layer, and the way there from a checkpoint.
//
// Called when a model is loaded: repack() launches the kernels of pack/repack.cuh. launch() reads Weights.
// Invariant: a Weights owns nothing; the caller keeps its memory. repack() allocates nothing and does not synchronize:
// whether a scale byte was refused is known once the stream has passed, by read_refusal().
#pragma once

#include <fulcrum/core/layout.h>
#include <fulcrum/host/kernel.hpp>
#include <fulcrum/pack/formats.h>
#include <fulcrum/pack/repack_entries.h>
#include <fulcrum/pack/repack_params.h>

FULCRUM_NAMESPACE_BEGIN

/// All experts of one projection. Either one bank or a pointer per expert; all pointers are device memory.
/// With layout.code_word=block36 nothing is packed: `packed` (or expert_pointers) is the checkpoint's own block36
/// tensor, [local_experts][n][k/64][36], and of a gate_up projection the gate's half of it,
/// [local_experts][n/2][k/64][36], with packed_up for the other. 4-byte alignment is enough then. Scale bytes are read
/// as a repack reads them, but nothing is refused: 0xFF, which a repack refuses, counts as 0.
struct Weights {
  const uint8_t* packed = nullptr;                     // [local_experts][expert_bytes(n, k)]; 16-byte aligned
  uint64_t expert_stride_bytes = 0;                    // 0: dense
  const uint8_t* const* expert_pointers = nullptr;     // [local_experts], wins over packed; each 16-byte aligned
  const uint8_t* packed_up = nullptr;                  // block36 and gate_up only, with the stride of packed
  const uint8_t* const* expert_pointers_up = nullptr;  // likewise
  const float* global_scales = nullptr;                // [local_experts], gate_up: [local_experts][2] gate, up
  const float* bias = nullptr;                         // [local_experts][n], gate_up: [..][2][n/2] gate, up; or null
  Layout layout{};
  uint32_t n = 0, k = 0;     // packed rows and columns
  uint32_t num_experts = 0;  // local
};

/// Bytes from one expert of a bank to the next where they are dense.
constexpr uint64_t dense_expert_bytes(const Shape& shape, Layout layout) {
  const bool two_banks = layout.code_word == CodeWord::block36 && shape.projection == Projection::gate_up;
  return expert_bytes(shape.n, shape.k) / (two_banks ? 2 : 1);
}

/// Bytes of the packed bank of a shape's local experts.
constexpr uint64_t packed_bytes(const Shape& shape) { return expert_bytes(shape.n, shape.k) * shape.local_experts; }

/// Where the checkpoint's tensors lie in device memory. Pointer tables are given twice: `tables` on the device, for the
/// kernel, and `host_tables`, so that every pointer's alignment is checked before anything is launched.
struct CheckpointPart {
  const void* bank = nullptr;               // [num_experts] tensors, one after another
  uint64_t expert_bytes = 0;                // from one tensor of the bank to the next
  const void* const* table = nullptr;       // device: [num_experts] pointers, wins over bank
  const void* const* host_table = nullptr;  // host: the same pointers
};
struct CheckpointView {
  CheckpointFormat format = CheckpointFormat::block36;
  uint32_t num_parts = 1;         // 2: gate and up, each of n / 2 rows
  CheckpointPart codes[2];        // block36: the blocks, scales included; modelopt: [rows][k/2]
  CheckpointPart scales[2];       // modelopt: [rows][k/16]; block36: unused
  uint64_t codes_row_bytes = 0;   // 0: dense
  uint64_t scales_row_bytes = 0;  // 0: dense
};

/// The kernel that repack() needs, by name for find_auxiliary and as source for jit::compile_auxiliary. Both are empty,
/// and refused by those, for a layout that is read in place.
constexpr AuxiliarySource repack_source(CheckpointFormat format, Layout layout,
                                        RepackDirection direction = RepackDirection::pack) {
  if (read_in_place(layout.code_word)) return AuxiliarySource{"", ""};
  const RepackEntry& entry = repack_entry(RepackKind{format, layout}, direction);
  return AuxiliarySource{entry.name, entry.source};
}

namespace detail {

inline constexpr const char* repack_rule = "{detail}";
inline constexpr const char* refused_rule =
    "the checkpoint's scale byte {value} has no meaning in its format; expert, part, row and group are in "
    "read_refusal's answer. Nothing of this layer may be used";
inline constexpr const char* aligned_rule = "{subject} must be aligned to {limit} bytes; its address ends in {value}";
inline constexpr const char* null_rule = "{subject} is null, and it has bytes to hold";
inline constexpr const char* table_twice_rule =
    "{subject} has a pointer table on one side only; give it on the device and on the host";
inline constexpr const char* global_scale_rule =
    "{subject}[{value}]: {detail}; check how the checkpoint stores it (factor or reciprocal)";
inline constexpr const char* parts_rule = "a {subject} weight has {limit} parts in a checkpoint, this one has {value}";

inline constexpr const char* overlap_rule =
    "{subject} is {value}, and a row has {limit} bytes: rows of the checkpoint would be read from each other's bytes";

inline uint64_t address_bits(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

/// Collects into `bits` every address and stride whose alignment the kernel's copies depend on.
inline Status part_bits(const CheckpointPart& part, uint32_t num_experts, const char* name, uint64_t& bits) {
  if (part.table == nullptr && part.host_table == nullptr) {
    if (part.bank == nullptr) return make_error(Code::invalid_argument, null_rule, name);
    bits |= address_bits(part.bank) | part.expert_bytes;
    return success();
  }
  if (part.table == nullptr || part.host_table == nullptr)
    return make_error(Code::invalid_argument, table_twice_rule, name);
  for (uint32_t expert = 0; expert < num_experts; ++expert) {
    if (part.host_table[expert] == nullptr) return make_error(Code::invalid_argument, null_rule, name);
    bits |= address_bits(part.host_table[expert]);
  }
  return success();
}

/// Experts may be interleaved row by row, so a stride of either kind needs no more than one row of `row_bytes`.
inline Status check_strides(const CheckpointPart& part, uint32_t num_experts, const char* name, uint64_t row_stride,
                            const char* row_name, uint64_t row_bytes) {
  if (row_stride < row_bytes) {
    return make_error(Code::invalid_argument, overlap_rule, row_name, error_value(row_stride), error_value(row_bytes));
  }
  const bool is_bank = part.table == nullptr && num_experts > 1;
  if (!is_bank || part.expert_bytes >= row_bytes) return success();
  return make_error(Code::invalid_argument, overlap_rule, name, error_value(part.expert_bytes), error_value(row_bytes));
}

inline ExpertArray expert_array(const CheckpointPart& part) {
  // One struct serves both directions; packing only reads through these pointers.
  return ExpertArray{const_cast<void*>(part.bank),
                     const_cast<void* const*>(reinterpret_cast<const void* const*>(part.table)), part.expert_bytes};
}

}  // namespace detail

/// Fills the parameters of a repack: sizes, strides, and the granule that every address allows. Errors:
/// invalid_argument.
inline Result<RepackParams> repack_params(const CheckpointView& view, const Shape& shape, void* packed,
                                          uint64_t* refusal) {
  const bool gate_up = shape.projection == Projection::gate_up;
  if (gate_up ? view.num_parts != 2 : view.num_parts != 1) {
    return make_error(Code::invalid_argument, detail::parts_rule, value_name(shape.projection), view.num_parts,
                      gate_up ? 2 : 1);
  }
  RepackParams params;
  params.num_parts = view.num_parts;
  params.n = shape.n;
  params.k = shape.k;
  params.num_experts = shape.local_experts;
  params.codes_row_bytes =
      view.codes_row_bytes != 0 ? view.codes_row_bytes : checkpoint_codes_row_bytes(view.format, shape.k);
  params.scales_row_bytes =
      view.scales_row_bytes != 0 ? view.scales_row_bytes : checkpoint_scales_row_bytes(view.format, shape.k);
  uint64_t codes_bits = params.codes_row_bytes;
  uint64_t scales_bits = params.scales_row_bytes;
  for (uint32_t part = 0; part < view.num_parts; ++part) {
    Status status = detail::part_bits(view.codes[part], shape.local_experts, "codes", codes_bits);
    if (status.ok() && view.format == CheckpointFormat::modelopt) {
      status = detail::part_bits(view.scales[part], shape.local_experts, "scales", scales_bits);
    }
    if (status.ok()) {
      status =
          detail::check_strides(view.codes[part], shape.local_experts, "codes.expert_bytes", params.codes_row_bytes,
                                "codes_row_bytes", checkpoint_codes_row_bytes(view.format, shape.k));
    }
    if (status.ok() && view.format == CheckpointFormat::modelopt) {
      status =
          detail::check_strides(view.scales[part], shape.local_experts, "scales.expert_bytes", params.scales_row_bytes,
                                "scales_row_bytes", checkpoint_scales_row_bytes(view.format, shape.k));
    }
    if (!status.ok()) return status;
    params.parts[part] = RepackPart{detail::expert_array(view.codes[part]), detail::expert_array(view.scales[part])};
  }
  params.codes_granule = copy_granule(codes_bits);
  params.scales_granule = copy_granule(scales_bits);
  params.packed = packed;
  params.refusal = refusal;
  if (packed == nullptr) return make_error(Code::invalid_argument, detail::null_rule, "packed");
  if (detail::address_bits(packed) % 16 != 0) {
    return make_error(Code::invalid_argument, detail::aligned_rule, "packed",
                      static_cast<int64_t>(detail::address_bits(packed) % 16), 16);
  }
  if (refusal == nullptr) return make_error(Code::invalid_argument, detail::null_rule, "refusal");
  const char* reason = illegal_repack(view.format, params);
  if (reason != nullptr) return make_error(Code::invalid_argument, detail::repack_rule, "shape", 0, 0, reason);
  return params;
}

/// Turns stored global scales (host memory, one a tensor) into the factors that kernels want. Error: invalid_argument
/// for a zero, negative, infinite or too large one, with its index as value; nothing after it is written.
inline Status global_scale_factors(GlobalScale form, const float* stored, uint64_t count, float* factors) {
  for (uint64_t index = 0; index < count; ++index) {
    const char* reason = illegal_global_scale(form, stored[index]);
    if (reason != nullptr) {
      return make_error(Code::invalid_argument, detail::global_scale_rule, "global_scales", static_cast<int64_t>(index),
                        0, reason);
    }
    factors[index] = global_scale_factor(form, stored[index]);
  }
  return success();
}

/// Packs all local experts of `shape` for `layout` into `packed` (packed_bytes(shape) bytes of device memory) on
/// `stream`. `kernel` is the one that repack_source(view.format, layout) names, on the stream's device, which must be
/// current. `refusal` is one device word that the kernel fills; see read_refusal(). The answer lacks global_scales and
/// bias, which the caller adds. Errors: invalid_argument, foreign_cuda, cuda. Thread-safe; no allocation, no
/// synchronization.
inline Result<Weights> repack(const Auxiliary& kernel, const CheckpointView& view, const Shape& shape, Layout layout,
                              void* packed, uint64_t* refusal, cuda_api::Stream stream) noexcept {
  Result<RepackParams> params = repack_params(view, shape, packed, refusal);
  if (!params.ok()) return params.status();
  Status status = cuda_api::foreign_error();
  if (status.ok()) status = cuda_api::memset_async(refusal, 0xFF, sizeof no_refusal, stream);
  const uint64_t blocks = repack_blocks(*params);
  if (status.ok() && blocks > 0) {
    void* arguments[] = {&*params};
    const cuda_api::LaunchShape launch_shape{static_cast<uint32_t>(blocks), repack_threads, repack_shared_bytes};
    status = cuda_api::launch(kernel.function, launch_shape, stream, arguments);
  }
  if (!status.ok()) return status;
  Weights weights;
  weights.packed = static_cast<const uint8_t*>(packed);
  weights.layout = layout;
  weights.n = shape.n;
  weights.k = shape.k;
  weights.num_experts = shape.local_experts;
  return weights;
}

/// Reads the refusal word back and waits for it. success(), or an error with the refused byte; `at` gets its place.
inline Status read_refusal(const uint64_t* refusal, cuda_api::Stream stream, ScaleRefusal& at) {
  uint64_t word = no_refusal;
  Status status = cuda_api::copy_async(&word, refusal, sizeof word, stream);
  if (status.ok()) status = cuda_api::synchronize(stream);
  if (!status.ok() || word == no_refusal) return status;
  at = scale_refusal(word);
  return make_error(Code::invalid_argument, detail::refused_rule, "scales", at.byte);
}

FULCRUM_NAMESPACE_END
