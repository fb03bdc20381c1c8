// From a warp's accumulators to rows of the output. Order, all in f32: acc * global * row scale, + bias, activation,
// * routing weight; then rounded once to 16 bits, finite values staying finite.
#pragma once
#include <fulcrum/core/nvfp4.h>
#include <fulcrum/ptx/cvt.cuh>
#include <fulcrum/tile/tokens.cuh>

FULCRUM_NAMESPACE_BEGIN

// silu(x) = x / (1 + e^-x); error below 4 ulp of f32 from ex2.approx and rcp.approx (PTX ISA).
FULCRUM_DEVICE float silu(float x) {
  constexpr float log2_e = 1.4426950408889634f;
  return x * ptx::rcp_approx(1.0f + ptx::ex2_approx(-log2_e * x));
}

// Writes the warp's 16-row units of one tile. A lane holds packed rows r and r + 8 of a unit for tokens 2c and 2c + 1
// of each block of 8 (r = lane / 4, c = lane % 4); after a transposition it stores two adjacent outputs of token r.
template <class V>
class Epilogue {
 public:
  static constexpr bool gate_up = V::kind.gate_up;

  FULCRUM_DEVICE Epilogue(const Params& params, const WorkItem& item) : params_(params), item_(item) {
    const GlobalAddress<const float> scales =
        global_address(params.global_scales) + int64_t(item.expert) * (gate_up ? 2 : 1);
    const float upper = ptx::ld_global_nc_f32(scales) * dequant_fold_factor;
    scale_[0] = upper;
    scale_[1] = gate_up ? ptx::ld_global_nc_f32(scales + 1) * dequant_fold_factor : upper;
  }

  // `unit` counts units of 16 packed rows in the whole weight, `block` groups of 8 tokens in the tile.
  FULCRUM_DEVICE void store(const float (&acc)[4], uint32_t unit, uint32_t block) const {
    if (unit * unit_n >= params_.n || block * 8 >= uint32_t(item_.num_rows)) return;
    float v[4] = {acc[0] * scale_[0], acc[1] * scale_[0], acc[2] * scale_[1], acc[3] * scale_[1]};
    if (params_.row_scales != nullptr) scale_rows(block, v);
    if (params_.bias != nullptr) add_bias(unit, v);
    if constexpr (gate_up) {
#pragma unroll
      for (int i = 0; i < 2; ++i) v[i] = activate(v[i], v[i + 2]);
    }
    if (params_.pair_weights != nullptr) weigh_pairs(block, v);
    write(unit, block, v);
  }

 private:
  FULCRUM_DEVICE static float activate(float gate, float up) {
    return V::kind.activation == Activation::silu ? silu(gate) * up : gate * up;
  }

  // Tokens 2c and 2c + 1 of a block; those past the tile's last row have no factor and are never stored.
  FULCRUM_DEVICE bool token_position(uint32_t block, uint32_t i, uint32_t& position) const {
    const uint32_t row = block * 8 + ptx::lane_index() % 4 * 2 + i;
    position = uint32_t(item_.row_begin) + row;
    return row < uint32_t(item_.num_rows);
  }

  FULCRUM_DEVICE void scale_rows(uint32_t block, float (&v)[4]) const {
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      uint32_t position;
      if (!token_position(block, i, position)) continue;
      const float factor = ptx::ld_global_nc_f32(global_address(params_.row_scales) +
                                                 int64_t(row_index(params_, params_.input_rows, position)));
      v[i] *= factor;
      v[i + 2] *= factor;
    }
  }

  FULCRUM_DEVICE void weigh_pairs(uint32_t block, float (&v)[4]) const {
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      uint32_t position;
      if (!token_position(block, i, position)) continue;
      const float weight = ptx::ld_global_nc_f32(global_address(params_.pair_weights) +
                                                 int64_t(row_index(params_, RowOrder::pair, position)));
      v[i] *= weight;
      v[i + 2] *= weight;
    }
  }

  FULCRUM_DEVICE void add_bias(uint32_t unit, float (&v)[4]) const {
    const uint32_t r = ptx::lane_index() / 4;
    const GlobalAddress<const float> expert = global_address(params_.bias) + int64_t(item_.expert) * params_.n;
    const uint32_t first = gate_up ? unit * 8 + r : unit * unit_n + r;
    const float bias[2] = {ptx::ld_global_nc_f32(expert + first),
                           ptx::ld_global_nc_f32(expert + first + (gate_up ? params_.n / 2 : 8))};
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] += bias[i / 2];
  }

  FULCRUM_DEVICE void write(uint32_t unit, uint32_t block, const float (&v)[4]) const {
    const uint32_t lane = ptx::lane_index(), row = block * 8 + lane / 4;
    const uint32_t upper = ptx::movmatrix_trans(ptx::cvt_satfinite_x2<V::kind.dtype>(v[0], v[1]));
    uint32_t lower = 0;
    if constexpr (!gate_up) lower = ptx::movmatrix_trans(ptx::cvt_satfinite_x2<V::kind.dtype>(v[2], v[3]));
    if (row >= uint32_t(item_.num_rows)) return;
    const uint32_t index = row_index(params_, params_.output_rows, uint32_t(item_.row_begin) + row);
    const uint32_t column = unit * (gate_up ? 8 : unit_n) + lane % 4 * 2;
    const GlobalAddress<uint32_t> to{
        reinterpret_cast<uint32_t*>(params_.out + index * params_.out_stride_bytes + column * 2)};
    ptx::st_global_u32(to, upper);
    if constexpr (!gate_up) ptx::st_global_u32(to + 4, lower);  // outputs 8 further, two a word
  }

  const Params& params_;
  WorkItem item_;
  float scale_[2];  // global * 2^dequant_fold of packed rows 0-7 and 8-15 of a unit
};

FULCRUM_NAMESPACE_END
