// Legality, written once: illegal_reason(...) returns the words why a Config cannot be, or null when it can.
//
// static_assert in kernels, make_plan(), the CLI, the tuner and codegen all take it from here.
// Invariant: constexpr and without state, so that host, compiler and device give the same answer; words are static.
#pragma once
#include <fulcrum/core/config.h>
#include <fulcrum/core/shared_memory.h>

FULCRUM_NAMESPACE_BEGIN

FULCRUM_HD constexpr bool is_power_of_2(int32_t value) { return value > 0 && (value & (value - 1)) == 0; }

// f32 accumulators of one thread: a warp's 16 x 8 tile takes four.
FULCRUM_HD constexpr int32_t accumulators(const Config& config) {
  return config.tile_n / 16 / config.warps_n * (config.tile_m / 8 / config.warps_m) * 4;
}

// Registers that each thread may have when `blocks` blocks share an SM. Its registers are four files, a warp lives in
// one of them, and takes registers in steps of 8 a thread; a thread can name 255.
FULCRUM_HD constexpr int32_t registers_for_blocks(const Config& config, int32_t blocks) {
  const int32_t warps_in_file = ceil_div(int32_t(block_threads(config) / 32) * blocks, 4);
  return min_of(255, int32_t(sm_registers) / 4 / 32 / warps_in_file / 8 * 8);
}

// Registers that a thread may use: the cap if there is one, else what min_blocks leaves.
FULCRUM_HD constexpr int32_t register_limit(const Config& config) {
  return config.register_cap > 0 ? config.register_cap : registers_for_blocks(config, max_of(config.min_blocks, 1));
}

namespace rules {

FULCRUM_HD constexpr const char* loop_reason(const Config& c) {
  if (c.fragment_buffers != 1 && c.fragment_buffers != 2) return "fragment_buffers is 1 or 2";
  if (c.unroll_tokens < 0 || c.unroll_tokens > 256 || c.unroll_tokens % 8 != 0)
    return "unroll_tokens is a multiple of 8 from 0 to 256";
  if (c.split_k < 1 || c.split_k > 16) return "split_k is 1 to 16";
  if (c.blocks_per_sm < 0 || c.blocks_per_sm > 32) return "blocks_per_sm is 0 to 32";
  if (c.blocks_per_sm != 0 && c.grid_extent != GridExtent::persistent)
    return "blocks_per_sm limits grid_extent=persistent only";
  return nullptr;
}

FULCRUM_HD constexpr const char* tile_reason(const Config& c) {
  if (c.tile_n < 64 || c.tile_n > 512 || c.tile_n % 64 != 0) return "tile_n is a multiple of 64 from 64 to 512";
  if (c.tile_m < 8 || c.tile_m > 256 || c.tile_m % 8 != 0) return "tile_m is a multiple of 8 from 8 to 256";
  if (c.tile_k != 64 && c.tile_k != 128 && c.tile_k != 256) return "tile_k is 64, 128 or 256";
  // ranges first, so that no product below overflows
  if (c.warps_n < 1 || c.warps_m < 1 || c.warps_n > 16 || c.warps_m > 16 || c.warps_n * c.warps_m > 16)
    return "at most 16 consumer warps (warps_n times warps_m), and at least one each way";
  if (!is_power_of_2(c.warps_n) || c.tile_n % (16 * c.warps_n) != 0)
    return "warps_n is a power of two, and each of its warps owns whole units of 16 outputs";
  if (!is_power_of_2(c.warps_m) || c.tile_m % (8 * c.warps_m) != 0)
    return "warps_m is a power of two, and each of its warps owns whole groups of 8 tokens";
  if (accumulators(c) > 128) return "more than 128 accumulators a thread leave too few registers for operands";
  if (c.tile_n / 16 / c.warps_n > 8) return "a warp owns at most 8 units of 16 outputs";
  return nullptr;
}

FULCRUM_HD constexpr const char* token_reason(const Config& c) {
  if (c.token_granularity < 8 || c.token_granularity % (8 * c.warps_m) != 0)
    return "token_granularity is a multiple of 8 tokens for each of warps_m";
  if (c.tile_m % c.token_granularity != 0) return "tile_m is a multiple of token_granularity";
  if (c.tile_m / c.token_granularity > 8)
    return "more than 8 token counts (tile_m / token_granularity) make too much code";
  if (c.token_pad < 0 || c.token_pad > 128 || c.token_pad % 16 != 0)
    return "token_pad is a multiple of 16 bytes, so that rows stay aligned for 16-byte copies, at most 128";
  return nullptr;
}

FULCRUM_HD constexpr const char* producer_reason(const Config& c, Arch arch) {
  if (!has_producer(c))
    return c.producer_warps == 1 ? nullptr : "copy=cp_async has no producer warps: leave producer_warps at 1";
  if (arch.cc < 90) return "copy=bulk and copy=mixed need sm_90 or later";
  if (c.producer_warps != 1 && c.producer_warps != 2 && c.producer_warps != 4) return "producer_warps is 1, 2 or 4";
  if (ceil_div(uint32_t(c.tile_m), producer_rows(c)) > 32)
    return "a producer lane would keep more than 32 row addresses: more producer_warps, or a smaller tile";
  return nullptr;
}

FULCRUM_HD constexpr const char* resource_reason(const Config& c, Arch arch) {
  if (c.stages < 2 || c.stages > 16) return "stages is 2 to 16";
  if (c.min_blocks < 0 || c.min_blocks > 16) return "min_blocks is 0 to 16";
  if (c.register_cap != 0 && (c.register_cap < 32 || c.register_cap > 255)) return "register_cap is 0 or 32 to 255";
  if (c.register_cap != 0 && c.min_blocks != 0)
    return "register_cap and min_blocks both set the register limit: set min_blocks=0 with a cap";
  if (c.register_cap > registers_for_blocks(c, 1))
    return "register_cap is more than one block of this many threads can have";
  if (register_limit(c) < accumulators(c) + 40)
    return "the register limit leaves fewer than 40 registers beside the accumulators";
  const ArchLimits limits = arch_limits(arch);
  const uint32_t bytes = shared_memory(c).total_bytes;
  if (bytes > limits.block_shared_bytes)
    return "the stages need more shared memory than a block of this architecture may use";
  const uint32_t blocks = uint32_t(max_of(c.min_blocks, 1));
  if (blocks * (bytes + reserved_shared_bytes) > limits.sm_shared_bytes)
    return "min_blocks blocks need more shared memory than an SM of this architecture has";
  if (blocks * block_threads(c) > limits.sm_threads)
    return "min_blocks blocks are more threads than an SM of this architecture has";
  return nullptr;
}

// Blocks of 36 bytes lie at multiples of 4 bytes: no bulk copy and no cp.async of 16 bytes can move one.
FULCRUM_HD constexpr const char* block36_reason(const Config& c) {
  if (c.code_word != CodeWord::block36) return nullptr;
  if (c.copy != Copy::cp_async) return "code_word=block36 is copied 4 bytes at a time: copy=cp_async";
  if (c.l2_hint != L2Hint::none) return "copies of 4 bytes take no hint: l2_hint=none with code_word=block36";
  if (c.k_order != KOrder::natural) return "code_word=block36 has the checkpoint's order: k_order=natural";
  if (c.dequant != Dequant::bits || c.scale_decode != ScaleDecode::bits)
    return "code_word=block36 is decoded by dequant=bits and scale_decode=bits";
  return nullptr;
}

}  // namespace rules

