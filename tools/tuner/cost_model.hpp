// An analytic cost model: how long a Config should take for one Shape on one routing, before anything is compiled.
//
// Called by tune to choose what to compile, and to rank where there is no GPU. A launch passes six stations; each has a
// time of its own, and the prediction is their 4-norm (two equally busy stations delay each other, by a fifth) plus
// the start and the end of a kernel:
//   dram      weights of active experts, tokens and outputs, once, at the read roof
//   l2        what all tiles read, at the rate from L2
//   pipes     instructions, tensor, integer and shared-memory pipes of the busiest SM's schedulers
//   producer  copy=bulk and mixed: the first of a block's producer warps, copy by copy
//   flight    bytes that the rings keep in flight against the latency of memory
// Invariant: constants are counted in machine code, published latencies or roofs; none is fitted to a tuned cell.
#pragma once

#include <fulcrum/core/config.h>
#include <fulcrum/core/rules.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "harness/csr.hpp"
#include "tuner/target.hpp"

namespace fulcrum::tuner {

struct Prediction {
  double us = 0;
  uint32_t blocks_per_sm = 0;  // 0: no block fits, and us is meaningless
  const char* bound = "";      // the busiest station
  double dram_us = 0, l2_us = 0, pipes_us = 0, producer_us = 0, flight_us = 0;
};

// Registers that a thread of this Config needs if nothing is to be spilled.
uint32_t expected_registers(const Config& config);

class CostModel {
 public:
  // `num_tokens` rows are read for gate_up and plain projections, one a pair for down.
  CostModel(const Target& target, const Shape& shape, const harness::Csr& csr, uint64_t num_tokens);

  // `registers` of the compiled kernel, or 0 for the estimate. Not thread-safe: tile lists are kept between calls.
  Prediction predict(const Config& config, uint32_t registers = 0);

  // max(2 * rows * k * n / matrix roof, packed bytes of active experts / read roof)
  double floor_us() const;
  uint64_t rows() const { return rows_; }
  double flops() const { return 2.0 * static_cast<double>(rows_) * shape_.n * shape_.k; }
  uint64_t weight_bytes() const { return weight_bytes_; }

 private:
  // What each SM gets: items (token tile, n tile), and their granules of 8 rows after rounding up.
  struct Load {
    double items = 0, granules = 0;
  };
  struct Spread {
    std::vector<Load> sms;  // the heaviest
    Load total;
  };
  using SpreadKey = std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t, uint32_t>;

  static std::vector<Load> heaviest(std::vector<Load> sms);
  const std::vector<uint32_t>& tile_rows(int32_t tile_m, TileOrder order);
  const Spread& spread(const Config& config, uint32_t blocks_per_sm);
  double pipes_us(const Config& config, uint32_t blocks_per_sm, const Spread& spread) const;
  double producer_us(const Config& config, uint32_t blocks_per_sm, const Spread& spread) const;
  double flight_us(const Config& config, uint32_t blocks_per_sm, const Spread& spread) const;
  double item_bytes(const Config& config) const;
  double granule_bytes(const Config& config) const;

  Target target_;
  Shape shape_;
  harness::Csr csr_;
  uint64_t rows_ = 0;
  uint64_t weight_bytes_ = 0;  // of active experts
  double dram_bytes_ = 0;
  std::map<std::pair<int32_t, int32_t>, std::vector<uint32_t>> tile_rows_;
  std::map<SpreadKey, Spread> spreads_;
};

}  // namespace fulcrum::tuner
