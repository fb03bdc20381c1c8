// CSR of a routing on the host: the plain reference that the device kernels are compared with, and what the oracle and
// the cost model use.
//
// Invariant: see core/csr.h; written with other means than the kernels (append per expert, stable sort).
#pragma once

#include <fulcrum/core/csr.h>

#include <cstdint>
#include <vector>

#include "harness/routing.hpp"

namespace fulcrum::harness {

struct Csr {
  std::vector<int32_t> offsets;   // [range.count + 1]
  std::vector<int32_t> pair_ids;  // [rows] pair = token * top_k + choice
};

Csr build_csr(const Routing& routing, ExpertRange range);

// The rows of every expert cut into tiles of at most tile_m rows.
std::vector<TokenTile> cut_token_tiles(const Csr& csr, uint32_t tile_m, TileOrder order);

// Index of the first pair whose id is below -1 or not below `experts`; -1 when there is none.
int64_t first_bad_pair(const std::vector<int32_t>& ids, uint32_t experts);

}  // namespace fulcrum::harness
