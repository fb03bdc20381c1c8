// The factors of one 16 x 16 times 16 x 8 multiplication as numbers, gathered from fragments or from shared memory.
//
// Used by mma.sync (arithmetic.cpp) and, block by block of 8 tokens, by wgmma (wgmma.cpp).
// Invariant: see arithmetic.cpp.
#pragma once

#include <fulcrum/core/shape.h>

namespace fulcrum::emulator {

struct MmaTables {
  DType type = DType::f16;
  float weights[16][16] = {};
  float tokens[8][16] = {};  // a row a token
  bool poisoned[8] = {};     // tokens with a value that nobody wrote

  void add_weights(uint32_t lane, const uint32_t* a);              // a lane's fragment
  void add_token(uint32_t token, uint32_t column, uint32_t pair);  // two neighbours
  void accumulate(uint32_t lane, float* d) const;                  // onto a lane's four accumulators
};

}  // namespace fulcrum::emulator
