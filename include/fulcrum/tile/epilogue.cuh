// From a warp's accumulators to rows of the output. Order, all in f32: acc * global * row scale, + bias, activation,
// * routing weight; then rounded once to 16 bits, finite values staying finite.
//
// Called by the families when a tile's last stage is done.
#pragma once
#include <fulcrum/core/nvfp4.h>
#include <fulcrum/ptx/cvt.cuh>
#include <fulcrum/tile/tokens.cuh>

FULCRUM_NAMESPACE_BEGIN

// silu(x) = x / (1 + e^-x). With s = 1 / (1 + e^x) its relative error is at most (s (|x| + 2) + 2) 2^-23: the exponent
// is rounded before ex2.approx (2^-22) and rcp.approx (2^-23) take it (errors: PTX ISA).
FULCRUM_DEVICE float silu(float x) {
  constexpr float log2_e = 1.4426950408889634f;
  return x * ptx::rcp_approx(1.0f + ptx::ex2_approx(-log2_e * x));
}

// Writes a warp's units of one tile. A lane holds packed rows r and r + 8 of a unit for tokens 2c and 2c + 1 of a block
// of 8 (r = lane / 4, c = lane % 4); after a transposition it stores two adjacent outputs of token r.
// What depends on the token (rows) or on the output (bias) alone is looked up once.
template <class V>
class Epilogue {
 public:
  static constexpr bool gate_up = V::kind.gate_up;

  FULCRUM_DEVICE Epilogue(const Params& params, const WorkItem& item) : params_(params), item_(item) {
    const GlobalAddress<const float> scales =
        global_address(params.global_scales) + int64_t(item.expert) * (gate_up ? 2 : 1);
    scale_[0] = ptx::ld_global_nc_f32(scales) * dequant_fold_factor;
    scale_[1] = gate_up ? ptx::ld_global_nc_f32(scales + 1) * dequant_fold_factor : scale_[0];
  }

  // Of packed rows r and r + 8 of a unit; -0 changes no sum, the sign of zero included.
  struct Bias {
    float value[2] = {-0.0f, -0.0f};
  };

  // `unit` counts units of 16 packed rows in the whole weight.
  FULCRUM_DEVICE Bias bias(uint32_t unit) const {
    Bias bias;
    if (params_.bias == nullptr || unit * unit_n >= params_.n) return bias;
    const uint32_t r = ptx::lane_index() / 4;
    const GlobalAddress<const float> expert = global_address(params_.bias) + int64_t(item_.expert) * params_.n;
    const uint32_t first = gate_up ? unit * 8 + r : unit * unit_n + r;
    bias.value[0] = ptx::ld_global_nc_f32(expert + first);
    bias.value[1] = ptx::ld_global_nc_f32(expert + first + (gate_up ? params_.n / 2 : 8));
    return bias;
  }

  // Factors of tokens 2c and 2c + 1 of a block, and where token r's outputs go (null past the tile's last row).
  struct Rows {
    float row_scale[2] = {1.0f, 1.0f};
    float pair_weight[2] = {1.0f, 1.0f};
    uint8_t* out = nullptr;
  };

  // `block` counts groups of 8 tokens in the tile.
  FULCRUM_DEVICE Rows rows(uint32_t block) const {
    Rows rows;
    const uint32_t lane = ptx::lane_index(), num_rows = uint32_t(item_.num_rows);
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t row = block * 8 + lane % 4 * 2 + i, position = uint32_t(item_.row_begin) + row;
      if (row >= num_rows) continue;
      if (params_.row_scales != nullptr)
        rows.row_scale[i] = ptx::ld_global_nc_f32(global_address(params_.row_scales) +
                                                  int64_t(row_index(params_, params_.input_rows, position)));
      if (params_.pair_weights != nullptr)
        rows.pair_weight[i] = ptx::ld_global_nc_f32(global_address(params_.pair_weights) +
                                                    int64_t(row_index(params_, RowOrder::pair, position)));
    }
    const uint32_t row = block * 8 + lane / 4;
    if (row < num_rows)
      rows.out = params_.out +
                 row_index(params_, params_.output_rows, uint32_t(item_.row_begin) + row) * params_.out_stride_bytes;
    return rows;
  }

  FULCRUM_DEVICE void store(const float (&acc)[4], uint32_t unit, const Bias& bias, const Rows& rows) const {
    if (unit * unit_n >= params_.n) return;
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = acc[i] * scale_[i / 2] * rows.row_scale[i % 2] + bias.value[i / 2];
    if constexpr (gate_up) {
#pragma unroll
      for (int i = 0; i < 2; ++i) v[i] = activate(v[i], v[i + 2]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] *= rows.pair_weight[i % 2];
    write(unit, v, rows.out);
  }

 private:
  FULCRUM_DEVICE static float activate(float gate, float up) {
    return V::kind.activation == Activation::silu ? silu(gate) * up : gate * up;
  }

  FULCRUM_DEVICE static void write(uint32_t unit, const float (&v)[4], uint8_t* out) {
    const uint32_t upper = ptx::movmatrix_trans(ptx::cvt_satfinite_x2<V::kind.dtype>(v[0], v[1]));
    uint32_t lower = 0;
    if constexpr (!gate_up) lower = ptx::movmatrix_trans(ptx::cvt_satfinite_x2<V::kind.dtype>(v[2], v[3]));
    if (out == nullptr) return;
    const uint32_t column = unit * (gate_up ? 8 : unit_n) + ptx::lane_index() % 4 * 2;
    const GlobalAddress<uint32_t> to{reinterpret_cast<uint32_t*>(out + column * 2)};
    ptx::st_global_u32(to, upper);
    if constexpr (!gate_up) ptx::st_global_u32(to + 4, lower);  // outputs 8 further, two a word
  }

  const Params& params_;
  WorkItem item_;
  float scale_[2];  // global * 2^dequant_fold of packed rows 0-7 and 8-15 of a unit
};

FULCRUM_NAMESPACE_END
