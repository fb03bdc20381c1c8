// Device side of harness/oracle.hpp: token rows, expected results of sampled rows, and the comparison of an output.
//
// Invariant: one thread computes one value with the function that the host uses; only the sums of squared errors depend
// on the order of threads.
#include "harness/oracle.hpp"

namespace fulcrum::harness {
namespace {

constexpr uint32_t threads = 256;
constexpr uint32_t most_blocks = 2048;  // the threads loop, so the grid needs only to fill a GPU

uint32_t blocks_for(uint64_t items) {
  return static_cast<uint32_t>(min_of<uint64_t>(ceil_div<uint64_t>(max_of<uint64_t>(items, 1), threads), most_blocks));
}

__device__ uint64_t first_item() { return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ uint64_t item_step() { return uint64_t(gridDim.x) * blockDim.x; }

struct TokenFill {
  Data data;
  DType dtype;
  uint64_t seed;
  uint32_t k;
  uint64_t num_rows, stride_bytes;
};

__global__ void fill_tokens_kernel(TokenFill fill, uint8_t* tokens) {
  const uint64_t columns = fill.stride_bytes / 2;
  for (uint64_t i = first_item(); i < fill.num_rows * columns; i += item_step()) {
    const uint64_t row = i / columns;
    const uint32_t column = uint32_t(i % columns);
    reinterpret_cast<uint16_t*>(tokens)[i] =
        column < fill.k ? draw_token(fill.data, fill.dtype, fill.seed, fill.k, row, column) : uint16_t(0xFFFF);
  }
}

// Neighbouring threads take neighbouring columns of one row: they share its tokens.
__global__ void expect_kernel(OracleInput input, const OracleRow* rows, uint64_t num_rows, uint32_t columns,
                              Expectation* bounds, float* values) {
  for (uint64_t i = first_item(); i < num_rows * columns; i += item_step()) {
    const OracleValue value = oracle_value(input, rows[i / columns], uint32_t(i % columns));
    bounds[i] = expectation(input.dtype, value);
    values[i] = float(value.value);
  }
}

__device__ void note(unsigned long long* count, unsigned long long* first, uint64_t index) {
  atomicAdd(count, 1ull);
  atomicMin(first, static_cast<unsigned long long>(index));
}

// In the order of Comparison; counters start at zero and firsts at all ones.
struct Tally {
  unsigned long long num_wrong, first_wrong, num_misplaced, first_misplaced;
  double squared_error, squared_value;
};

// Adds the sum over a warp's lanes; all 32 call it.
__device__ void add_warp_sum(double* sum, double value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, value);
}

__global__ void compare_kernel(DType dtype, const OracleRow* rows, uint64_t num_rows, uint32_t columns,
                               const Expectation* bounds, const float* values, OutView out, Tally* tally) {
  double error = 0, value = 0;
  for (uint64_t i = first_item(); i < num_rows * columns; i += item_step()) {
    const uint64_t row = rows[i / columns].output_row;
    const uint16_t bits =
        *reinterpret_cast<const uint16_t*>(out.memory + out.guard_bytes + row * out.stride_bytes + i % columns * 2);
    if (!accepts(dtype, bounds[i], bits)) note(&tally->num_wrong, &tally->first_wrong, i);
    const double difference = double(value_of(dtype, bits)) - values[i];
    error += difference * difference;
    value += double(values[i]) * values[i];
  }
  add_warp_sum(&tally->squared_error, error);
  add_warp_sum(&tally->squared_value, value);
}

// Every 16-bit value of the buffer: written rows hold none of the NaN they were filled with, all else still does.
__global__ void coverage_kernel(OutView out, Tally* tally) {
  const uint16_t* values = reinterpret_cast<const uint16_t*>(out.memory);
  const uint64_t guard = out.guard_bytes / 2, stride = out.stride_bytes / 2;
  for (uint64_t i = first_item(); i < 2 * guard + out.rows * stride; i += item_step()) {
    const uint64_t inner = i - guard;  // wraps for the first guard, and is then past every row
    const bool in_rows = inner < out.rows * stride;
    const bool must_hold_value = in_rows && inner % stride < out.columns && out.written[inner / stride] != 0;
    if ((values[i] != 0xFFFF) != must_hold_value) note(&tally->num_misplaced, &tally->first_misplaced, i);
  }
}

template <class... Arguments>
Status launch_kernel(void (*kernel)(Arguments...), uint64_t items, cuda_api::Stream stream, Arguments... arguments) {
  void* pointers[] = {&arguments...};
  return cuda_api::launch({reinterpret_cast<const void*>(kernel)}, {blocks_for(items), threads, 0}, stream, pointers);
}

}  // namespace

Status fill_tokens(const Problem& problem, Data data, uint8_t* tokens, cuda_api::Stream stream) {
  const TokenFill fill{data,
                       problem.shape.dtype,
                       problem.seed,
                       problem.shape.k,
                       num_rows(problem, problem.input_rows),
                       tokens_stride_bytes(problem)};
  return launch_kernel(&fill_tokens_kernel, fill.num_rows * fill.stride_bytes / 2, stream, fill, tokens);
}

Expected make_expected(const OracleInput& input, std::vector<OracleRow> rows, uint32_t columns,
                       cuda_api::Stream stream) {
  Expected expected;
  expected.dtype = input.dtype;
  expected.columns = columns;
  expected.host_rows = std::move(rows);
  expected.rows = DeviceBuffer<OracleRow>(expected.host_rows, stream);
  const uint64_t num_values = expected.rows.size() * columns;
  expected.bounds = DeviceBuffer<Expectation>(num_values);
  expected.values = DeviceBuffer<float>(num_values);
  if (num_values == 0) return expected;
  require(launch_kernel(&expect_kernel, num_values, stream, input, static_cast<const OracleRow*>(expected.rows.data()),
                        expected.rows.size(), columns, expected.bounds.data(), expected.values.data()));
  require(cuda_api::synchronize(stream), "computing the expected results: ");
  return expected;
}

Comparison compare(const Expected& expected, const OutView& out, cuda_api::Stream stream) {
  const DeviceBuffer<Tally> tally(std::vector<Tally>{{0, ~0ull, 0, ~0ull, 0, 0}}, stream);
  const uint64_t num_values = expected.bounds.size();
  require(launch_kernel(&compare_kernel, num_values, stream, expected.dtype,
                        static_cast<const OracleRow*>(expected.rows.data()), expected.rows.size(), expected.columns,
                        static_cast<const Expectation*>(expected.bounds.data()),
                        static_cast<const float*>(expected.values.data()), out, tally.data()));
  require(launch_kernel(&coverage_kernel, out.bytes() / 2, stream, out, tally.data()));
  const Tally result = tally.download(stream).front();
  return {result.num_wrong,       result.first_wrong,   result.num_misplaced,
          result.first_misplaced, result.squared_error, result.squared_value};
}

}  // namespace fulcrum::harness
