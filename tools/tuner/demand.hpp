// What one consumer warp asks of its scheduler: cycles for a stage and for a tile's end, counted in machine code.
//
// Called by the cost model alone. Counts are of sm_90 code from ptxas 13.0.88, bulk ring, read with nvdisasm between
// two HMMA groups of the main loop; they are instructions of a warp, and an instruction takes one issue slot.
// Invariant: demands grow with the warp's units and token blocks and do not depend on the machine but for mma_cycles.
#pragma once

#include <fulcrum/core/config.h>
#include <fulcrum/core/shared_memory.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace fulcrum::tuner {

// Instructions that turn one unit (16 outputs x 64 columns, 32 codes a lane) into fragments, its loads included, and
// how many of them the integer pipe takes (LOP3, SHF, PRMT), which issues every second cycle.
struct DequantCount {
  double issued;
  double integer;
};
constexpr DequantCount dequant_count(CodeWord code_word, Dequant method, ScaleDecode decode, KOrder k_order) {
  const bool natural = k_order == KOrder::natural;
  if (code_word == CodeWord::block36) return {104, 54};  // 2-byte loads, a shuffle a word, scale bytes made canonical
  if (code_word == CodeWord::f16) return natural ? DequantCount{62, 31} : DequantCount{57, 28};
  if (code_word == CodeWord::bf16) return natural ? DequantCount{54, 30} : DequantCount{50, 27};
  const DequantCount count = method == Dequant::bits ? DequantCount{79, 40} : DequantCount{109, 70};
  if (decode == ScaleDecode::bits) return count;
  // a conversion and a sum, taken to be the integer pipe's, for a pair's shift, mask and (in bf16 two) products;
  // permuted k has half the pairs
  return {count.issued - (natural ? 4 : 2), count.integer};
}

inline constexpr double stage_instructions = 40;     // wait, addresses, release of a stage
inline constexpr double epilogue_instructions = 95;  // of one unit x 8 tokens, on the path without bias and weights
inline constexpr double item_instructions = 45;      // a tile's first step, its scales and row indices
inline constexpr double chunk_instructions = 43;     // cp_async: one 16-byte piece and its addresses
inline constexpr double word_instructions = 26;      // likewise one 4-byte piece, of weights read in place
inline constexpr double mma_latency_cycles = 33;     // m16n8k16, issue to dependent issue (Luo et al., Hopper)
inline constexpr double stage_latency_cycles = 100;  // a barrier's try_wait, a shared load and a first product, in turn
inline constexpr double barrier_cycles = 60;         // cp_async: the block meets once a stage, behind its slowest warp

// A smooth maximum: two equal times give 1.19 of one.
inline double four_norm(std::initializer_list<double> times) {
  double sum = 0;
  for (const double time : times) sum += time * time * time * time;
  return std::sqrt(std::sqrt(sum));
}

// A granule of 8 tokens of one warp's tile, and the rest of the warp's work, in a stage and in a tile.
struct Demand {
  double stage_cycles = 0;  // of one stage, at `blocks` granules
  double delay_cycles = 0;  // in which the warp waits and others may issue
  double item_cycles = 0;   // at the end of a tile
};

// `blocks` granules of 8 tokens are the warp's own in this tile.
inline Demand warp_demand(const Config& config, double blocks, double mma_cycles) {
  const double units = config.tile_n / 16.0 / config.warps_n;
  const double steps = config.tile_k / 64.0;
  const DequantCount count = dequant_count(config.code_word, config.dequant, config.scale_decode, config.k_order);
  const bool ragged = config.tile_m > config.token_granularity;  // a branch beside every mma
  const double issued = units * count.issued + blocks * (2 + units * 4 * (ragged ? 2 : 1));
  const double integer = 2 * units * count.integer;
  const double tensor = units * blocks * 4 * mma_cycles;
  // codes, scales and token fragments, through 128 bytes a cycle that four schedulers share
  const double shared = (units * 576 + blocks * 1024) / 32;
  // pipes that are busy at the same time delay each other: the 4-norm again
  const double step = four_norm({issued, integer, tensor, shared});
  Demand demand;
  demand.stage_cycles = stage_instructions + steps * step;
  // four mma steps of a unit wait for each other, whatever else the warp has to issue
  demand.delay_cycles = stage_latency_cycles + steps * std::max(0.0, 4 * mma_latency_cycles - step);
  demand.item_cycles = item_instructions + units * blocks * epilogue_instructions;
  if (config.copy == Copy::cp_async) {
    const SharedMemory memory = shared_memory(config);
    const double threads = block_threads(config);
    const double token_rows = blocks * config.warps_m * 8;
    const double weights = read_in_place(config.code_word) ? word_instructions * (memory.weight_bytes / 4.0)
                                                           : chunk_instructions * (memory.weight_bytes / 16.0);
    demand.stage_cycles += (weights + chunk_instructions * token_rows * config.tile_k * 2 / 16) / threads;
    demand.delay_cycles += barrier_cycles;
  }
  return demand;
}

// Share of a scheduler's cycles that `warps` warps fill when each in turn needs it for `service` cycles and then waits
// for `delay`: exact mean value analysis of a closed network with one station and one delay (Reiser and Lavenberg,
// 1980).
inline double scheduler_utilization(double warps, double service, double delay) {
  double queue = 0;
  double utilization = 0;
  const double whole = std::max(1.0, warps);
  for (double number = 1; number < whole + 1; ++number) {
    const double response = service * (1 + queue);
    const double rate = number / (response + delay);
    queue = rate * response;
    const double next = rate * service;
    if (number > whole)
      return utilization + (next - utilization) * (whole - (number - 1));  // between two whole numbers
    utilization = next;
  }
  return utilization;
}

}  // namespace fulcrum::tuner
