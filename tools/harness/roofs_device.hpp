// Kernels behind the roofs: a read of every byte, and random matrices.
//
// Called by roofs.cpp alone. Invariant: asynchronous; `bytes` are multiples of 16.
#pragma once

#include <cstdint>

#include "harness/device_memory.hpp"

namespace fulcrum::harness {

// Reads `bytes` from `from` with `blocks` blocks; `sink` is one word that is never written unless the data says so.
Status enqueue_read(const void* from, uint64_t bytes, uint32_t blocks, uint32_t* sink, cuda_api::Stream stream);

// `count` random 16-bit values of deviation 1.15, never NaN.
Status enqueue_random_bf16(uint16_t* values, uint64_t count, uint64_t seed, cuda_api::Stream stream);

}  // namespace fulcrum::harness
