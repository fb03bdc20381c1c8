// Config: one point in lever space, generated from levers.def; its text form, its short id, and parsing.
// Host, device and NVRTC share it: a kernel's source names its Config by text and this header parses it at compile time
// (so text functions are host functions that constant expressions may call anywhere).
// Invariant: parse_config(write_config(c)) == c for every Config.
#pragma once
#include <fulcrum/core/layout.h>
#include <fulcrum/core/shape.h>

FULCRUM_NAMESPACE_BEGIN

enum class Family : uint8_t { mma_sync };
enum class Copy : uint8_t { cp_async, bulk, mixed };
enum class Dequant : uint8_t { bits, prmt };
enum class ScaleDecode : uint8_t { bits, cvt };
enum class TileOrder : uint8_t { expert, longest };
enum class TileQueue : uint8_t { fixed, ticket };
enum class Raster : uint8_t { outputs, tokens };
enum class L2Hint : uint8_t { none, weights, both };
enum class OutputStaging : uint8_t { direct, shared };
enum class GridExtent : uint8_t { persistent, bound, active };

enum class LeverKind : uint8_t { layout, math, tune, run };

// The names of an enum's values, in order of value; the size of the list is how many there are.
struct ValueNames {
  const char* names[4] = {};
  int32_t count = 0;  // 0: the lever is a number
};
FULCRUM_HD constexpr ValueNames value_names(int32_t) { return {}; }
FULCRUM_HD constexpr ValueNames value_names(Family) { return {{"mma_sync"}, 1}; }
FULCRUM_HD constexpr ValueNames value_names(CodeWord) { return {{"plain", "f16", "bf16", "block36"}, 4}; }
FULCRUM_HD constexpr ValueNames value_names(KOrder) { return {{"natural", "permuted"}, 2}; }
FULCRUM_HD constexpr ValueNames value_names(Copy) { return {{"cp_async", "bulk", "mixed"}, 3}; }
FULCRUM_HD constexpr ValueNames value_names(Dequant) { return {{"bits", "prmt"}, 2}; }
FULCRUM_HD constexpr ValueNames value_names(ScaleDecode) { return {{"bits", "cvt"}, 2}; }
FULCRUM_HD constexpr ValueNames value_names(TileOrder) { return {{"expert", "longest"}, 2}; }
FULCRUM_HD constexpr ValueNames value_names(TileQueue) { return {{"fixed", "ticket"}, 2}; }
FULCRUM_HD constexpr ValueNames value_names(Raster) { return {{"outputs", "tokens"}, 2}; }
FULCRUM_HD constexpr ValueNames value_names(L2Hint) { return {{"none", "weights", "both"}, 3}; }
FULCRUM_HD constexpr ValueNames value_names(OutputStaging) { return {{"direct", "shared"}, 2}; }
FULCRUM_HD constexpr ValueNames value_names(GridExtent) { return {{"persistent", "bound", "active"}, 3}; }
FULCRUM_HD constexpr ValueNames value_names(DType) { return {{"f16", "bf16"}, 2}; }
FULCRUM_HD constexpr ValueNames value_names(Projection) { return {{"plain", "gate_up", "down"}, 3}; }
FULCRUM_HD constexpr ValueNames value_names(Activation) { return {{"none", "silu"}, 2}; }

template <class T>
FULCRUM_HD constexpr const char* value_name(T value) {
  return value_names(value).names[int32_t(value)];
}

struct Config {
#define FULCRUM_LEVER(type, name, default_value, tag, kind, absent, sentence) type name = default_value;
#include <fulcrum/core/levers.def>
#undef FULCRUM_LEVER
};

// What a lever is, apart from its value in a Config.
struct LeverInfo {
  const char* name;
  const char* tag;
  LeverKind kind;
  int32_t default_value;
  int32_t absent_value;
  ValueNames values;
  const char* sentence;
};

