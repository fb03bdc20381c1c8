// The functions of device.h: the running thread's calls, handed to its block or to the machine's memory.
#include <emulator/device.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "harness/half.h"
#include "runtime/fault.hpp"
#include "runtime/machine.hpp"

namespace fulcrum::emulator {
namespace {

Thread& running() { return Machine::instance().running(); }
GlobalMemory& global() { return Machine::instance().memory; }

}  // namespace

void load_global(const char* what, const void* address, void* to, uint32_t bytes, bool constant) {
  if (constant) return global().load(what, address, to, bytes, true);
  global().load_ordered(what, address, to, bytes, running().grid_accessor());
}

void store_global(const char* what, void* address, const void* from, uint32_t bytes) {
  global().store(what, address, from, bytes, running().grid_accessor());
}

uint64_t atomic_global(const char* what, void* address, uint32_t bytes, uint64_t operand,
                       uint64_t (*combine)(uint64_t value, uint64_t operand), AtomicOrder order) {
  uint64_t value = 0;
  global().load(what, address, &value, bytes, false);
  const uint64_t next = combine(value, operand);
  global().update(what, address, &next, bytes);
  if (order == AtomicOrder::acq_rel) running().block->acquire_and_release(running(), address);
  Machine::instance().pause();
  return value;
}

void load_shared(const char* what, uint32_t address, void* to, uint32_t bytes) {
  running().block->memory().load(what, address, to, bytes, running().accessor());
}

void store_shared(const char* what, uint32_t address, const void* from, uint32_t bytes) {
  running().block->memory().store(what, address, from, bytes, running().accessor());
}

uint32_t atomic_shared_add(const char* what, uint32_t address, uint32_t operand) {
  return running().block->memory().atomic_add(what, address, operand, running().accessor());
}

void meet_warp(const char* what, void* record, void (*complete)(void* const*)) {
  running().block->meet_warp(running(), what, record, complete);
}

void sync_warp() { running().block->sync_warp(running()); }
void sync_block() { running().block->sync_threads(running(), 0, running().place.num_threads); }
void sync_threads(uint32_t barrier, uint32_t threads) { running().block->sync_threads(running(), barrier, threads); }

void cp_async(const char* what, uint32_t to, const void* from, uint32_t size, uint32_t bytes) {
  running().block->cp_async(running(), what, to, from, size, bytes);
}

void commit_cp_async() {
  Thread& thread = running();
  thread.groups.push_back(std::move(thread.uncommitted));
  thread.uncommitted.clear();
}

void wait_cp_async(uint32_t pending_groups) { running().block->wait_cp_async(running(), pending_groups); }

void check_cache_policy(const char* what, uint64_t policy) {
  if (policy != cache_policy && policy != cache_policy + 1)
    fault(fmt::format("{}: {:#x} is no cache policy that was created", what, policy));
}

void init_mbarrier(uint32_t barrier, uint32_t arrivals) {
  running().block->init_mbarrier(running(), barrier, arrivals);
}
void arrive_mbarrier(uint32_t barrier, uint32_t bytes) { running().block->arrive(running(), barrier, bytes); }
void arrive_mbarrier_when_copied(uint32_t barrier) { running().block->arrive_when_copied(running(), barrier); }
void wait_mbarrier(uint32_t barrier, uint32_t parity) { running().block->wait(running(), barrier, parity); }

void bulk_copy(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  running().block->bulk_copy(running(), to, from, bytes, barrier);
}

void tensor_copy(uint32_t to, const void* map, int32_t x, int32_t y, uint32_t barrier) {
  running().block->tensor_copy(running(), to, map, x, y, barrier);
}

void fence_wgmma() {
  meet_warp("wgmma_fence", nullptr, [](void* const*) { running().warp->wgmma.fence(); });
}

void issue_wgmma(const WgmmaLane& lane) {
  meet_warp("wgmma_m64k16", const_cast<WgmmaLane*>(&lane), [](void* const* records) {
    std::vector<WgmmaLane> lanes;
    for (uint32_t index = 0; index < 32; ++index) lanes.push_back(*static_cast<const WgmmaLane*>(records[index]));
    Warp& warp = *running().warp;
    warp.wgmma.issue(warp.lanes, lanes);
  });
}

void commit_wgmma() {
  meet_warp("wgmma_commit_group", nullptr, [](void* const*) { running().warp->wgmma.commit(); });
}

void wait_wgmma(uint32_t pending_groups) {
  meet_warp("wgmma_wait_group", &pending_groups, [](void* const* records) {
    Warp& warp = *running().warp;
    warp.wgmma.wait(warp.lanes, *static_cast<const uint32_t*>(records[0]));
  });
}

// Covers the thread's own accesses. By the PTX ISA a later fence of another thread, along the path that orders the two,
// would do as well; but it cannot wait for loads that this thread has under way.
void fence_async_proxy() {
  Thread& thread = running();
  thread.fenced[thread.place.thread] = thread.epoch().time;
  thread.tick();  // what follows is not fenced
}

}  // namespace fulcrum::emulator