// Can this Config be compiled for `arch` and `kind`?
FULCRUM_HD constexpr const char* illegal_reason(const Config& c, Arch arch, KernelKind kind) {
  if (arch_name(arch) == nullptr) return "the mma_sync family runs on sm_80, 86, 89, 90a, 100a, 103a, 120a and 121a";
  if (const char* reason = rules::tile_reason(c)) return reason;
  if (const char* reason = rules::token_reason(c)) return reason;
  if (const char* reason = rules::producer_reason(c, arch)) return reason;
  if (const char* reason = rules::loop_reason(c)) return reason;
  if (const char* reason = rules::block36_reason(c)) return reason;
  if (c.code_word == CodeWord::f16 && kind.dtype != DType::f16) return "code_word=f16 serves f16 token rows only";
  if (c.code_word == CodeWord::bf16 && kind.dtype != DType::bf16) return "code_word=bf16 serves bf16 token rows only";
  if (c.dequant == Dequant::prmt && c.code_word != CodeWord::plain) return "dequant=prmt reads plain nibbles only";
  if (c.scale_decode == ScaleDecode::cvt && c.code_word != CodeWord::plain)
    return "scale_decode=cvt converts the E4M3 scales of code_word=plain: other code words hold placed bits";
  if (c.scale_decode == ScaleDecode::cvt && arch.cc < 89) return "scale_decode=cvt needs sm_89 or later";
  if (kind.activation != Activation::none && !kind.gate_up) return "an activation needs a gate_up projection";
  return rules::resource_reason(c, arch);
}

// Most outputs or columns: kernels count n, k and the bytes of a row in 32 bits, rounded up to tiles.
inline constexpr uint32_t max_extent = 1u << 30;

// Can it compute this Shape?
FULCRUM_HD constexpr const char* illegal_reason(const Config& c, Arch arch, const Shape& shape) {
  if (shape.n == 0 || shape.n % unit_n != 0 || shape.n > max_extent)
    return "n is a positive multiple of 16, at most 2^30";
  if (shape.k == 0 || shape.k % scale_group != 0 || shape.k > max_extent)
    return "k is a positive multiple of 16, at most 2^30";
  if (c.code_word == CodeWord::block36 && shape.k % unit_k != 0)
    return "code_word=block36 needs k to be a multiple of 64, the columns of a block";
  if (ceil_div(shape.k, unit_k) < uint32_t(c.split_k))
    return "split_k cuts k into more parts than it has units of 64 columns";
  if (shape.local_experts == 0 || uint64_t(shape.first_expert) + shape.local_experts > shape.experts)
    return "local experts lie inside the experts, and there is at least one";
  if (shape.experts > 1024) return "at most 1024 experts";
  if (shape.top_k == 0 || shape.top_k > 32) return "top_k is 1 to 32";
  if (shape.activation != Activation::none && shape.projection != Projection::gate_up)
    return "an activation needs a gate_up projection";
  return illegal_reason(c, arch, kernel_kind(shape));
}

// Revision of the device code of a family: rows of tables made with another one are stale.
FULCRUM_HD constexpr int32_t family_revision(Family) { return 1; }

FULCRUM_NAMESPACE_END
