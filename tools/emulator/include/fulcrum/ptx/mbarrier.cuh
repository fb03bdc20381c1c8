// Emulated mbarriers.
#pragma once
#include <fulcrum/ptx/ldst.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

FULCRUM_DEVICE void mbarrier_init(SharedAddress barrier, uint32_t arrivals) {
  emulator::init_mbarrier(barrier.value, arrivals);
}

FULCRUM_DEVICE void fence_mbarrier_init() { emulator::fence_async_proxy(); }

FULCRUM_DEVICE void mbarrier_arrive_expect_tx(SharedAddress barrier, uint32_t bytes) {
  emulator::arrive_mbarrier(barrier.value, bytes);
}

FULCRUM_DEVICE void mbarrier_arrive(SharedAddress barrier) { emulator::arrive_mbarrier(barrier.value, 0); }

FULCRUM_DEVICE void cp_async_mbarrier_arrive_noinc(SharedAddress barrier) {
  emulator::arrive_mbarrier_when_copied(barrier.value);
}

FULCRUM_DEVICE void mbarrier_wait_parity(SharedAddress barrier, uint32_t parity) {
  emulator::wait_mbarrier(barrier.value, parity);
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
