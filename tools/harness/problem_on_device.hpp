// A problem with memory: weights in every layout asked for, tokens, routing, outputs between guards.
//
// Called by check(), the timer, the tuner and bench; one at a time on a device, used from one thread.
// Invariant: everything is made where it lies, by kernels, so gigabytes cost milliseconds; memory is counted before it
// is taken, and what would pass the cap is refused with both numbers. Timing uses `random` data; its banks rotate and
// together hold at least three times the L2 in active experts' bytes, so that no launch finds its weights in the cache.
#pragma once

#include <fulcrum/host/launch.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "harness/csr.hpp"
#include "harness/device_memory.hpp"
#include "harness/oracle.hpp"
#include "harness/problem.hpp"

namespace fulcrum::harness {

class ProblemOnDevice {
 public:
  // memory_cap_bytes 0: nine tenths of the memory that is free now. Throws InputError above the cap or for a routing
  // that does not fit the shape, DeviceError without a GPU.
  explicit ProblemOnDevice(const Problem& problem, uint64_t memory_cap_bytes = 0);
  ~ProblemOnDevice();
  ProblemOnDevice(const ProblemOnDevice&) = delete;
  ProblemOnDevice& operator=(const ProblemOnDevice&) = delete;

  // Bytes that a problem takes, checks included, with its banks in `num_layouts` layouts, on a device with this much
  // L2.
  static uint64_t bytes_needed(const Problem& problem, uint32_t num_layouts, uint64_t l2_bytes);

  const Problem& problem() const { return problem_; }
  const ProblemSize& size() const { return size_; }
  const Device& device() const { return device_; }
  const Csr& csr() const { return csr_; }
  cuda_api::Stream stream() const { return stream_; }
  uint32_t num_banks() const { return num_banks_; }

  // make_plan() for this problem's shape, layout and token count. Throws DeviceError with the reason.
  Plan plan(const Kernel& kernel) const;

  // What launch() takes; made on first use and kept. `bank` is taken modulo num_banks(); exact data has one bank.
  Weights weights(Data data, Layout layout, uint32_t bank = 0);
  Buffers buffers(Data data, const Plan& plan);
  void launch_once(const Plan& plan, Data data, uint32_t bank = 0);

  // Makes everything that launches on all banks of random data will use, and waits: nothing is allocated afterwards.
  void prepare_timing(const Plan& plan);

  // Fills out, its gaps and its guards with NaN.
  void clear_out();
  OutView out_view() const;

  // Expected results of sampled rows, made on first use: all rows of a small problem.
  const Expected& expected(Data data);

 private:
  // Tokens and factors of one kind of data.
  struct Inputs {
    DeviceBuffer<uint8_t> tokens;
    DeviceBuffer<float> global_scales, row_scales, bias, pair_weights;
  };
  // Packed weights; or, of weights read in place, the checkpoint's codes of each part.
  struct Bank {
    std::array<DeviceBuffer<uint8_t>, 2> parts;
    std::array<DeviceBuffer<const uint8_t*>, 2> expert_pointers;  // empty unless the problem asks for a table
  };
  struct TileList {
    DeviceBuffer<TokenTile> token_tiles;
    DeviceBuffer<int32_t> num_token_tiles;
    uint64_t count = 0;
  };
  struct BankKey {
    Data data;
    CodeWord code_word;
    KOrder k_order;
    auto operator<=>(const BankKey&) const = default;
  };

  template <class T>
  DeviceBuffer<T> take(uint64_t count, const char* what);
  void make_checkpoint(Data data);
  const Inputs& inputs(Data data);
  Bank make_bank(Data data, Layout layout);
  Bank pack_bank(Data data, Layout layout);
  Bank checkpoint_bank(Data data);
  Bank copy_bank(const Bank& from);
  void make_table(Bank& bank);
  const TileList& tile_list(uint32_t tile_m, TileOrder order);
  // Shared by Plans whose counters lie alike; graphs of earlier ones may still use theirs.
  const DeviceBuffer<uint8_t>& workspace(const Plan& plan);
  OracleInput oracle_input(Data data);

  Problem problem_;
  ProblemSize size_;
  Device device_;
  Csr csr_;
  uint64_t cap_bytes_ = 0;
  uint64_t taken_bytes_ = 0;
  uint32_t num_banks_ = 1;
  cuda_api::Stream stream_ = nullptr;
  std::optional<Data> checkpoint_data_;                  // what codes_ and scales_ hold now
  std::array<DeviceBuffer<uint8_t>, 2> codes_, scales_;  // [part]
  std::array<std::optional<Inputs>, 2> inputs_;          // [Data]
  std::array<std::optional<Expected>, 2> expected_;      // [Data]
  std::map<BankKey, std::vector<Bank>> banks_;
  std::map<std::pair<uint32_t, TileOrder>, TileList> tile_lists_;
  DeviceBuffer<int32_t> pair_ids_;
  DeviceBuffer<uint8_t> written_rows_;  // [rows of out], see OutView
  DeviceBuffer<uint8_t> out_;
  std::map<std::pair<uint64_t, uint64_t>, DeviceBuffer<uint8_t>> workspaces_;  // by bytes of counters, and in all
};

}  // namespace fulcrum::harness
