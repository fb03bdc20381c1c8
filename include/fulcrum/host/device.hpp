// A GPU as numbers: what plans check against and what tables match on. No CUDA here, so a named target can be
// described on a machine that has no GPU.
//
// Called by plan.hpp, table.hpp and the tuner; filled by query_device() in cuda_api.hpp.
// Invariant: tables match on DeviceKey (compute capability, SM count, shared memory), never on the marketing name.
#pragma once

#include <fulcrum/core/shape.h>

FULCRUM_NAMESPACE_BEGIN

/// Limits of one device; bytes where the name says so, counts otherwise.
struct Device {
  int32_t ordinal = -1;  // -1: described, not present
  Arch arch{0};
  uint32_t num_sms = 0;
  uint32_t shared_per_block_bytes = 0;  // most dynamic shared memory a block may opt in to
  uint32_t shared_per_sm_bytes = 0;
  uint32_t shared_reserved_bytes = 0;  // taken by the system from each resident block
  uint32_t registers_per_sm = 0;
  uint32_t registers_per_block = 0;
  uint32_t max_threads_per_sm = 0;
  uint32_t max_threads_per_block = 0;
  uint32_t max_blocks_per_sm = 0;
  uint32_t max_grid = 0;  // along x
  uint64_t l2_bytes = 0;
  uint64_t memory_bytes = 0;
  uint32_t memory_clock_khz = 0;  // 0 where the driver does not say
  uint32_t memory_bus_bits = 0;
  char name[128] = {};  // shown, never compared
};

/// What must agree for a measurement of one GPU to hold for another.
struct DeviceKey {
  int32_t cc = 0;
  uint32_t num_sms = 0;
  uint32_t shared_per_sm_bytes = 0;

  friend constexpr bool operator==(const DeviceKey& left, const DeviceKey& right) {
    return left.cc == right.cc && left.num_sms == right.num_sms &&
           left.shared_per_sm_bytes == right.shared_per_sm_bytes;
  }
};

constexpr DeviceKey device_key(const Device& device) {
  return DeviceKey{device.arch.cc, device.num_sms, device.shared_per_sm_bytes};
}

FULCRUM_NAMESPACE_END
