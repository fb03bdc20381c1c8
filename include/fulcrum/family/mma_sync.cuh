// The portable family (sm_80 and later): grouped GEMM on mma.sync m16n8k16, weights as its first operand.
//
// A block takes tiles of tile_n outputs x up to tile_m tokens of one expert. Stages of tile_k columns (packed weights
// and token rows) stream through a shared-memory ring that never drains between tiles; each warp turns its units of
// weights into 16-bit fragments in registers and multiplies them with its blocks of 8 tokens. How many blocks
// is compiled in: one body for each token count that token_granularity leaves, picked per stage. A tile ends in the
// epilogue; with split_k it is a part of k, and the part that is done last ends there for all.
#pragma once
#include <fulcrum/core/rules.h>
#include <fulcrum/ptx/mma_sync.cuh>
#include <fulcrum/tile/epilogue.cuh>
#include <fulcrum/tile/ring_bulk.cuh>
#include <fulcrum/tile/ring_cp_async.cuh>
#include <fulcrum/tile/split_sums.cuh>
#include <fulcrum/tile/weights.cuh>

FULCRUM_NAMESPACE_BEGIN

template <class V>
class MmaSync {
 public:
  FULCRUM_DEVICE static void run(const Params& params) {
    const SharedAddress shared = ptx::dynamic_shared();
    const uint32_t warp = ptx::warp_index();
    if constexpr (has_producer(V::config)) {
      BulkRing<V> ring(params, shared);
      if (warp >= consumer_warps(V::config))
        ring.produce(warp - consumer_warps(V::config));
      else
        MmaSync(params, warp).consume(ring);
    } else {
      CpAsyncRing<V> ring(params, shared);
      MmaSync(params, warp).consume(ring);
    }
  }

 private:
  static constexpr int units = WeightReader<V>::warp_units;                // of 16 outputs, owned by a warp
  static constexpr int blocks = V::config.tile_m / 8 / V::config.warps_m;  // of 8 tokens, at most, for a warp
  static constexpr int step_units = WeightReader<V>::step_units;           // of 64 columns, in a stage
  static constexpr uint32_t token_bytes = shared_memory(V::config).token_bytes;

  using Accumulators = float[units][blocks][4];

  FULCRUM_DEVICE MmaSync(const Params& params, uint32_t warp)
      : params_(params),
        warp_(warp),
        first_unit_(warp % uint32_t(V::config.warps_n) * uint32_t(units)),
        first_block_(warp / uint32_t(V::config.warps_n)) {}

  template <class Ring>
  FULCRUM_DEVICE void consume(Ring& ring) const {
    Accumulators acc;
    WorkItem item{};
    KRange left{0, 0};  // of the tile
    for (;;) {          // one pass a stage, on across tiles
      const SharedAddress stage = ring.wait();
      if (left.begin >= left.end) {
        item = ring.item();
        if (item.num_rows == 0) return;
        left = k_range<V>(item, params_.k);
        clear(acc);
      }
      multiply_rows(stage, item.num_rows, left.end - left.begin, acc);
      ring.release();
      left.begin += step_units;
      if (left.begin >= left.end) store(item, acc);
    }
  }

  FULCRUM_DEVICE static void clear(Accumulators& acc) {
#pragma unroll
    for (int u = 0; u < units; ++u)
#pragma unroll
      for (int j = 0; j < blocks; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[u][j][i] = 0.0f;
  }

  // Multiplies the stage for the smallest compiled token count that covers the tile: `count`, or a granule more.
  template <int count = V::config.token_granularity>
  FULCRUM_DEVICE void multiply_rows(SharedAddress stage, int32_t num_rows, uint32_t k_units, Accumulators& acc) const {
    if constexpr (count < V::config.tile_m) {
      if (num_rows > count) return multiply_rows<count + V::config.token_granularity>(stage, num_rows, k_units, acc);
    }
    if constexpr (V::config.fragment_buffers == 1)
      multiply<count / 8 / V::config.warps_m>(stage, k_units, acc);
    else
      multiply_ahead<count / 8 / V::config.warps_m>(stage, k_units, acc);
  }

  // acc[unit][block of 8 tokens] += the stage's weights x its tokens, for the warp's first `active` blocks; `k_units`
  // of 64 columns are left in the tile.
  template <int active>
  FULCRUM_DEVICE void multiply(SharedAddress stage, uint32_t k_units, Accumulators& acc) const {
    // Few blocks need the loads of several units in flight; many hide them, and the bodies of all token counts together
    // may outgrow the instruction cache.
    constexpr int unrolled_units = active * 8 <= V::config.unroll_tokens ? step_units : 1;
#pragma unroll unrolled_units
    for (int kk = 0; kk < step_units; ++kk) {
      if (kk > 0 && uint32_t(kk) >= k_units) break;  // the last stage may hold fewer units
      UnitWords words[units];
      load_words(stage, kk, words);
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // k32 blocks of the unit
        uint32_t b[active][2][2];
        load_tokens<active>(stage, 2 * kk + half, b);
        multiply_k32<active>(words, half, b, acc);
      }
    }
  }

