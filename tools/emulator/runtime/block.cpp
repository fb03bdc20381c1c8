// Threads, barriers and copies of one block; see block.hpp.
#include "runtime/block.hpp"

#include <fulcrum/core/tensor_map.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/fault.hpp"
#include "runtime/machine.hpp"

namespace fulcrum::emulator {
namespace {

constexpr uint32_t most_mbarriers = 64;  // two for each of 16 stages, and room

}  // namespace

Block::Block(const Place& first, uint32_t shared_bytes, const std::function<void()>& start, StackPool& stacks)
    : num_agents_(first.num_threads + most_mbarriers), memory_(shared_bytes) {
  for (uint32_t index = 0; index < first.num_threads; ++index) {
    Place place = first;
    place.thread = index;
    threads_.push_back(std::make_unique<Thread>(place, num_agents_));
    Thread& thread = *threads_.back();
    thread.block = this;
    if (index % 32 == 0) {
      warps_.push_back(std::make_unique<Warp>());
      warps_.back()->index = index / 32;
      warps_.back()->block = this;
    }
    thread.warp = warps_.back().get();
    thread.warp->lanes.push_back(&thread);
    thread.warp->ready.push_back(&thread);
    thread.fiber = boost::context::fiber(std::allocator_arg, PooledStack{&stacks},
                                         [&thread, start](boost::context::fiber&& scheduler) {
                                           Machine& machine = Machine::instance();
                                           machine.scheduler_ = std::move(scheduler);
                                           try {
                                             start();
                                           } catch (const Fault& fault) {
                                             machine.fault_ = fault.words;
                                           }
                                           thread.done = true;
                                           return std::move(machine.scheduler_);
                                         });
  }
}

void Block::thread_done(Thread&) { ++num_done_; }

void Block::fire_event(uint64_t random) {
  const size_t at = random % events_.size();
  const std::function<void()> event = std::move(events_[at]);
  events_.erase(events_.begin() + static_cast<long>(at));
  event();
}

std::string Block::words_of(const Wait& wait) const {
  switch (wait.kind) {
    case Wait::Kind::warp: return fmt::format("its warp at {}", wait.what);
    case Wait::Kind::barrier: return fmt::format("{} threads at barrier {}", wait.count, wait.number);
    case Wait::Kind::mbarrier: {
      const Mbarrier& barrier = mbarriers_.at(wait.number);
      return fmt::format(
          "the phase of parity {} of the mbarrier at shared memory {:#x}, which is in phase {} and lacks "
          "{} of {} arrivals and {} bytes",
          wait.count, wait.number - shared_base, barrier.phase, barrier.pending, barrier.expected, barrier.bytes);
    }
    default: return "its turn";
  }
}

std::string Block::waiting_threads() const {
  std::string words;
  for (const std::unique_ptr<Warp>& warp : warps_) {
    std::map<std::string, uint32_t> reasons;
    for (const Thread* lane : warp->lanes) ++reasons[lane->done ? "has ended" : "waits for " + words_of(lane->waits)];
    for (const auto& [reason, lanes] : reasons)
      words += fmt::format("\n  block {} warp {}: {} lane{} {}", threads_[0]->place.block, warp->index, lanes,
                           lanes == 1 ? "" : "s", reason);
  }
  return words;
}

void Block::order(const std::vector<Thread*>& threads) {
  Clocks clocks(num_agents_), fenced(num_agents_);
  std::shared_ptr<const BlockClocks> others;
  for (const Thread* thread : threads) {
    clocks.join(thread->clocks);
    fenced.join(thread->fenced);
    if (thread->others == nullptr || thread->others == others) continue;
    const auto both = std::make_shared<BlockClocks>(*thread->others);
    if (others != nullptr) both->join(*others);
    others = both;
  }
  for (Thread* thread : threads) {
    thread->clocks = clocks;
    thread->fenced = fenced;
    thread->others = others;
    thread->tick();
  }
}

void Block::acquire_and_release(Thread& thread, const void* address) {
  BlockClocks& released = Machine::instance().memory.released_at(address);
  if (thread.others != nullptr) released.join(*thread.others);
  thread.others = std::make_shared<BlockClocks>(released);
  released.join(thread.place.block, thread.clocks);
  thread.tick();  // what follows is not released
}

void Block::meet_warp(Thread& thread, const char* what, void* record, void (*complete)(void* const*)) {
  Warp& warp = *thread.warp;
  if (warp.arrived > 0 && std::strcmp(warp.meeting, what) != 0) {
    fault(fmt::format("{}: other lanes of the warp are at {}", what, warp.meeting));
  }
  warp.meeting = what;
  warp.records[thread.place.thread % 32] = record;
  Machine& machine = Machine::instance();
  if (++warp.arrived < 32) return machine.wait({Wait::Kind::warp, what});
  if (complete != nullptr) complete(warp.records);
  warp.arrived = 0;
  for (Thread* lane : warp.lanes)
    if (lane != &thread) machine.wake(*lane);
}

void Block::sync_warp(Thread& thread) {
  meet_warp(thread, "bar_warp_sync", &thread, [](void* const* records) {
    std::vector<Thread*> lanes;
    for (uint32_t lane = 0; lane < 32; ++lane) lanes.push_back(static_cast<Thread*>(records[lane]));
    lanes[0]->block->order(lanes);
  });
}

void Block::sync_threads(Thread& thread, uint32_t barrier, uint32_t count) {
  if (count == 0 || count % 32 != 0 || count > threads_.size())
    fault(fmt::format("barrier_sync: {} threads are not whole warps of the block's {}", count, threads_.size()));
  Meeting& meeting = meetings_[barrier];
  if (!meeting.threads.empty() && meeting.expected != count)
    fault(fmt::format("barrier_sync {}: {} threads expected here, {} by others", barrier, count, meeting.expected));
  meeting.expected = count;
  meeting.threads.push_back(&thread);
  Machine& machine = Machine::instance();
  if (meeting.threads.size() < count) return machine.wait({Wait::Kind::barrier, "", barrier, count});
  const std::vector<Thread*> threads = std::exchange(meeting.threads, {});
  order(threads);
  for (Thread* other : threads)
    if (other != &thread) machine.wake(*other);
  machine.pause();
}

void Block::land(Copy& copy, const char* what, Epoch writer) {
  if (copy.landed) return;
  copy.landed = true;
  std::vector<uint8_t> bytes(copy.size, 0);
  if (copy.bytes > 0) Machine::instance().memory.read(what, copy.from, bytes.data(), copy.bytes);
  memory_.land_copy(copy.to, bytes.data(), copy.size, writer);
}

void Block::cp_async(Thread& thread, const char* what, uint32_t to, const void* from, uint32_t size, uint32_t bytes) {
  memory_.check_place(what, to, size, size);
  if (reinterpret_cast<uintptr_t>(from) % size != 0)
    fault(fmt::format("{}: the global address is not a multiple of {} bytes", what, size));
  memory_.begin_copy(what, to, size, thread.accessor(), false);
  thread.uncommitted.push_back(
      std::make_shared<Copy>(Copy{to, static_cast<const uint8_t*>(from), std::min(bytes, size), size}));
}

void Block::wait_cp_async(Thread& thread, uint32_t pending_groups) {
  while (thread.groups.size() > pending_groups) {
    for (const std::shared_ptr<Copy>& copy : thread.groups.front()) land(*copy, "cp.async", thread.accessor().epoch);
    thread.groups.pop_front();
  }
}

Mbarrier& Block::mbarrier(const char* what, uint32_t address) {
  const auto found = mbarriers_.find(address);
  if (found == mbarriers_.end())
    fault(fmt::format("{}: there is no mbarrier at shared memory {:#x}", what, address - shared_base));
  return found->second;
}

void Block::init_mbarrier(Thread& thread, uint32_t address, uint32_t arrivals) {
  memory_.make_mbarrier(address, thread.accessor());
  if (arrivals == 0 || mbarriers_.size() == most_mbarriers) fault("mbarrier_init: no arrivals, or too many mbarriers");
  const auto agent = static_cast<uint32_t>(threads_.size() + mbarriers_.size());
  Mbarrier& barrier = mbarriers_.try_emplace(address, num_agents_, agent).first->second;
  barrier.expected = barrier.pending = arrivals;
  barrier.init = thread.accessor().epoch;
}

void Block::complete_phase(Mbarrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.completed.join(barrier.arriving);
  barrier.completed_fenced.join(barrier.arriving_fenced);
  for (Thread* waiter : std::exchange(barrier.waiters, {})) Machine::instance().wake(*waiter);
}

void Block::arrive_once(Mbarrier& barrier, uint32_t address) {
  if (barrier.pending == 0)
    fault(fmt::format("an arrival too many on the mbarrier at shared memory {:#x}", address - shared_base));
  --barrier.pending;
  complete_phase(barrier);
}

void Block::arrive(Thread& thread, uint32_t address, uint32_t expected_bytes) {
  Mbarrier& barrier = mbarrier("mbarrier_arrive", address);
  if (!thread.clocks.knows(barrier.init)) fault("mbarrier_arrive: nothing orders the mbarrier's initialization before");
  barrier.bytes += expected_bytes;
  barrier.arriving.join(thread.clocks);
  barrier.arriving_fenced.join(thread.fenced);
  thread.tick();
  arrive_once(barrier, address);
  Machine::instance().pause();
}

Epoch Block::next_copy_epoch(Mbarrier& barrier) {
  return {static_cast<uint16_t>(barrier.copies_agent), ++barrier.arriving[barrier.copies_agent]};
}

void Block::arrive_when_copied(Thread& thread, uint32_t address) {
  (void)mbarrier("cp_async_mbarrier_arrive_noinc", address);
  Copies copies = thread.uncommitted;
  for (const Copies& group : thread.groups) copies.insert(copies.end(), group.begin(), group.end());
  thread.uncommitted.clear();
  thread.groups.clear();
  events_.push_back([this, address, copies = std::move(copies)] {
    Mbarrier& barrier = mbarrier("cp_async_mbarrier_arrive_noinc", address);
    const Epoch writer = next_copy_epoch(barrier);
    for (const std::shared_ptr<Copy>& copy : copies) land(*copy, "cp.async", writer);
    arrive_once(barrier, address);
  });
  Machine::instance().pause();
}

void Block::wait(Thread& thread, uint32_t address, uint32_t parity) {
  Mbarrier& barrier = mbarrier("mbarrier_wait_parity", address);
  if (!thread.clocks.knows(barrier.init)) fault("mbarrier_wait_parity: nothing orders its initialization before");
  while (barrier.phase % 2 == parity) {
    barrier.waiters.push_back(&thread);
    Machine::instance().wait({Wait::Kind::mbarrier, "", address, parity});
  }
  thread.clocks.join(barrier.completed);
  thread.fenced.join(barrier.completed_fenced);
}

void Block::check_copy_barrier(Thread& thread, const char* what, uint32_t address) {
  if (!thread.fenced.knows(mbarrier(what, address).init))
    fault(fmt::format("{}: no fence orders the mbarrier's initialization before the copy engine's use of it", what));
}

bool Block::has_wgmma() const {
  return std::any_of(warps_.begin(), warps_.end(), [](const auto& warp) { return !warp->wgmma.empty(); });
}

void Block::bulk_copy(Thread& thread, uint32_t to, const void* from, uint32_t bytes, uint32_t address) {
  constexpr const char* what = "cp_async_bulk_shared_global";
  check_copy_barrier(thread, what, address);
  if (bytes == 0 || bytes % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0)
    fault(fmt::format("{}: {} bytes, or their global address, are not a multiple of 16", what, bytes));
  memory_.check_place(what, to, bytes, 16);
  memory_.begin_copy(what, to, bytes, thread.accessor(), true);
  const auto copy = std::make_shared<Copy>(Copy{to, static_cast<const uint8_t*>(from), bytes, bytes});
  events_.push_back([this, address, copy] {
    Mbarrier& landing = mbarrier(what, address);
    land(*copy, what, next_copy_epoch(landing));
    landing.bytes -= copy->bytes;
    complete_phase(landing);
  });
  Machine::instance().pause();
}

void Block::tensor_copy(Thread& thread, uint32_t to, const void* map, int32_t x, int32_t y, uint32_t address) {
  constexpr const char* what = "cp_async_bulk_tensor_2d_shared_global";
  TensorMap2d tensor;
  std::memcpy(&tensor, map, sizeof tensor);
  if (const char* reason = illegal_tensor_map(tensor)) fault(fmt::format("{}: {}", what, reason));
  const bool is_swizzled = tensor.swizzle != TensorSwizzle::none;
  const uint32_t line_bytes = tensor.box_columns * tensor.element_bytes, bytes = box_bytes(tensor);
  if (is_swizzled && line_bytes != swizzle_row_bytes)
    fault(fmt::format("{}: the emulator knows swizzled boxes of {} bytes a row only", what, swizzle_row_bytes));
  if (x * static_cast<int64_t>(tensor.element_bytes) % 16 != 0)
    fault(fmt::format("{}: column {} does not begin a piece of 16 bytes", what, x));
  check_copy_barrier(thread, what, address);
  memory_.check_place(what, to, bytes, is_swizzled ? 8 * swizzle_row_bytes : 128);
  memory_.begin_copy(what, to, bytes, thread.accessor(), true);
  events_.push_back([this, address, to, tensor, x, y, line_bytes, bytes] {
    std::vector<uint8_t> box(bytes, 0);
    for (uint32_t byte = 0; byte < bytes; byte += tensor.element_bytes) {
      const int64_t column = int64_t{x} + byte % line_bytes / tensor.element_bytes;
      const int64_t row = int64_t{y} + byte / line_bytes;
      if (column < 0 || row < 0 || uint64_t(column) >= tensor.columns || uint64_t(row) >= tensor.rows) continue;
      const auto* from = static_cast<const uint8_t*>(tensor.base) + uint64_t(row) * tensor.row_bytes +
                         uint64_t(column) * tensor.element_bytes;
      Machine::instance().memory.read(what, from, &box[swizzled(tensor.swizzle, byte)], tensor.element_bytes);
    }
    Mbarrier& landing = mbarrier(what, address);
    memory_.land_copy(to, box.data(), bytes, next_copy_epoch(landing));
    landing.bytes -= bytes;
    complete_phase(landing);
  });
  Machine::instance().pause();
}

}  // namespace fulcrum::emulator
