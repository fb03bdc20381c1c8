// A refused scale: its position as one 64-bit word that kernels reduce by minimum, and the sentence about it.
//
// Called by the repack kernels and the reference (refusal_word), host/weights.hpp and tools (scale_refusal and
// write_refusal).
// Invariant: the smallest word is the first position by expert, part, row and group, so an atomic minimum reports the
// same one whatever the order of blocks.
#pragma once
#include <fulcrum/core/config.h>
#include <fulcrum/core/nvfp4.h>

FULCRUM_NAMESPACE_BEGIN

/// How a checkpoint keeps codes and scales; block36.h and modelopt.h have the bytes. compressed-tensors is `modelopt`
/// with a reciprocal global scale (formats.h).
enum class CheckpointFormat : uint8_t { block36, modelopt };

FULCRUM_HD constexpr const char* format_name(CheckpointFormat format) {
  return format == CheckpointFormat::block36 ? "block36" : "modelopt";
}

/// Position of a scale byte that a format refuses. `row` counts inside the part (0 gate, 1 up), `group` 16 columns.
struct ScaleRefusal {
  uint32_t expert = 0, part = 0, row = 0, group = 0, byte = 0;
};

/// The word when nothing was refused (a memset of eight bytes to 0xFF writes it).
inline constexpr uint64_t no_refusal = ~uint64_t(0);

// [63:48] expert, [47] part, [46:24] row, [23:8] group, [7:0] the byte.
inline constexpr uint32_t max_repack_experts = (1u << 16) - 1;  // all ones in every field stays no_refusal
inline constexpr uint32_t max_repack_rows = 1u << 23;
inline constexpr uint32_t max_repack_k = scale_group << 16;

FULCRUM_HD constexpr uint64_t refusal_word(const ScaleRefusal& at) {
  return uint64_t(at.expert) << 48 | uint64_t(at.part) << 47 | uint64_t(at.row) << 24 | uint64_t(at.group) << 8 |
         at.byte;
}
FULCRUM_HD constexpr ScaleRefusal scale_refusal(uint64_t word) {
  return {uint32_t(word >> 48), uint32_t(word >> 47 & 1), uint32_t(word >> 24) & (max_repack_rows - 1),
          uint32_t(word >> 8) & 0xFFFF, uint32_t(word & 0xFF)};
}

inline constexpr int32_t refusal_text_capacity = 256;  // enough for any sentence and its final zero

/// "scale byte 0xFF of expert 3, gate row 17, columns 80 to 95 (group 5) is refused: ...". Rows are named gate or up
/// when the weight has two parts. Zero-terminated; returns the length of the whole text.
constexpr int32_t write_refusal(CheckpointFormat format, uint32_t num_parts, const ScaleRefusal& at, char* buffer,
                                int32_t capacity) {
  constexpr const char* digits = "0123456789ABCDEF";
  text::Writer writer{buffer, capacity};
  writer.put("scale byte 0x");
  writer.put(digits[at.byte >> 4 & 15]);
  writer.put(digits[at.byte & 15]);
  writer.put(" of expert ");
  writer.put(int32_t(at.expert));
  writer.put(num_parts == 1 ? ", row " : at.part == 0 ? ", gate row " : ", up row ");
  writer.put(int32_t(at.row));
  writer.put(", columns ");
  writer.put(int32_t(at.group * scale_group));
  writer.put(" to ");
  writer.put(int32_t(at.group * scale_group + scale_group - 1));
  writer.put(" (group ");
  writer.put(int32_t(at.group));
  writer.put(format == CheckpointFormat::block36 ? ") is refused: block36 readers do not agree on what 0xFF means"
             : (at.byte & 0x7F) == 0x7F          ? ") is refused: it is E4M3's NaN"
                                                 : ") is refused: its sign bit is set, and a scale is never negative");
  return writer.finish();
}

FULCRUM_NAMESPACE_END
