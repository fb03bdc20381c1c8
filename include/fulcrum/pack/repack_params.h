// What a repack kernel gets by value, and how its blocks divide a layer.
//
// Called by host/weights.hpp (fills RepackParams, launches), pack/repack.cuh (the kernels) and pack/reference.hpp (the
// same work on host memory, with host pointers in the same struct).
// Invariant: one RepackParams describes both directions; packing reads the checkpoint side, unpacking writes it.
#pragma once
#include <fulcrum/core/layout.h>
#include <fulcrum/pack/refusal.h>

FULCRUM_NAMESPACE_BEGIN

enum class RepackDirection : uint8_t { pack, unpack };

/// What of a repack is compiled in.
struct RepackKind {
  CheckpointFormat format = CheckpointFormat::block36;
  Layout layout;
};

/// One tensor per expert: either a bank with a fixed stride, or a table of pointers (which wins when it is not null).
/// Kernels need bank, table and everything they point to in device memory; the CPU reference in host memory.
struct ExpertArray {
  void* bank = nullptr;
  void* const* table = nullptr;  // [num_experts]
  uint64_t expert_bytes = 0;     // stride of the bank
};

/// One matrix of every expert: the whole weight, or the gate or up half of a gate_up weight.
struct RepackPart {
  ExpertArray codes;   // block36: the blocks, scales included, [rows][k/64][36]; modelopt: [rows][k/2]
  ExpertArray scales;  // block36: unused; modelopt: [rows][k/16]
};

/// A whole layer's worth of one projection.
struct RepackParams {
  RepackPart parts[2];     // [0] alone, or [0] gate and [1] up
  uint32_t num_parts = 1;  // 2 makes gate_up: each part has n / 2 rows
  uint32_t n = 0;          // packed rows, a multiple of 16
  uint32_t k = 0;          // a multiple of 16; block36: of 64
  uint32_t num_experts = 0;
  uint64_t codes_row_bytes = 0;   // stride of the rows of `codes`: checkpoint_codes_row_bytes() when they are dense
  uint64_t scales_row_bytes = 0;  // stride of the rows of `scales`, modelopt only
  uint32_t codes_granule = 4;     // 16 or 4: all addresses and strides of `codes` are multiples of it
  uint32_t scales_granule = 1;    // 16, 4 or 1, likewise for `scales`
  void* packed = nullptr;         // [num_experts][expert_bytes(n, k)], 16-byte aligned
  uint64_t* refusal = nullptr;    // one word, no_refusal before the launch; pack only
};

/// Bytes of a dense row of `codes` and of `scales`.
FULCRUM_HD constexpr uint64_t checkpoint_codes_row_bytes(CheckpointFormat format, uint32_t k) {
  return format == CheckpointFormat::block36 ? uint64_t(k / 64) * 36 : uint64_t(k / 2);
}
FULCRUM_HD constexpr uint64_t checkpoint_scales_row_bytes(CheckpointFormat format, uint32_t k) {
  return format == CheckpointFormat::block36 ? 0 : uint64_t(k / scale_group);
}

/// The largest of 16, 4 and 1 that divides every address and stride whose bitwise OR is `bits`.
FULCRUM_HD constexpr uint32_t copy_granule(uint64_t bits) { return bits % 16 == 0 ? 16 : bits % 4 == 0 ? 4 : 1; }

// A block of threads repacks 64 packed rows x 512 columns: 288 checkpoint bytes a row, a multiple of 32 (one sector)
// and of 16 (one vector), and 18,432 bytes in all, so that an SM's shared memory holds eight blocks (sm_86: four).
inline constexpr uint32_t repack_k_units = 8;
inline constexpr uint32_t repack_threads = 256;

// Rows lie 304 bytes apart in shared memory (dynamic): a multiple of 16 for vector copies, and 76 words = 12 mod 32, so
// that the eight rows a warp reads two words of (0, 12, 24, 4, 16, 28, 8, 20) meet no bank twice.
inline constexpr uint32_t repack_row_pitch = 304;
inline constexpr uint32_t repack_shared_bytes = group_n * repack_row_pitch;

