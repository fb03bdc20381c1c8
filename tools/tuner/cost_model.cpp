// The six stations. Invariant: see cost_model.hpp.
#include "tuner/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

#include "tuner/demand.hpp"

namespace fulcrum::tuner {
namespace {

// From launch to the first copied stage, and from the last one to the end of the grid: a graph's kernel starts in 2 us,
// then four dependent loads (tile count, tile, row, data) and one last epilogue, at 0.5 us each.
constexpr double start_us = 4.0;
// A block that is not persistent drains its ring and fills it again: three dependent loads.
constexpr double refill_us = 1.5;
// Latency of device memory: 480 cycles idle (Luo et al., Hopper), twice that near the roof.
constexpr double memory_latency_cycles = 960;
// The producer warp, counted: 150 instructions a stage, and a loop of 10 for each copy because every lane's operands
// pass through uniform registers; dependent instructions follow each other in 6 cycles.
constexpr double producer_stage_cycles = 150;
constexpr double producer_copy_cycles = 60;
constexpr double producer_piece_cycles = 24;  // copy=mixed: 32 lanes' 16-byte pieces, 4 instructions after each other
constexpr double registers_base = 66;  // counted beside accumulators and token fragments: 78 at 8 + 4, 161 at 64 + 32

double granules_of(uint32_t rows, int32_t granularity) {
  return round_up(rows, static_cast<uint32_t>(granularity)) / 8.0;
}

// Items of a token tile: tiles of outputs, and of each the parts of k.
uint32_t items_of_tile(const Shape& shape, const Config& config) {
  return ceil_div(shape.n, static_cast<uint32_t>(config.tile_n)) * static_cast<uint32_t>(config.split_k);
}

// Of an item.
double num_stages(const Shape& shape, const Config& config) {
  return ceil_div(ceil_div(shape.k, static_cast<uint32_t>(config.split_k)), static_cast<uint32_t>(config.tile_k));
}

}  // namespace

uint32_t expected_registers(const Config& config) {
  const double fragments = config.tile_m / 8.0 / config.warps_m * 4;
  return static_cast<uint32_t>(accumulators(config) + fragments + registers_base);
}

CostModel::CostModel(const Target& target, const Shape& shape, const harness::Csr& csr, uint64_t num_tokens)
    : target_(target), shape_(shape), csr_(csr), rows_(csr.pair_ids.size()) {
  for (size_t e = 0; e + 1 < csr_.offsets.size(); ++e) {
    if (csr_.offsets[e + 1] > csr_.offsets[e]) weight_bytes_ += expert_bytes(shape.n, shape.k);
  }
  const uint64_t read_rows = shape.projection == Projection::down ? rows_ : std::min(rows_, num_tokens);
  dram_bytes_ = static_cast<double>(weight_bytes_) + static_cast<double>(read_rows * shape.k * 2) +
                static_cast<double>(rows_ * out_columns(shape) * 2);
}

double CostModel::floor_us() const {
  const double matrix_us = flops() / target_.matrix_tflops / 1e6;
  return std::max(matrix_us, static_cast<double>(weight_bytes_) / target_.read_gbps / 1e3);
}

const std::vector<uint32_t>& CostModel::tile_rows(int32_t tile_m, TileOrder order) {
  std::vector<uint32_t>& rows = tile_rows_[{tile_m, static_cast<int32_t>(order)}];
  if (!rows.empty()) return rows;
  for (const TokenTile& tile : harness::cut_token_tiles(csr_, static_cast<uint32_t>(tile_m), order)) {
    rows.push_back(static_cast<uint32_t>(tile.num_rows));
  }
  return rows;
}

// Stations take the largest of a sum that grows with items and with granules, so an SM that has no more of either than
// another never decides: what is left is a handful.
std::vector<CostModel::Load> CostModel::heaviest(std::vector<Load> sms) {
  std::sort(sms.begin(), sms.end(), [](const Load& a, const Load& b) {
    return a.items != b.items ? a.items > b.items : a.granules > b.granules;
  });
  std::vector<Load> kept;
  for (const Load& load : sms) {
    if (kept.empty() || load.granules > kept.back().granules) kept.push_back(load);
  }
  return kept;
}

// Deals items to blocks as the queue does: in turn, or each to the block that is free first.
const CostModel::Spread& CostModel::spread(const Config& config, uint32_t blocks_per_sm) {
  const bool in_turn = config.tile_queue == TileQueue::fixed && config.grid_extent == GridExtent::persistent;
  const uint32_t items = items_of_tile(shape_, config);
  const SpreadKey key{
      config.tile_m, static_cast<int32_t>(config.tile_order), config.token_granularity, int32_t(items), in_turn ? 0 : 1,
      blocks_per_sm};
  Spread& spread = spreads_[key];
  if (!spread.sms.empty()) return spread;
  const uint32_t num_sms = target_.device.num_sms;
  const uint32_t num_blocks = blocks_per_sm * num_sms;
  using Free = std::pair<double, uint32_t>;  // when, which block
  std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
  for (uint32_t block = 0; block < num_blocks && !in_turn; ++block) free.push({0, block});
  uint64_t index = 0;
  std::vector<Load> sms(num_sms);
  for (const uint32_t rows : tile_rows(config.tile_m, config.tile_order)) {
    const double granules = granules_of(rows, config.token_granularity);
    for (uint32_t item = 0; item < items; ++item, ++index) {
      uint32_t block = static_cast<uint32_t>(index % num_blocks);
      if (!in_turn) {
        const Free first = free.top();
        free.pop();
        block = first.second;
        free.push({first.first + granules + 4, block});  // dequantizing a tile costs about what 4 granules of mma do
      }
      Load& load = sms[block % num_sms];
      ++load.items;
      load.granules += granules;
      ++spread.total.items;
      spread.total.granules += granules;
    }
  }
  spread.sms = heaviest(sms);
  return spread;
}

double CostModel::item_bytes(const Config& config) const {
  return static_cast<double>(expert_bytes(static_cast<uint32_t>(config.tile_n), shape_.k)) / config.split_k;
}

// Of 8 rows, the columns of an item.
double CostModel::granule_bytes(const Config& config) const { return 16.0 * shape_.k / config.split_k; }

double CostModel::pipes_us(const Config& config, uint32_t blocks_per_sm, const Spread& spread) const {
  const double warps = consumer_warps(config) * blocks_per_sm;
  const double schedulers = std::min(4.0, warps);
  const double stages = num_stages(shape_, config);
  const double mean = spread.total.granules / spread.total.items / config.warps_m;
  // the demand of an item as a line in its granules, through one granule a warp and the mean
  const double low = 1, high = std::max(mean, 2.0);
  const Demand at_low = warp_demand(config, low, target_.mma_cycles);
  const Demand at_high = warp_demand(config, high, target_.mma_cycles);
  const double item_low = stages * at_low.stage_cycles + at_low.item_cycles;
  const double item_high = stages * at_high.stage_cycles + at_high.item_cycles;
  const double slope = (item_high - item_low) / (high - low);
  double worst = 0;
  for (const Load& load : spread.sms) {
    const double cycles = load.items * (item_low - slope * low) + slope * load.granules / config.warps_m;
    worst = std::max(worst, cycles);
  }
  const Demand typical = warp_demand(config, std::max(mean, low), target_.mma_cycles);
  const double utilization = scheduler_utilization(warps / schedulers, typical.stage_cycles, typical.delay_cycles);
  return worst * consumer_warps(config) / schedulers / utilization / target_.clock_ghz / 1e3;
}

double CostModel::producer_us(const Config& config, uint32_t blocks_per_sm, const Spread& spread) const {
  if (!has_producer(config)) return 0;  // its copies are among the consumers' instructions
  const double stages = num_stages(shape_, config);
  // the first producer copies the weights; all of them share the rows
  const double weight_cycles = config.tile_n / 64.0 * producer_copy_cycles;
  const double granule_cycles =
      config.copy == Copy::bulk ? 8 * producer_copy_cycles : 8 * config.tile_k / 8.0 / 32 * producer_piece_cycles;
  double worst = 0;
  for (const Load& load : spread.sms) {
    const double rows = load.granules * granule_cycles / config.producer_warps;
    worst = std::max(worst, stages * (load.items * (producer_stage_cycles + weight_cycles) + rows));
  }
  return worst / blocks_per_sm / target_.clock_ghz / 1e3;
}

double CostModel::flight_us(const Config& config, uint32_t blocks_per_sm, const Spread& spread) const {
  const double token_bytes = granule_bytes(config);
  const double stage_bytes =
      (item_bytes(config) + spread.total.granules / spread.total.items * token_bytes) / num_stages(shape_, config);
  const double in_flight = blocks_per_sm * (config.stages - 1) * stage_bytes;
  double worst = 0;
  for (const Load& load : spread.sms) {
    worst = std::max(worst, load.items * item_bytes(config) + load.granules * token_bytes);
  }
  return worst / in_flight * memory_latency_cycles / target_.clock_ghz / 1e3;
}

Prediction CostModel::predict(const Config& config, uint32_t registers) {
  Prediction out;
  if (registers == 0) {
    registers = std::min(expected_registers(config), static_cast<uint32_t>(register_limit(config)));
  }
  out.blocks_per_sm =
      resident_blocks(target_.device, block_threads(config), registers, shared_memory(config).total_bytes);
  if (config.blocks_per_sm > 0) out.blocks_per_sm = std::min(out.blocks_per_sm, uint32_t(config.blocks_per_sm));
  if (out.blocks_per_sm == 0 || rows_ == 0) return out;
  const Spread& loads = spread(config, out.blocks_per_sm);
  const double cycles_us = target_.clock_ghz * 1e3;
  const double tile_bytes = loads.total.items * item_bytes(config) + loads.total.granules * granule_bytes(config);
  // split_k writes each part's sums and reads them again; they are taken to stay in L2, whose writes pass as reads do
  const double sum_bytes = config.split_k > 1 ? 8.0 * double(rows_) * shape_.n * config.split_k : 0;
  out.dram_us = dram_bytes_ / target_.read_gbps / 1e3;
  out.l2_us = (tile_bytes + sum_bytes) / target_.l2_sm_bytes / target_.device.num_sms / cycles_us;
  out.pipes_us = pipes_us(config, out.blocks_per_sm, loads);
  out.producer_us = producer_us(config, out.blocks_per_sm, loads);
  out.flight_us = flight_us(config, out.blocks_per_sm, loads);
  out.us = start_us + four_norm({out.dram_us, out.l2_us, out.pipes_us, out.producer_us, out.flight_us});
  if (config.grid_extent != GridExtent::persistent) {
    const double resident = double(out.blocks_per_sm) * target_.device.num_sms;
    // refills of one block overlap with the work of the others on its SM
    out.us += std::max(0.0, loads.total.items / resident - 1) * refill_us / out.blocks_per_sm;
  }
  const std::pair<double, const char*> stations[] = {{out.dram_us, "dram"},
                                                     {out.l2_us, "l2"},
                                                     {out.pipes_us, "pipes"},
                                                     {out.producer_us, "producer"},
                                                     {out.flight_us, "flight"}};
  out.bound = std::max_element(std::begin(stations), std::end(stations))->second;
  return out;
}

}  // namespace fulcrum::tuner
