// Emulated wgmma: it reads its operands when its group is waited for, and its accumulators are poison until then.
#pragma once
#include <emulator/device.h>
#include <fulcrum/core/shape.h>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

FULCRUM_DEVICE void wgmma_fence() { emulator::fence_wgmma(); }

FULCRUM_DEVICE void wgmma_commit_group() { emulator::commit_wgmma(); }

template <int pending>
FULCRUM_DEVICE void wgmma_wait_group() {
  emulator::wait_wgmma(pending);
}

template <int blocks>
FULCRUM_DEVICE void wgmma_pin(float (&)[blocks][4]) {}

template <DType dtype, int n>
FULCRUM_DEVICE void wgmma_m64k16(float (&d)[n / 8][4], const uint32_t (&a)[4], uint64_t tokens_descriptor) {
  emulator::issue_wgmma({dtype == DType::f16, n, &d[0][0], a, 0, tokens_descriptor});
}

template <DType dtype, int n>
FULCRUM_DEVICE void wgmma_m64k16_ss(float (&d)[n / 8][4], uint64_t a_descriptor, uint64_t tokens_descriptor) {
  emulator::issue_wgmma({dtype == DType::f16, n, &d[0][0], nullptr, a_descriptor, tokens_descriptor});
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
