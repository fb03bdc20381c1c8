// Emulated cache policies: there is no cache, so only that a policy was created is told from one that was not.
#pragma once
#include <emulator/device.h>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

struct CachePolicy {
  uint64_t word;
};

FULCRUM_DEVICE CachePolicy createpolicy_l2_evict_first() { return {emulator::cache_policy}; }
FULCRUM_DEVICE CachePolicy createpolicy_l2_evict_last() { return {emulator::cache_policy + 1}; }

}  // namespace ptx

FULCRUM_NAMESPACE_END
