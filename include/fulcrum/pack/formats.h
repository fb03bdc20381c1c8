// The checkpoint formats chosen by a value: reading rules for codes, scale bytes and the global scale.
//
// Called by the reference repack, host/weights.hpp, the oracle and tests; kernels name Block36 or Modelopt directly.
// Invariant: what a checkpoint means is decided here and in block36.h and modelopt.h, nowhere else.
#pragma once
#include <fulcrum/pack/block36.h>
#include <fulcrum/pack/modelopt.h>
#include <fulcrum/pack/repack_params.h>

FULCRUM_NAMESPACE_BEGIN

template <CheckpointFormat format>
struct FormatOf {
  using Reader = Block36;
};
template <>
struct FormatOf<CheckpointFormat::modelopt> {
  using Reader = Modelopt;
};

FULCRUM_HD constexpr NibblePlace checkpoint_code_place(CheckpointFormat format, uint32_t column) {
  return format == CheckpointFormat::block36 ? Block36::code_place(column) : Modelopt::code_place(column);
}
FULCRUM_HD constexpr uint64_t checkpoint_scale_byte(CheckpointFormat format, uint32_t group) {
  return format == CheckpointFormat::block36 ? Block36::scale_byte(group) : Modelopt::scale_byte(group);
}
FULCRUM_HD constexpr bool checkpoint_refuses_scale(CheckpointFormat format, uint32_t byte) {
  return format == CheckpointFormat::block36 ? Block36::refuses_scale(byte) : Modelopt::refuses_scale(byte);
}
FULCRUM_HD constexpr uint32_t checkpoint_canonical_scale(CheckpointFormat format, uint32_t byte) {
  return format == CheckpointFormat::block36 ? Block36::canonical_scale(byte) : Modelopt::canonical_scale(byte);
}

/// Whether a checkpoint's global scale multiplies (ModelOpt's weight_scale_2, GGUF's `.scale`) or divides
/// (compressed-tensors' weight_global_scale).
enum class GlobalScale : uint8_t { factor, reciprocal };

/// The largest global scale: kernels fold 2^7 into it, and the product must stay finite.
inline constexpr float max_global_scale = 3.402823466e+38f / dequant_fold_factor;

/// Why a stored global scale cannot be used, or null. NaN fails every comparison, so it is asked for first.
FULCRUM_HD constexpr const char* illegal_global_scale(GlobalScale form, float stored) {
  if (!(stored == stored) || stored > 3.402823466e+38f || stored < -3.402823466e+38f)
    return "the global scale is not a finite number";
  if (stored == 0) return "the global scale is zero";
  if (stored < 0) return "the global scale is negative";
  // Compared before dividing: the reciprocal of a small enough number is infinite.
  if (form == GlobalScale::factor ? stored > max_global_scale : stored < 1.0f / max_global_scale)
    return "the global scale is larger than 3.4e38 / 128, which the kernels' factor of 128 would overflow";
  return nullptr;
}

/// The factor that weights = code * scale * factor need, from a legal stored value.
FULCRUM_HD constexpr float global_scale_factor(GlobalScale form, float stored) {
  return form == GlobalScale::factor ? stored : 1.0f / stored;
}

FULCRUM_NAMESPACE_END
