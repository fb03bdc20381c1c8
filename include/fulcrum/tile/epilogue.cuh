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

  // `warp` counts the block's consumers.
  FULCRUM_DEVICE Epilogue(const Params& params, const WorkItem& item, uint32_t warp) : params_(params), item_(item) {
    if constexpr (staged) staging_ = ptx::dynamic_shared() + memory.output_offset + warp * 8 * memory.output_row_bytes;
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

  // Unit `u` of the warp's units from first_unit on.
  FULCRUM_DEVICE void store(const float (&acc)[4], uint32_t first_unit, int u, const Bias& bias,
                            const Rows& rows) const {
    if ((first_unit + uint32_t(u)) * unit_n >= params_.n) return;
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = acc[i] * scale_[i / 2] * rows.row_scale[i % 2] + bias.value[i / 2];
    if constexpr (gate_up) {
#pragma unroll
      for (int i = 0; i < 2; ++i) v[i] = activate(v[i], v[i + 2]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] *= rows.pair_weight[i % 2];
    write(first_unit, u, v, rows.out);
  }

  // After a block's units: with output_staging=shared, the rows go from there to their places, 16 bytes a lane.
  FULCRUM_DEVICE void finish(uint32_t first_unit, const Rows& rows) const {
    if constexpr (staged) {
      const uint32_t lane = ptx::lane_index();
      const uint64_t row_address = reinterpret_cast<uint64_t>(rows.out);
      if (lane % 4 == 0)
        ptx::st_shared_v2(staged_row(lane / 4) + staged_bytes, {uint32_t(row_address), uint32_t(row_address >> 32)});
      ptx::bar_warp_sync();  // orders outputs and addresses before the lanes that move them
#pragma unroll
      for (uint32_t first = 0; first < 8 * row_chunks; first += 32) {
        const uint32_t chunk = first + lane, row = chunk / row_chunks, byte = chunk % row_chunks * 16;
        if (chunk < 8 * row_chunks) move_chunk(staged_row(row), byte, first_unit * unit_out_bytes + byte);
      }
      ptx::bar_warp_sync();  // orders these loads before the next block's outputs
    }
  }

 private:
  static constexpr SharedMemory memory = shared_memory(V::config);
  static constexpr bool staged = V::config.output_staging == OutputStaging::shared;
  static constexpr uint32_t unit_out_bytes = (gate_up ? 8 : unit_n) * 2;
  static constexpr uint32_t staged_bytes = uint32_t(V::config.tile_n / V::config.warps_n) * 2;  // then the address
  static constexpr uint32_t row_chunks = uint32_t(V::config.tile_n / V::config.warps_n) / unit_n * unit_out_bytes / 16;

  FULCRUM_DEVICE SharedAddress staged_row(uint32_t row) const { return staging_ + row * memory.output_row_bytes; }

  // 16 bytes of a staged row to byte `column` of its output row, if there is one.
  FULCRUM_DEVICE void move_chunk(SharedAddress staged_row, uint32_t byte, uint32_t column) const {
    const Vec2 address = ptx::ld_shared_v2(staged_row + staged_bytes);
    uint8_t* out = reinterpret_cast<uint8_t*>(uint64_t(address.y) << 32 | address.x);
    if (out == nullptr || column >= params_.n / unit_n * unit_out_bytes) return;
    const Vec4 v = ptx::ld_shared_v4(staged_row + byte);
    if (params_.out_stride_bytes % 16 == 0) {
      ptx::st_global_v4(GlobalAddress<Vec4>{reinterpret_cast<Vec4*>(out + column)}, v);
    } else {  // rows begin at multiples of 4 bytes
      const GlobalAddress<uint32_t> to{reinterpret_cast<uint32_t*>(out + column)};
      ptx::st_global_u32(to, v.x);
      ptx::st_global_u32(to + 1, v.y);
      ptx::st_global_u32(to + 2, v.z);
      ptx::st_global_u32(to + 3, v.w);
    }
  }

  FULCRUM_DEVICE static float activate(float gate, float up) {
    return V::kind.activation == Activation::silu ? silu(gate) * up : gate * up;
  }

  FULCRUM_DEVICE void write(uint32_t first_unit, int u, const float (&v)[4], uint8_t* out) const {
    const uint32_t upper = ptx::movmatrix_trans(ptx::cvt_satfinite_x2<V::kind.dtype>(v[0], v[1]));
    uint32_t lower = 0;
    if constexpr (!gate_up) lower = ptx::movmatrix_trans(ptx::cvt_satfinite_x2<V::kind.dtype>(v[2], v[3]));
    const uint32_t lane = ptx::lane_index();
    if constexpr (staged) {
      const SharedAddress to = staged_row(lane / 4) + uint32_t(u) * unit_out_bytes + lane % 4 * 4;
      ptx::st_shared_u32(to, upper);
      if constexpr (!gate_up) ptx::st_shared_u32(to + 16, lower);
      return;
    }
    if (out == nullptr) return;
    const uint32_t column = (first_unit + uint32_t(u)) * unit_out_bytes + lane % 4 * 4;
    const GlobalAddress<uint32_t> to{reinterpret_cast<uint32_t*>(out + column)};
    ptx::st_global_u32(to, upper);
    if constexpr (!gate_up) ptx::st_global_u32(to + 4, lower);  // outputs 8 further, two a word
  }

  const Params& params_;
  WorkItem item_;
  SharedAddress staging_{};  // the warp's 8 rows
  float scale_[2];           // global * 2^dequant_fold of packed rows 0-7 and 8-15 of a unit
};

FULCRUM_NAMESPACE_END
