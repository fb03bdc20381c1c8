// The oracle over rows: on the host for small problems, on a GPU for sampled rows of any problem, and the comparison.
//
// Called by check() through ProblemOnDevice, and by the tests, which hold the two oracles against each other.
// Invariant: expected results depend on the problem and its data alone, so they are made once and serve every kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/checkpoint.hpp"
#include "harness/csr.hpp"
#include "harness/device_memory.hpp"
#include "harness/oracle.h"
#include "harness/problem.hpp"

namespace fulcrum::harness {

// What the weights of a problem are drawn from.
CheckpointRecipe recipe_of(const Problem& problem, Data data);

// Everything but weights and tokens, on the host; empty where the problem has none.
struct Factors {
  std::vector<float> global_scales;  // [expert][part]
  std::vector<float> row_scales;     // [rows of tokens]
  std::vector<float> bias;           // [expert][part][row]
  std::vector<float> pair_weights;   // [pairs]
};
Factors draw_factors(const Problem& problem, Data data);

uint64_t tokens_stride_bytes(const Problem& problem);
uint64_t out_stride_bytes(const Problem& problem);

// The row of a buffer in `order` that belongs to CSR position s.
uint32_t row_of(const Problem& problem, const Csr& csr, RowOrder order, uint32_t position);

// At most `limit` rows, in CSR order: the first and the last row of every expert before any other, so that every
// expert and both ends of its tiles are seen; all rows when they are no more than `limit`.
std::vector<OracleRow> sample_rows(const Problem& problem, const Csr& csr, uint64_t limit);

// A problem's data in host memory; for small ones.
struct HostProblem {
  HostProblem(const Problem& problem, Data data);
  OracleInput input() const;

  Problem problem;
  Data data;
  Checkpoint checkpoint;
  Factors factors;
  std::vector<uint8_t> tokens;  // [rows][stride]
};

// [rows][out columns]
std::vector<OracleValue> oracle_rows(const OracleInput& input, const std::vector<OracleRow>& rows, uint32_t columns);

// Writes the token rows of a problem; gaps between rows get NaN. Asynchronous.
Status fill_tokens(const Problem& problem, Data data, uint8_t* tokens, cuda_api::Stream stream);

struct Expected {
  DType dtype = DType::f16;
  uint32_t columns = 0;
  std::vector<OracleRow> host_rows;
  DeviceBuffer<OracleRow> rows;
  DeviceBuffer<Expectation> bounds;  // [rows][columns]
  DeviceBuffer<float> values;        // [rows][columns] before rounding to 16 bits
};
Expected make_expected(const OracleInput& input, std::vector<OracleRow> rows, uint32_t columns,
                       cuda_api::Stream stream);

// An output buffer with what surrounds it: [guard][rows][stride][guard], all NaN (0xFFFF) before a launch.
struct OutView {
  uint8_t* memory = nullptr;
  uint64_t guard_bytes = 0;  // a multiple of 256
  uint64_t rows = 0;
  uint64_t stride_bytes = 0;
  uint32_t columns = 0;
  const uint8_t* written = nullptr;  // [rows] device: 1 where a launch must write the row, 0 where it must not

  uint8_t* out() const { return memory + guard_bytes; }
  uint64_t bytes() const { return 2 * guard_bytes + rows * stride_bytes; }
};

struct Comparison {
  uint64_t num_wrong = 0;        // sampled values outside of their bounds
  uint64_t first_wrong = 0;      // row * columns + column among the samples
  uint64_t num_misplaced = 0;    // values of the whole buffer that are NaN and should not be, or the other way
  uint64_t first_misplaced = 0;  // 16-bit value counted from the buffer's memory
  double squared_error = 0;      // sums over the samples, of out - oracle and of the oracle
  double squared_value = 0;
};

// Waits for the stream. Throws DeviceError, an error of the kernel under test included.
Comparison compare(const Expected& expected, const OutView& out, cuda_api::Stream stream);

// The first difference in one sentence, empty when there is none.
std::string describe(const Comparison& comparison, const Expected& expected, const OutView& out,
                     cuda_api::Stream stream);

}  // namespace fulcrum::harness
