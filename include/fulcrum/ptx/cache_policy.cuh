// Cache policies (sm_80): what the L2 cache is to do with the lines that a copy brings.
//
// Called by tile/copies.cuh. Invariant: a policy changes when a line leaves the cache, never what is read.
#pragma once
#include <fulcrum/core/types.h>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

struct CachePolicy {
  uint64_t word;
};

FULCRUM_DEVICE CachePolicy createpolicy_l2_evict_first() {
  CachePolicy policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy.word));
  return policy;
}

FULCRUM_DEVICE CachePolicy createpolicy_l2_evict_last() {
  CachePolicy policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy.word));
  return policy;
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
