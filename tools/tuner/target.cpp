// The named targets and how many blocks fit an SM. Invariant: see target.hpp.
#include "tuner/target.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace fulcrum::tuner {
namespace {

struct Preset {
  int cc;
  const char* name;
  uint32_t num_sms;
  uint32_t l2_mib;
  double clock_ghz;
  double memory_gbps;    // data sheet
  double matrix_tflops;  // data sheet, dense f16 with f32 accumulation
  double mma_cycles;
};

// A tensor core's cycles for an m16n8k16 (2,048 multiply-adds): data-sheet rate / SMs / clock / 4 tensor cores gives
// 256 multiply-adds a clock on A100 (8 cycles), 64 on RTX 3090 (32), 128 on L40S and RTX PRO 6000 (16), 512 on Hopper,
// where mma.sync reaches 63 % of what wgmma does (Luo et al., "Dissecting the NVIDIA Hopper architecture through
// microbenchmarking", 2025): 6.4. No such figure is published for 10.x and 12.1; they take Hopper's and RTX PRO 6000's.
constexpr std::array presets{
    Preset{80, "NVIDIA A100-SXM4-80GB", 108, 40, 1.41, 2039, 312, 8},
    Preset{86, "NVIDIA GeForce RTX 3090", 82, 6, 1.70, 936, 71, 32},
    Preset{89, "NVIDIA L40S", 142, 96, 2.52, 864, 362, 16},
    Preset{90, "NVIDIA H200", 132, 50, 1.74, 4800, 989, 6.4},
    Preset{100, "NVIDIA B200", 148, 126, 1.85, 8000, 2250, 6.4},
    Preset{103, "NVIDIA B300", 148, 126, 1.92, 8000, 2250, 6.4},
    Preset{120, "NVIDIA RTX PRO 6000 Blackwell", 188, 128, 2.40, 1792, 503, 16},
    Preset{121, "NVIDIA GB10", 48, 24, 2.42, 273, 62, 16},
};

// What measurements reach of a data sheet, on H200: 4,480 of 4,800 GB/s read, 780 of 989 TFLOP/s in an 8192^3 GEMM.
constexpr double memory_share = 4480.0 / 4800;
constexpr double matrix_share = 780.0 / 989;
// 6.4 TB/s into 132 SMs at 1.74 GHz, bulk copies out of L2 (measured on H200); no SM takes more than 64.
constexpr double l2_sm_bytes = 6400 / 1.74 / 132;

const Preset& preset_of(Arch arch) {
  const auto found =
      std::find_if(presets.begin(), presets.end(), [&](const Preset& preset) { return preset.cc == arch.cc; });
  return found != presets.end() ? *found : presets[3];
}

}  // namespace

Target named_target(Arch arch) {
  const Preset& preset = preset_of(arch);
  const ArchLimits limits = arch_limits(arch);
  Target target;
  Device& device = target.device;
  device.arch = arch;
  device.num_sms = preset.num_sms;
  device.shared_per_block_bytes = limits.block_shared_bytes;
  device.shared_per_sm_bytes = limits.sm_shared_bytes;
  device.shared_reserved_bytes = reserved_shared_bytes;
  device.registers_per_sm = sm_registers;
  device.registers_per_block = sm_registers;
  device.max_threads_per_sm = limits.sm_threads;
  device.max_threads_per_block = 1024;
  device.max_blocks_per_sm = limits.sm_blocks;
  device.max_grid = 0x7FFFFFFF;
  device.l2_bytes = uint64_t{preset.l2_mib} << 20;
  (void)std::snprintf(device.name, sizeof device.name, "%s", preset.name);
  target.clock_ghz = preset.clock_ghz;
  target.read_gbps = preset.memory_gbps * memory_share;
  target.matrix_tflops = preset.matrix_tflops * matrix_share;
  target.l2_sm_bytes = l2_sm_bytes;
  target.mma_cycles = preset.mma_cycles;
  return target;
}

Target measured_target(const Device& device, double read_gbps, double matrix_tflops) {
  Target target = named_target(device.arch);
  target.device = device;
  if (read_gbps > 0) target.read_gbps = read_gbps;
  if (matrix_tflops > 0) target.matrix_tflops = matrix_tflops;
  return target;
}

uint32_t resident_blocks(const Device& device, uint32_t threads, uint32_t registers, uint32_t shared_bytes) {
  const uint32_t warps = threads / 32;
  // An SM's registers are four files; a warp lives in one of them and takes registers in steps of 8 a thread.
  const uint32_t file = device.registers_per_sm / 4;
  const uint32_t warp_registers = 32 * round_up(std::max(registers, 1u), 8u);
  const uint32_t by_registers = file / warp_registers * 4 / warps;
  const uint32_t by_shared = device.shared_per_sm_bytes / (shared_bytes + device.shared_reserved_bytes);
  const uint32_t by_threads = device.max_threads_per_sm / threads;
  return std::min({by_registers, by_shared, by_threads, device.max_blocks_per_sm});
}

}  // namespace fulcrum::tuner
