// The host reference of the CSR: pairs appended expert by expert, rows cut into tiles, a stable sort by length.
//
// Called by ProblemOnDevice, measure() and the tests. Invariant: see csr.hpp.
#include "harness/csr.hpp"

#include <algorithm>

namespace fulcrum::harness {

Csr build_csr(const Routing& routing, ExpertRange range) {
  std::vector<std::vector<int32_t>> rows(range.count);
  for (size_t pair = 0; pair < routing.ids.size(); ++pair) {
    const int64_t local = int64_t{routing.ids[pair]} - range.first;
    if (routing.ids[pair] < 0 || local < 0 || local >= range.count) continue;
    rows[static_cast<size_t>(local)].push_back(static_cast<int32_t>(pair));
  }
  Csr csr;
  csr.offsets.push_back(0);
  for (const std::vector<int32_t>& pairs : rows) {
    csr.pair_ids.insert(csr.pair_ids.end(), pairs.begin(), pairs.end());
    csr.offsets.push_back(static_cast<int32_t>(csr.pair_ids.size()));
  }
  return csr;
}

std::vector<TokenTile> cut_token_tiles(const Csr& csr, uint32_t tile_m, TileOrder order) {
  std::vector<TokenTile> token_tiles;
  for (size_t e = 0; e + 1 < csr.offsets.size(); ++e) {
    const int32_t first = csr.offsets[e];
    const auto rows = static_cast<uint32_t>(csr.offsets[e + 1] - first);
    const uint32_t tiles = num_expert_tiles(rows, tile_m);
    for (uint32_t index = 0; index < tiles; ++index) {
      const auto begin = static_cast<int32_t>(expert_tile_begin(rows, tiles, index));
      const auto end = static_cast<int32_t>(expert_tile_begin(rows, tiles, index + 1));
      token_tiles.push_back({static_cast<int32_t>(e), first + begin, end - begin, 0});
    }
  }
  if (order == TileOrder::longest) {
    const auto granules = [](const TokenTile& tile) { return (tile.num_rows + 7) / 8; };
    std::stable_sort(token_tiles.begin(), token_tiles.end(),
                     [&](const TokenTile& a, const TokenTile& b) { return granules(a) > granules(b); });
  }
  return token_tiles;
}

int64_t first_bad_pair(const std::vector<int32_t>& ids, uint32_t experts) {
  const auto bad = std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id < -1 || id >= int64_t{experts}; });
  return bad == ids.end() ? -1 : bad - ids.begin();
}

}  // namespace fulcrum::harness