/// Blocks of a launch (grid.x; y and z are 1); 0 when there is nothing to do, and then nothing is launched.
FULCRUM_HD constexpr uint64_t repack_blocks(const RepackParams& params) {
  return uint64_t(params.num_experts) * ceil_div(params.n, group_n) *
         ceil_div(ceil_div(params.k, unit_k), repack_k_units);
}

/// Consecutive blocks are neighbours along k, then along n: they write one run of packed bytes.
struct RepackTile {
  uint32_t expert, first_row, first_k_unit;
  uint32_t num_units;    // of 16 rows, 1 to 4
  uint32_t num_k_units;  // of 64 columns, 1 to repack_k_units
  uint32_t reciprocal;   // ceil(256 / num_units)

  /// A tile's units follow one another in packed memory, [k unit][unit]. The product is below (unit / num_units) * 256
  /// + 32, so the shift divides exactly for the 32 units there are.
  FULCRUM_HD constexpr uint32_t k_unit(uint32_t unit) const { return unit * reciprocal >> 8; }
  FULCRUM_HD constexpr uint32_t first_unit_row(uint32_t unit) const {
    return (unit - k_unit(unit) * num_units) * unit_n;
  }
};

FULCRUM_HD constexpr RepackTile repack_tile(const RepackParams& params, uint32_t block) {
  const uint32_t k_units = ceil_div(params.k, unit_k), k_tiles = ceil_div(k_units, repack_k_units);
  const uint32_t groups = ceil_div(params.n, group_n);
  const uint32_t k_tile = block % k_tiles, group = block / k_tiles % groups;
  const uint32_t first_k_unit = k_tile * repack_k_units, num_units = units_in_group(params.n, group);
  return {block / k_tiles / groups,
          group * group_n,
          first_k_unit,
          num_units,
          min_of(repack_k_units, k_units - first_k_unit),
          ceil_div(256u, num_units)};
}

/// Where a packed row comes from.
struct CheckpointRow {
  uint32_t part, row;
};

/// Inverse of packed_row() for a weight of one or two parts.
FULCRUM_HD constexpr CheckpointRow checkpoint_row(uint32_t num_parts, uint32_t packed) {
  if (num_parts == 1) return {0, packed};
  return {packed / 8 % 2, packed / 16 * 8 + packed % 8};
}

/// Words when the sizes or granules of `params` cannot be repacked, else null. Pointers are the caller's to check.
FULCRUM_HD constexpr const char* illegal_repack(CheckpointFormat format, const RepackParams& params) {
  if (params.n % unit_n != 0 || params.k % scale_group != 0) return "n and k must be multiples of 16";
  if (format == CheckpointFormat::block36 && params.k % 64 != 0) return "block36 needs k to be a multiple of 64";
  if (params.num_parts != 1 && params.num_parts != 2) return "a weight has one part, or gate and up";
  if (params.num_experts > max_repack_experts) return "one repack takes at most 65,535 experts";
  if (params.n > max_repack_rows) return "one repack takes at most 8,388,608 rows an expert";
  if (params.k > max_repack_k) return "one repack takes a k of at most 1,048,576";
  if (repack_blocks(params) > 0x7FFFFFFF) return "the layer needs more blocks than grid.x can count; split its experts";
  if (params.codes_granule != 16 && params.codes_granule != 4) return "codes must be aligned to 16 or 4 bytes";
  if (params.codes_row_bytes % params.codes_granule != 0)
    return "the row stride of codes is not a multiple of its granule";
  if (format == CheckpointFormat::block36) return nullptr;
  const uint32_t granule = params.scales_granule;
  if (granule != 16 && granule != 4 && granule != 1) return "the granule of scales must be 16, 4 or 1 bytes";
  if (params.scales_row_bytes % granule != 0) return "the row stride of scales is not a multiple of its granule";
  return nullptr;
}

FULCRUM_NAMESPACE_END