  // The same with the operands of the next k32 block on their way while one is multiplied.
  template <int active>
  FULCRUM_DEVICE void multiply_ahead(SharedAddress stage, uint32_t k_units, Accumulators& acc) const {
    UnitWords words[2][units];    // [unit of k, modulo 2]
    uint32_t b[2][active][2][2];  // [k32 block, modulo 2]
    load_words(stage, 0, words[0]);
    load_tokens<active>(stage, 0, b[0]);
#pragma unroll
    for (int block = 0; block < 2 * step_units; ++block) {
      const int next = block + 1;
      if (block % 2 == 0 && block > 0 && uint32_t(block / 2) >= k_units) break;
      if (next < 2 * step_units && (next % 2 == 1 || uint32_t(next / 2) < k_units)) {
        if (next % 2 == 0) load_words(stage, next / 2, words[next / 2 % 2]);
        load_tokens<active>(stage, next, b[next % 2]);
      }
      multiply_k32<active>(words[block / 2 % 2], block % 2, b[block % 2], acc);
    }
  }

  FULCRUM_DEVICE void load_words(SharedAddress stage, int kk, UnitWords (&words)[units]) const {
#pragma unroll
    for (int u = 0; u < units; ++u)
      words[u] = weights_.load(stage + token_bytes + weights_.unit_offset(first_unit_, u, kk));
  }

  template <int active>
  FULCRUM_DEVICE void load_tokens(SharedAddress stage, int block, uint32_t (&b)[active][2][2]) const {
#pragma unroll
    for (int j = 0; j < active; ++j) tokens_.fragments(stage, token_block(j), uint32_t(block) * 32, b[j]);
  }

  // The two mma steps of k32 block `half` of the warp's units.
  template <int active>
  FULCRUM_DEVICE void multiply_k32(const UnitWords (&words)[units], int half, const uint32_t (&b)[active][2][2],
                                   Accumulators& acc) const {
#pragma unroll
    for (int u = 0; u < units; ++u) {
      uint32_t a[2][4];
      weights_.fragments(words[u], half, a);
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < active; ++j) ptx::mma_m16n8k16<V::kind.dtype>(acc[u][j], a[i], b[j][i][0], b[j][i][1]);
    }
  }

  FULCRUM_DEVICE void store(const WorkItem& item, Accumulators& acc) const {
    const uint32_t tile_unit = uint32_t(item.n_tile) * uint32_t(V::config.tile_n / int(unit_n)) + first_unit_;
    if constexpr (V::config.split_k > 1) {
      if (!SplitSums<V, units, blocks>(params_, item, warp_, tile_unit, first_block_).reduce(acc)) return;
    }
    const Epilogue<V> epilogue(params_, item, warp_);
    typename Epilogue<V>::Bias bias[units];
#pragma unroll
    for (int u = 0; u < units; ++u) bias[u] = epilogue.bias(tile_unit + uint32_t(u));
    // Unrolled, every block is code of its own; in a loop, the block at hand is always the first.
    constexpr bool unrolled = blocks * 8 <= V::config.unroll_tokens;
    constexpr int unrolled_blocks = unrolled ? blocks : 1;
#pragma unroll unrolled_blocks
    for (int j = 0; j < blocks; ++j) {
      if (token_block(j) * 8 >= uint32_t(item.num_rows)) break;
      const typename Epilogue<V>::Rows rows = epilogue.rows(token_block(j));
#pragma unroll
      for (int u = 0; u < units; ++u) epilogue.store(acc[u][unrolled ? j : 0], tile_unit, u, bias[u], rows);
      epilogue.finish(tile_unit, rows);
      if constexpr (!unrolled) next_block(acc);
    }
  }

  // Moves every block but the first to the place before it.
  FULCRUM_DEVICE static void next_block(Accumulators& acc) {
#pragma unroll
    for (int u = 0; u < units; ++u)
#pragma unroll
      for (int j = 1; j < blocks; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[u][j - 1][i] = acc[u][j][i];
  }

  // Warps along m take turns at the tile's blocks of 8 tokens, so that a short tile loads them evenly.
  FULCRUM_DEVICE uint32_t token_block(int j) const { return uint32_t(j * V::config.warps_m) + first_block_; }

  const Params& params_;
  WeightReader<V> weights_;
  TokenReader<V> tokens_;
  uint32_t warp_;         // of the consumers
  uint32_t first_unit_;   // of the warp in the tile, units of 16 outputs
  uint32_t first_block_;  // of the warp in the tile, blocks of 8 tokens
};

FULCRUM_NAMESPACE_END
