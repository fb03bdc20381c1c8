// Small problems with everything that is awkward about shapes and routings; every variant is run on all of them.
//
// Called by check_variant(), and by `verify` for each Config.
// Invariant: together they hold tails of n (10 units, 33 units) and of k (a quarter and half a unit), experts with 0,
// 1, tile_m and tile_m + 1 rows and one of several tiles, an expert twice in one token, -1 and remote ids, each row
// order of input and output, each epilogue factor alone and all together, both formats, a bank and a pointer table.
#pragma once

#include <vector>

#include "harness/problem.hpp"

namespace fulcrum::harness {

// A routing in which local expert e (of `local`, global ids from local.first on) has rows[e] rows, with a few remote
// and -1 ids between them, in an order drawn from `seed`.
Routing routing_with_rows(const std::vector<uint32_t>& rows, ExpertRange local, uint32_t experts, uint32_t top_k,
                          uint64_t seed);

// small for a GPU; tiny for the emulator, with about a quarter of the columns and half of the rows.
enum class CaseSize { small, tiny };

// For kernels of this kind whose tiles have at most tile_m rows.
std::vector<Problem> small_problems(const KernelKind& kind, uint32_t tile_m, CaseSize size = CaseSize::small);

}  // namespace fulcrum::harness
