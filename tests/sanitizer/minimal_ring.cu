// The least that a ring of copies needs, to see what compute-sanitizer's racecheck makes of it: one warp fills one
// stage again and again, another reads it; a full mbarrier orders the filling before the reading, an empty one the
// reading before the next filling. Correct by the PTX memory model in every form.
//
//   minimal_ring stores     the producer's lanes store, and each waits on the empty mbarrier
//   minimal_ring wait       the same, but lane 0 waits for its warp, which then meets (bar.warp.sync)
//   minimal_ring arrive     the consumer's warp meets, then lane 0 arrives on the empty mbarrier for it
//   minimal_ring cp_async   cp.async and its arrival on the full mbarrier, each lane waits
//   minimal_ring bulk       one bulk copy
//
// Run by tests/sanitizer/run, which says what is expected of each.
#include <cuda_runtime.h>
#include <fulcrum/ptx/bulk.cuh>
#include <fulcrum/ptx/cp_async.cuh>
#include <fulcrum/ptx/ldst.cuh>
#include <fulcrum/ptx/mbarrier.cuh>
#include <fulcrum/ptx/sync.cuh>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

using namespace fulcrum;

enum class Form { stores, wait, arrive, cp_async, bulk };
constexpr uint32_t passes = 4, stage_bytes = 32 * 16;

template <Form form>
__global__ void ring(const uint8_t* from, uint32_t* sums) {
  const SharedAddress stage = ptx::dynamic_shared();
  const SharedAddress full = stage + stage_bytes, empty = full + 8;
  if (ptx::thread_index() == 0) {
    ptx::mbarrier_init(full, form == Form::bulk ? 1 : 32);
    ptx::mbarrier_init(empty, form == Form::arrive ? 1 : 32);
    ptx::fence_mbarrier_init();
  }
  ptx::barrier_sync();
  const uint32_t lane = ptx::lane_index();
  uint32_t sum = 0;
  for (uint32_t pass = 0; pass < passes; ++pass) {
    const uint32_t parity = pass & 1;
    if (ptx::warp_index() == 0) {
      if (form != Form::wait || lane == 0) ptx::mbarrier_wait_parity(empty, parity ^ 1);
      ptx::bar_warp_sync();
      const GlobalAddress<const uint8_t> source = global_address(from) + int64_t(pass) * stage_bytes;
      if constexpr (form == Form::bulk) {
        if (lane == 0) {
          ptx::mbarrier_arrive_expect_tx(full, stage_bytes);
          ptx::cp_async_bulk_shared_global(stage, source, stage_bytes, full);
        }
      } else if constexpr (form == Form::cp_async) {
        ptx::cp_async_cg_16(stage + lane * 16, source + int64_t(lane) * 16, 16);
        ptx::cp_async_mbarrier_arrive_noinc(full);
      } else {
        ptx::st_shared_u32(stage + lane * 16, pass + lane);
        ptx::mbarrier_arrive(full);
      }
    } else {
      ptx::mbarrier_wait_parity(full, parity);
      sum += ptx::ld_shared_u32(stage + (lane ^ 1) * 16);  // another lane's
      if constexpr (form == Form::arrive) ptx::bar_warp_sync();
      if (form != Form::arrive || lane == 0) ptx::mbarrier_arrive(empty);
    }
  }
  if (ptx::warp_index() == 1) sums[lane] = sum;
}

template <Form form>
int run() {
  uint8_t* from = nullptr;
  uint32_t* sums = nullptr;
  if (cudaMalloc(&from, passes * stage_bytes) != cudaSuccess || cudaMalloc(&sums, 32 * 4) != cudaSuccess) return 1;
  uint32_t words[passes * stage_bytes / 4];
  for (uint32_t i = 0; i < passes * stage_bytes / 4; ++i) words[i] = i / 4 / 32 + i / 4 % 32;
  cudaMemcpy(from, words, sizeof words, cudaMemcpyHostToDevice);
  ring<form><<<1, 64, stage_bytes + 16>>>(from, sums);
  uint32_t got[32];
  if (cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (got[lane] != 6 + 4 * (lane ^ 1)) return 2;
  std::puts("right");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* form = argc > 1 ? argv[1] : "";
  if (std::strcmp(form, "stores") == 0) return run<Form::stores>();
  if (std::strcmp(form, "wait") == 0) return run<Form::wait>();
  if (std::strcmp(form, "arrive") == 0) return run<Form::arrive>();
  if (std::strcmp(form, "cp_async") == 0) return run<Form::cp_async>();
  if (std::strcmp(form, "bulk") == 0) return run<Form::bulk>();
  std::fputs("usage: minimal_ring stores|wait|arrive|cp_async|bulk\n", stderr);
  return 1;
}
