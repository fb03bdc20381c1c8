// Copies into a stage, with what l2_hint has the L2 cache told of them: weights are read once and may go first, token
// rows are read by every tile of outputs and may stay.
//
// Called by the rings.
#pragma once
#include <fulcrum/core/config.h>
#include <fulcrum/ptx/bulk.cuh>
#include <fulcrum/ptx/cache_policy.cuh>
#include <fulcrum/ptx/cp_async.cuh>

FULCRUM_NAMESPACE_BEGIN

template <class V>
class Copies {
 public:
  FULCRUM_DEVICE Copies() {
    if constexpr (weights_hinted) weights_ = ptx::createpolicy_l2_evict_first();
    if constexpr (tokens_hinted) tokens_ = ptx::createpolicy_l2_evict_last();
  }

  FULCRUM_DEVICE void bulk_weights(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes,
                                   SharedAddress barrier) const {
    bulk<weights_hinted>(to, from, bytes, barrier, weights_);
  }

  FULCRUM_DEVICE void bulk_tokens(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes,
                                  SharedAddress barrier) const {
    bulk<tokens_hinted>(to, from, bytes, barrier, tokens_);
  }

  FULCRUM_DEVICE void async_weights(SharedAddress to, GlobalAddress<const uint8_t> from) const {
    async<weights_hinted>(to, from, 16, weights_);
  }

  // Four bytes of weights.
  FULCRUM_DEVICE static void async_weights_4(SharedAddress to, GlobalAddress<const uint8_t> from) {
    ptx::cp_async_ca_4(to, from, 4);
  }

  // Copies `bytes` (0 to 16) and fills the rest of the 16 with zeros.
  FULCRUM_DEVICE void async_tokens(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes) const {
    async<tokens_hinted>(to, from, bytes, tokens_);
  }

 private:
  static constexpr bool weights_hinted = V::config.l2_hint != L2Hint::none;
  static constexpr bool tokens_hinted = V::config.l2_hint == L2Hint::both;

  template <bool hinted>
  FULCRUM_DEVICE static void bulk(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes,
                                  SharedAddress barrier, ptx::CachePolicy policy) {
    if constexpr (hinted)
      ptx::cp_async_bulk_shared_global_hint(to, from, bytes, barrier, policy);
    else
      ptx::cp_async_bulk_shared_global(to, from, bytes, barrier);
  }

  template <bool hinted>
  FULCRUM_DEVICE static void async(SharedAddress to, GlobalAddress<const uint8_t> from, uint32_t bytes,
                                   ptx::CachePolicy policy) {
    if constexpr (hinted)
      ptx::cp_async_cg_16_hint(to, from, bytes, policy);
    else
      ptx::cp_async_cg_16(to, from, bytes);
  }

  ptx::CachePolicy weights_{}, tokens_{};
};

FULCRUM_NAMESPACE_END
