// Names and sources of the repack kernels: 2 directions x 2 formats x 3 code words x 2 k orders, one entry each.
//
// Called by host/weights.hpp (a kernel's name, for a registry or the JIT), codegen's registry and tests.
// Invariant: an entry's source is what jit::compile_auxiliary compiles to a kernel of the entry's name; every text has
// static storage.
#pragma once
#include <fulcrum/core/config.h>
#include <fulcrum/pack/repack_params.h>

FULCRUM_NAMESPACE_BEGIN

struct RepackEntry {
  RepackKind kind;
  RepackDirection direction = RepackDirection::pack;
  char name[48] = {};     // "fulcrum_unpack_modelopt_plain_permuted" is the longest, 38
  char source[144] = {};  // one #include and one FULCRUM_REPACK line, at most 135
};

constexpr const char* direction_name(RepackDirection direction) {
  return direction == RepackDirection::pack ? "pack" : "unpack";
}

namespace detail {

/// Appends `words` to a text that ends at `end`; returns the new end.
constexpr char* append(char* end, const char* words) {
  for (; *words != '\0'; ++words) *end++ = *words;
  return end;
}

constexpr RepackEntry make_repack_entry(RepackKind kind, RepackDirection direction) {
  RepackEntry entry;
  entry.kind = kind;
  entry.direction = direction;
  const char* const words[4] = {direction_name(direction), format_name(kind.format), value_name(kind.layout.code_word),
                                value_name(kind.layout.k_order)};
  char* name_end = append(entry.name, "fulcrum");
  for (const char* word : words) name_end = append(append(name_end, "_"), word);
  char* source_end = append(entry.source, "#include <fulcrum/pack/repack.cuh>\nFULCRUM_REPACK(");
  source_end = append(source_end, entry.name);
  for (const char* word : words) source_end = append(append(source_end, ", "), word);
  append(source_end, ")\n");
  return entry;
}

}  // namespace detail

inline constexpr uint32_t num_repack_entries = 24;

struct RepackEntries {
  RepackEntry entries[num_repack_entries];
};

/// Index of a kind and direction in repack_entries.
constexpr uint32_t repack_entry_index(RepackKind kind, RepackDirection direction) {
  return ((uint32_t(direction) * 2 + uint32_t(kind.format)) * 3 + uint32_t(kind.layout.code_word)) * 2 +
         uint32_t(kind.layout.k_order);
}

constexpr RepackEntries make_repack_entries() {
  RepackEntries all{};
  for (uint32_t index = 0; index < num_repack_entries; ++index) {
    const RepackKind kind{CheckpointFormat(index / 6 % 2), {CodeWord(index / 2 % 3), KOrder(index % 2)}};
    all.entries[index] = detail::make_repack_entry(kind, RepackDirection(index / 12));
  }
  return all;
}

inline constexpr RepackEntries repack_entries = make_repack_entries();

constexpr const RepackEntry& repack_entry(RepackKind kind, RepackDirection direction) {
  return repack_entries.entries[repack_entry_index(kind, direction)];
}

FULCRUM_NAMESPACE_END
