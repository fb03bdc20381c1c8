// Runs the repack kernels on the current device and measures them.
//
// Called by the device tests, by bench and by whatever needs packed weights on a GPU.
// Invariant: kernels come from NVRTC with the headers that this program carries; a failure is an exception whose words
// a user can act on, never a wrong result.
#pragma once

#include <fulcrum/host/kernel.hpp>
#include <fulcrum/pack/repack_params.h>

#include <cstdint>

#include "harness/checkpoint.hpp"

namespace fulcrum::harness {

// The compiled kernel, kept for the life of the program. Throws InputError, DeviceError.
const Auxiliary& repack_kernel(RepackKind kind, RepackDirection direction);

// Launches one repack on `stream`; for packing, resets params.refusal first. Throws InputError for sizes that cannot be
// repacked, DeviceError for a CUDA error.
void run_repack(RepackKind kind, RepackDirection direction, const RepackParams& params, cuda_api::Stream stream);

// What `bench` records of one repack.
struct RepackRate {
  uint64_t bytes = 0;  // read and written
  uint32_t samples = 0;
  double median_us = 0, best_us = 0;
  double copy_median_us = 0;  // a device-to-device copy that reads and writes as many bytes, in the same run
  double gbps() const { return static_cast<double>(bytes) / median_us * 1e-3; }
  double copy_gbps() const { return static_cast<double>(bytes) / copy_median_us * 1e-3; }
};

// Fills a checkpoint on the device, then times `samples` replays of one direction and as many of a copy, alternating.
// Banks should be several times the L2; memory needed is twice the checkpoint's bytes.
RepackRate measure_repack(const CheckpointRecipe& recipe, Layout layout, RepackDirection direction, uint32_t samples);

}  // namespace fulcrum::harness
