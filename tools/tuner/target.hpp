// A GPU as the cost model sees it: the limits that plans check, and the rates that its bounds are made of.
//
// Called by tune: named_target() where there is no GPU or another one is asked for, measured_target() where there is
// one. Invariant: every figure of a named target is a data sheet's or one measured on that GPU, with its source beside
// it.
#pragma once

#include <fulcrum/host/device.hpp>

namespace fulcrum::tuner {

struct Target {
  Device device{};
  double clock_ghz = 0;      // of the SMs, under load
  double read_gbps = 0;      // device memory, read only
  double matrix_tflops = 0;  // dense 16-bit, as a large cuBLAS GEMM reaches
  double l2_sm_bytes = 0;    // from L2 to one SM, per clock, when all SMs read
  double mma_cycles = 0;     // of one tensor core for one mma.sync m16n8k16
};

// The GPU that stands for an architecture: A100, RTX 3090, L40S, H200, B200, B300, RTX PRO 6000, GB10.
Target named_target(Arch arch);

// The rates of a named target, on the device at hand, with the roofs measured on it.
Target measured_target(const Device& device, double read_gbps, double matrix_tflops);

// Blocks of a Config that one SM holds at once when a thread takes `registers`; 0 when none fits.
uint32_t resident_blocks(const Device& device, uint32_t threads, uint32_t registers, uint32_t shared_bytes);

}  // namespace fulcrum::tuner