inline constexpr LeverInfo lever_infos[] = {
#define FULCRUM_LEVER(type, name, default_value, tag, kind, absent, sentence) \
  {#name, #tag, LeverKind::kind, int32_t(default_value), int32_t(absent), value_names(type{}), sentence},
#include <fulcrum/core/levers.def>
#undef FULCRUM_LEVER
};
inline constexpr int32_t num_levers = int32_t(sizeof(lever_infos) / sizeof(lever_infos[0]));

// Lever `index` (its line in levers.def) of a Config as a number.
constexpr int32_t get_lever(const Config& config, int32_t index) {
  int32_t line = 0;
#define FULCRUM_LEVER(type, name, default_value, tag, kind, absent, sentence) \
  if (index == line++) return int32_t(config.name);
#include <fulcrum/core/levers.def>
#undef FULCRUM_LEVER
  return line < 0 ? line : 0;
}

constexpr void set_lever(Config& config, int32_t index, int32_t value) {
  int32_t line = 0;
#define FULCRUM_LEVER(type, name, default_value, tag, kind, absent, sentence) \
  if (index == line++) config.name = type(value);
#include <fulcrum/core/levers.def>
#undef FULCRUM_LEVER
}

constexpr bool operator==(const Config& a, const Config& b) {
  for (int32_t i = 0; i < num_levers; ++i)
    if (get_lever(a, i) != get_lever(b, i)) return false;
  return true;
}

FULCRUM_HD constexpr Layout layout_of(const Config& config) { return {config.code_word, config.k_order}; }

// The same device code: levers of kind run set to their defaults, so that they never cause a compile.
constexpr Config without_run_levers(Config config) {
  for (int32_t i = 0; i < num_levers; ++i)
    if (lever_infos[i].kind == LeverKind::run) set_lever(config, i, lever_infos[i].default_value);
  return config;
}

// What is used where nothing was tuned: legal for every Shape. With a producer warp and large stages where the
// architecture has bulk copies and the shared memory for them (measured on 9.0 only: bench/JOURNAL.md).
constexpr Config default_config(KernelKind kind, Arch arch) {
  Config config;
  config.code_word = kind.dtype == DType::bf16 ? CodeWord::bf16 : CodeWord::f16;
  if (arch.cc < 90 || arch_limits(arch).block_shared_bytes < 227 * 1024) return config;
  config.tile_m = 64;
  config.tile_k = 256;
  config.stages = 2;
  config.copy = Copy::bulk;
  config.producer_warps = 2;
  config.l2_hint = L2Hint::weights;
  config.output_staging = OutputStaging::shared;
  config.unroll_tokens = 16;
  return config;
}

// Likewise for weights of this layout. Weights read in place take none of what the other default has.
constexpr Config default_config(KernelKind kind, Arch arch, Layout layout) {
  Config config = read_in_place(layout.code_word) ? Config{} : default_config(kind, arch);
  config.code_word = layout.code_word;
  config.k_order = layout.k_order;
  return config;
}

// Outcome of parsing: what is wrong and where in the text; `what` is null when all is well.
struct ConfigError {
  const char* what = nullptr;
  int32_t position = 0;
};

namespace text {

constexpr int32_t length(const char* s) {
  int32_t n = 0;
  while (s[n] != 0) ++n;
  return n;
}

// Does s[begin, end) spell `word`?
constexpr bool spells(const char* s, int32_t begin, int32_t end, const char* word) {
  int32_t i = 0;
  for (; begin + i < end; ++i)
    if (word[i] == 0 || s[begin + i] != word[i]) return false;
  return word[i] == 0;
}

// A value of lever `info` in s[begin, end): a name of an enum, or a decimal number below 2^30. False when it is
// neither.
constexpr bool read_value(const LeverInfo& info, const char* s, int32_t begin, int32_t end, int32_t& value) {
  if (info.values.count > 0) {
    for (value = 0; value < info.values.count; ++value)
      if (spells(s, begin, end, info.values.names[value])) return true;
    return false;
  }
  value = 0;
  if (begin == end || end - begin > 9) return false;
  for (int32_t i = begin; i < end; ++i) {
    if (s[i] < '0' || s[i] > '9') return false;
    value = value * 10 + (s[i] - '0');
  }
  return true;
}

// Appends to a buffer that may be too short, counting what would have been written.
struct Writer {
  char* buffer;
  int32_t capacity;
  int32_t written = 0;

  constexpr void put(char c) {
    if (written + 1 < capacity) buffer[written] = c;
    ++written;
  }
  constexpr void put(const char* s) {
    for (; *s != 0; ++s) put(*s);
  }
  constexpr void put(int32_t value) {
    int32_t divisor = 1;
    while (value / divisor >= 10) divisor *= 10;
    for (; divisor > 0; divisor /= 10) put(char('0' + value / divisor % 10));
  }
  constexpr void put_value(const LeverInfo& info, int32_t value) {
    if (info.values.count > 0)
      put(info.values.names[value]);
    else
      put(value);
  }
  constexpr int32_t finish() {
    if (capacity > 0) buffer[written < capacity ? written : capacity - 1] = 0;
    return written;
  }
};

}  // namespace text

inline constexpr int32_t config_text_capacity = 512;  // enough for any canonical text and its final zero

// Reads "tile_n=128,stages=4": any order, each lever at most once, levers not named take their `absent` value.
constexpr ConfigError parse_config(const char* s, Config& config) {
  for (int32_t i = 0; i < num_levers; ++i) set_lever(config, i, lever_infos[i].absent_value);
  bool seen[num_levers] = {};
  for (int32_t begin = 0; s[begin] != 0;) {
    int32_t equals = begin, end = begin;
    while (s[equals] != 0 && s[equals] != '=' && s[equals] != ',') ++equals;
    if (s[equals] != '=') return {"expected name=value", begin};
    for (end = equals + 1; s[end] != 0 && s[end] != ',';) ++end;
    int32_t lever = 0;
    while (lever < num_levers && !text::spells(s, begin, equals, lever_infos[lever].name)) ++lever;
    if (lever == num_levers) return {"no such lever", begin};
    if (seen[lever]) return {"lever named twice", begin};
    seen[lever] = true;
    int32_t value = 0;
    if (!text::read_value(lever_infos[lever], s, equals + 1, end, value)) return {"no such value", equals + 1};
    set_lever(config, lever, value);
    begin = s[end] == ',' ? end + 1 : end;
    if (s[end] == ',' && s[begin] == 0) return {"expected name=value", begin};
  }
  return {};
}

// Writes every lever in the order of levers.def, zero-terminated; returns the length of the whole text.
constexpr int32_t write_config(const Config& config, char* buffer, int32_t capacity) {
  text::Writer writer{buffer, capacity};
  for (int32_t i = 0; i < num_levers; ++i) {
    if (i > 0) writer.put(',');
    writer.put(lever_infos[i].name);
    writer.put('=');
    writer.put_value(lever_infos[i], get_lever(config, i));
  }
  return writer.finish();
}

// A short name of the device code, fit for files, tests and symbols: "mma_sync_cwf16_n128_m8_...", every lever but run
// levers and those that have their default.
constexpr int32_t write_id(const Config& config, char* buffer, int32_t capacity) {
  text::Writer writer{buffer, capacity};
  writer.put(value_name(config.family));
  for (int32_t i = 1; i < num_levers; ++i) {
    if (lever_infos[i].kind == LeverKind::run || get_lever(config, i) == lever_infos[i].default_value) continue;
    writer.put('_');
    writer.put(lever_infos[i].tag);
    writer.put_value(lever_infos[i], get_lever(config, i));
  }
  return writer.finish();
}

FULCRUM_NAMESPACE_END
