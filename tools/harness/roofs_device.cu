// Kernels that are measured against or that measuring needs: reads, random matrices, a delay.
//
// Called by roofs.cpp and timer.cpp. Invariant: see roofs_device.hpp and enqueue_delay() in timer.hpp.
#include "harness/roofs_device.hpp"

#include "harness/draw_inputs.h"
#include "harness/timer.hpp"

namespace fulcrum::harness {
namespace {

constexpr uint32_t read_threads = 256;
constexpr uint32_t read_ahead = 8;  // 16-byte loads in flight a thread: 256 * 8 * 16 = 32 KiB a block

__device__ uint4 load_once(const uint4* address) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address));
  return v;
}

// A block takes runs of read_threads * read_ahead vectors, a grid apart.
__global__ void read_kernel(const uint4* from, uint64_t num_vectors, uint32_t* sink) {
  constexpr uint64_t run = read_threads * read_ahead;
  uint32_t bits = 0;
  for (uint64_t begin = blockIdx.x * run; begin < num_vectors; begin += gridDim.x * run) {
    uint4 values[read_ahead];
#pragma unroll
    for (uint32_t i = 0; i < read_ahead; ++i) {
      const uint64_t index = begin + i * read_threads + threadIdx.x;
      values[i] = index < num_vectors ? load_once(from + index) : uint4{};
    }
#pragma unroll
    for (uint32_t i = 0; i < read_ahead; ++i) bits ^= values[i].x ^ values[i].y ^ values[i].z ^ values[i].w;
  }
  if (bits == 0x9E3779B9) *sink = bits;  // keeps the loads; practically never true
}

__global__ void random_bf16_kernel(uint16_t* values, uint64_t count, uint64_t seed) {
  const uint64_t step = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    values[i] = draw_token(Data::random, DType::bf16, seed, 1, i, 0);
}

__global__ void delay_kernel(uint64_t nanoseconds) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

}  // namespace

Status enqueue_read(const void* from, uint64_t bytes, uint32_t blocks, uint32_t* sink, cuda_api::Stream stream) {
  uint64_t num_vectors = bytes / sizeof(uint4);
  void* arguments[] = {&from, &num_vectors, &sink};
  return cuda_api::launch({reinterpret_cast<const void*>(&read_kernel)}, {blocks, read_threads, 0}, stream, arguments);
}

Status enqueue_random_bf16(uint16_t* values, uint64_t count, uint64_t seed, cuda_api::Stream stream) {
  void* arguments[] = {&values, &count, &seed};
  return cuda_api::launch({reinterpret_cast<const void*>(&random_bf16_kernel)}, {4096, 256, 0}, stream, arguments);
}

Status enqueue_delay(cuda_api::Stream stream, uint32_t microseconds) {
  uint64_t nanoseconds = uint64_t{microseconds} * 1000;
  void* arguments[] = {&nanoseconds};
  return cuda_api::launch({reinterpret_cast<const void*>(&delay_kernel)}, {1, 1, 0}, stream, arguments);
}

}  // namespace fulcrum::harness
