// The repack on the CPU: one code and one scale at a time, straight from core/layout.h and the reading rules.
//
// Called by tests (the GPU kernels must equal it bit for bit), by harness code that needs small packed weights, and by
// engines without a GPU at hand. Slow on purpose: it shares no word-level trick with the kernels.
// Invariant: every pointer in RepackParams is host memory; packing then unpacking gives canonical bytes.
#pragma once
#include <fulcrum/pack/formats.h>

FULCRUM_NAMESPACE_BEGIN
namespace reference {

inline uint8_t* expert_pointer(const ExpertArray& array, uint32_t expert) {
  void* base = array.table != nullptr ? array.table[expert] : array.bank;
  return static_cast<uint8_t*>(base) + (array.table != nullptr ? 0 : expert * array.expert_bytes);
}

/// One row of a part: its codes, and the bytes that its scales are counted from (the same ones for block36).
struct RowPointers {
  uint8_t* codes;
  uint8_t* scales;
};

inline RowPointers row_pointers(CheckpointFormat format, const RepackParams& params, uint32_t expert, uint32_t part,
                                uint32_t row) {
  const RepackPart& source = params.parts[part];
  uint8_t* codes = expert_pointer(source.codes, expert) + row * params.codes_row_bytes;
  if (format == CheckpointFormat::block36) return {codes, codes};
  return {codes, expert_pointer(source.scales, expert) + row * params.scales_row_bytes};
}

// Words of the packed unit are little-endian bytes; these keep alignment out of the question.
inline uint32_t load_word(const uint8_t* bytes) {
  return bytes[0] | uint32_t(bytes[1]) << 8 | uint32_t(bytes[2]) << 16 | uint32_t(bytes[3]) << 24;
}
inline void merge_word(uint8_t* bytes, uint32_t bits) {
  for (uint32_t i = 0; i < 4; ++i) bytes[i] = uint8_t(bytes[i] | bits >> 8 * i);
}

/// Packs one row into an expert whose bytes start as zeros. Returns the first refusal of the row, or no_refusal.
inline uint64_t pack_row(RepackKind kind, const RepackParams& params, uint32_t expert, uint32_t part, uint32_t row) {
  const RowPointers from = row_pointers(kind.format, params, expert, part, row);
  uint8_t* to = static_cast<uint8_t*>(params.packed) + expert * expert_bytes(params.n, params.k);
  const uint32_t n = params.n, k = params.k, packed = packed_row(params.num_parts == 2, part, row);
  const CodeWord code_word = kind.layout.code_word;
  uint64_t refusal = no_refusal;
  for (uint32_t group = 0; group < k / scale_group; ++group) {
    const uint32_t byte = from.scales[checkpoint_scale_byte(kind.format, group)];
    if (checkpoint_refuses_scale(kind.format, byte))
      refusal = min_of(refusal, refusal_word({expert, part, row, group, byte}));
    const uint32_t scale = checkpoint_canonical_scale(kind.format, byte) & 0x7F;
    const ScalePlace scale_at = scale_place(kind.layout, n, k, packed, group);
    merge_word(to + scale_at.word_bytes, encode_scale(code_word, scale_at.half, scale_at.turn, scale));
    if (scale == 0) continue;  // codes under a zero scale are packed as 0
    for (uint32_t column = group * scale_group; column < (group + 1) * scale_group; ++column) {
      const NibblePlace nibble = checkpoint_code_place(kind.format, column);
      const uint32_t code = from.codes[nibble.byte] >> nibble.shift & 15;
      const CodePlace at = code_place(kind.layout, n, k, packed, column);
      merge_word(to + at.word_bytes, encode_code(code_word, at.slot, at.half, code));
    }
  }
  return refusal;
}

inline void unpack_row(RepackKind kind, const RepackParams& params, uint32_t expert, uint32_t part, uint32_t row) {
  const RowPointers to = row_pointers(kind.format, params, expert, part, row);
  const uint8_t* from = static_cast<const uint8_t*>(params.packed) + expert * expert_bytes(params.n, params.k);
  const uint32_t n = params.n, k = params.k, packed = packed_row(params.num_parts == 2, part, row);
  const CodeWord code_word = kind.layout.code_word;
  for (uint32_t group = 0; group < k / scale_group; ++group) {
    const ScalePlace at = scale_place(kind.layout, n, k, packed, group);
    to.scales[checkpoint_scale_byte(kind.format, group)] =
        uint8_t(decode_scale(code_word, at.half, at.turn, load_word(from + at.word_bytes)));
  }
  for (uint32_t column = 0; column < k; ++column) {
    const CodePlace at = code_place(kind.layout, n, k, packed, column);
    const uint32_t code = decode_code(code_word, at.slot, at.half, load_word(from + at.word_bytes));
    const NibblePlace nibble = checkpoint_code_place(kind.format, column);
    uint8_t& byte = to.codes[nibble.byte];
    byte = uint8_t((byte & ~(15u << nibble.shift)) | code << nibble.shift);
  }
}

/// Checkpoint -> packed, on host memory. Returns the refusal word: no_refusal, or the first position (by expert, part,
/// row, group) of a scale that the format refuses; then `packed` is not to be used.
inline uint64_t pack(RepackKind kind, const RepackParams& params) {
  uint8_t* to = static_cast<uint8_t*>(params.packed);
  const uint64_t total_bytes = params.num_experts * expert_bytes(params.n, params.k);
  for (uint64_t at = 0; at < total_bytes; ++at) to[at] = 0;  // padding of k stays zero codes and zero scales
  uint64_t refusal = no_refusal;
  for (uint32_t expert = 0; expert < params.num_experts; ++expert)
    for (uint32_t part = 0; part < params.num_parts; ++part)
      for (uint32_t row = 0; row < params.n / params.num_parts; ++row)
        refusal = min_of(refusal, pack_row(kind, params, expert, part, row));
  return refusal;
}

/// Packed -> checkpoint, on host memory: canonical bytes, padding of k dropped.
inline void unpack(RepackKind kind, const RepackParams& params) {
  for (uint32_t expert = 0; expert < params.num_experts; ++expert)
    for (uint32_t part = 0; part < params.num_parts; ++part)
      for (uint32_t row = 0; row < params.n / params.num_parts; ++row) unpack_row(kind, params, expert, part, row);
}

}  // namespace reference
FULCRUM_NAMESPACE_END
