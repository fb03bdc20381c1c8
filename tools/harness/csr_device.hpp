// The CSR kernels, and a run of them that brings everything back for comparison with the host.
//
// Called by the device tests, on a GPU and on the emulator.
// Invariant: outputs are filled with a pattern beforehand, so that a word that was not written, or one that should not
// have been, is seen.
#pragma once

#include <fulcrum/host/routing.hpp>

#include <array>
#include <cstdint>
#include <vector>

#include "harness/csr.hpp"
#include "harness/routing.hpp"

namespace fulcrum::harness {

// For make_routing_plan(); compiled once, for the first device. Throws InputError, DeviceError.
const RoutingKernels& routing_kernels();

struct TileCut {
  uint32_t tile_m = 0;  // 0: no list
  TileOrder order = TileOrder::expert;
};

struct DeviceCsrRequest {
  ExpertRange range;
  std::array<TileCut, 2> cuts;
  uint32_t max_tokens = 0;      // what the launch is made for, at least the routing's tokens
  uint32_t ids_row_stride = 0;  // in elements, at least top_k; the gap holds ids that would be wrong to use
  // Ids in 64 bits; impossible ones, and those in the gap, are numbers whose low 32 bits are a local expert's.
  bool wide_ids = false;
};

struct DeviceCsr {
  Csr csr;
  std::array<std::vector<TokenTile>, 2> token_tiles;
  uint32_t first_bad_pair = 0;   // of the validate step, or csr_no_bad_pair
  bool tails_untouched = false;  // nothing was written past what the batch needs
};

// build_routing() for batches of up to max_tokens, with this batch's token count on the device. Throws
// DeviceError.
DeviceCsr build_csr_on_device(const Routing& routing, const DeviceCsrRequest& request);

}  // namespace fulcrum::harness
