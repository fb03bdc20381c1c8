// What the emulated ptx/ functions ask of the machine: the interface between kernels, compiled like any C++, and the
// runtime that executes them.
//
// Called by the twins of ptx/ under this folder; implemented in tools/emulator/runtime.
// Invariant: no standard header and no exception specification, so that a variant compiles fast; a call that finds a
// fault does not return. `what` is the name of the ptx function, for reports.
#pragma once
#include <emulator/keywords.h>

#include <fulcrum/core/types.h>

namespace fulcrum::emulator {

// Where the running thread is.
struct Place {
  uint32_t thread, num_threads;  // of its block
  uint32_t block, num_blocks;    // of the grid
};
extern const Place* place;

// First address of a block's dynamic shared memory; 0 stays an address that nothing may touch.
inline constexpr uint32_t shared_base = 1024;

// Memory. Bounds, alignment to `bytes` (1, 2, 4, 8 or 16) and initialization are checked, shared memory for races too.

void load_global(const char* what, const void* address, void* to, uint32_t bytes, bool constant);
void store_global(const char* what, void* address, const void* from, uint32_t bytes);
enum class AtomicOrder : uint8_t { relaxed, acq_rel };
// Replaces the value by combine(value, operand), returns the one before.
uint64_t atomic_global(const char* what, void* address, uint32_t bytes, uint64_t operand,
                       uint64_t (*combine)(uint64_t value, uint64_t operand), AtomicOrder order = AtomicOrder::relaxed);
void load_shared(const char* what, uint32_t address, void* to, uint32_t bytes);
void store_shared(const char* what, uint32_t address, const void* from, uint32_t bytes);
uint32_t atomic_shared_add(const char* what, uint32_t address, uint32_t operand);

// Meetings.

// The 32 lanes of a warp meet; the last calls complete(records) with all lanes' records, in order of lanes.
void meet_warp(const char* what, void* record, void (*complete)(void* const* records));
void sync_warp();                                       // meets, and orders memory accesses
void sync_block();                                      // all threads of the block
void sync_threads(uint32_t barrier, uint32_t threads);  // named barrier

// cp.async.

void cp_async(const char* what, uint32_t to, const void* from, uint32_t size, uint32_t bytes);
void commit_cp_async();
void wait_cp_async(uint32_t pending_groups);

// Words of cache policies; a copy with another one is a fault.
inline constexpr uint64_t cache_policy = 0x14F0000000000000;
void check_cache_policy(const char* what, uint64_t policy);

// mbarriers and the copies that complete on them.

void init_mbarrier(uint32_t barrier, uint32_t arrivals);
void arrive_mbarrier(uint32_t barrier, uint32_t expected_bytes);
void arrive_mbarrier_when_copied(uint32_t barrier);
void wait_mbarrier(uint32_t barrier, uint32_t parity);
void bulk_copy(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier);
void tensor_copy(uint32_t to, const void* map, int32_t x, int32_t y, uint32_t barrier);
void fence_async_proxy();

// Arithmetic on bit patterns.

uint32_t mul_x2(bool is_f16, uint32_t a, uint32_t b);
uint32_t cvt_satfinite_x2(bool is_f16, float low, float high);
uint32_t cvt_f16x2_e4m3x2(uint32_t bytes);
float approximate_ex2(float x);
float approximate_rcp(float x);

// One lane's part of an mma: 16 x 16 times 16 x 8, fragments as ptx/mma_sync.cuh has them.
struct MmaLane {
  float* d;           // [4]
  const uint32_t* a;  // [4]
  uint32_t b[2];
};
void multiply_m16n8k16(bool is_f16, void* const* lanes);  // MmaLane of each lane

// One lane's part of a wgmma, 64 x 16 times 16 x n; d and a are read when it is waited for, not before.
struct WgmmaLane {
  bool is_f16;
  uint32_t n;
  float* d;                                  // [n / 8][4]
  const uint32_t* a;                         // [4], or null
  uint64_t a_descriptor, tokens_descriptor;  // the first only where a is null
};
void fence_wgmma();
void issue_wgmma(const WgmmaLane& lane);
void commit_wgmma();
void wait_wgmma(uint32_t pending_groups);

}  // namespace fulcrum::emulator
