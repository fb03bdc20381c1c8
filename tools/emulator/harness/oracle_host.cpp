// Token rows, expected results and the comparison of an output for the emulated device, whose memory the host can
// reach.
//
// Takes the place of oracle_device.cu. Invariant: every value comes from the function that the GPU's kernels use.
#include <algorithm>

#include "harness/oracle.hpp"

namespace fulcrum::harness {
namespace {

void note(uint64_t& count, uint64_t& first, uint64_t index) {
  ++count;
  first = std::min(first, index);
}

uint16_t bits_at(const uint8_t* memory) { return static_cast<uint16_t>(memory[0] | memory[1] << 8); }

}  // namespace

Status fill_tokens(const Problem& problem, Data data, uint8_t* tokens, cuda_api::Stream stream) {
  const uint64_t columns = tokens_stride_bytes(problem) / 2;
  std::vector<uint16_t> values(num_rows(problem, problem.input_rows) * columns);
  for (uint64_t i = 0; i < values.size(); ++i) {
    const auto column = static_cast<uint32_t>(i % columns);
    values[i] = column < problem.shape.k
                    ? draw_token(data, problem.shape.dtype, problem.seed, problem.shape.k, i / columns, column)
                    : uint16_t{0xFFFF};
  }
  return cuda_api::copy_async(tokens, values.data(), values.size() * 2, stream);
}

Expected make_expected(const OracleInput& input, std::vector<OracleRow> rows, uint32_t columns,
                       cuda_api::Stream stream) {
  std::vector<Expectation> bounds;
  std::vector<float> values;
  for (const OracleValue& value : oracle_rows(input, rows, columns)) {
    bounds.push_back(expectation(input.dtype, value));
    values.push_back(static_cast<float>(value.value));
  }
  Expected expected;
  expected.dtype = input.dtype;
  expected.columns = columns;
  expected.host_rows = std::move(rows);
  expected.rows = DeviceBuffer<OracleRow>(expected.host_rows, stream);
  expected.bounds = DeviceBuffer<Expectation>(bounds, stream);
  expected.values = DeviceBuffer<float>(values, stream);
  return expected;
}

Comparison compare(const Expected& expected, const OutView& out, cuda_api::Stream stream) {
  require(cuda_api::synchronize(stream));
  Comparison comparison;
  comparison.first_wrong = comparison.first_misplaced = ~uint64_t{0};
  for (uint64_t i = 0; i < expected.bounds.size(); ++i) {
    const uint64_t row = expected.host_rows[i / expected.columns].output_row;
    const uint16_t bits = bits_at(out.out() + row * out.stride_bytes + i % expected.columns * 2);
    if (!accepts(expected.dtype, expected.bounds.data()[i], bits))
      note(comparison.num_wrong, comparison.first_wrong, i);
    const double value = expected.values.data()[i], difference = value_of(expected.dtype, bits) - value;
    comparison.squared_error += difference * difference;
    comparison.squared_value += value * value;
  }
  for (uint64_t i = 0; i < out.bytes() / 2; ++i) {
    const uint64_t inner = 2 * i - out.guard_bytes;  // wraps for the first guard, and is then past every row
    const bool in_rows = 2 * i >= out.guard_bytes && inner < out.rows * out.stride_bytes;
    const bool must_hold_value =
        in_rows && inner % out.stride_bytes < uint64_t{out.columns} * 2 && out.written[inner / out.stride_bytes] != 0;
    if ((bits_at(out.memory + 2 * i) != 0xFFFF) != must_hold_value)
      note(comparison.num_misplaced, comparison.first_misplaced, i);
  }
  return comparison;
}

}  // namespace fulcrum::harness
