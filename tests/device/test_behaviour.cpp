// What a default kernel must do with odd batches and odd numbers, on a GPU or on the emulator: NaN, saturation, the
// order of tokens, bytes between rows, empty and lopsided batches, tails of models, oversubscribed tickets.
//
// Run by ctest as device.behaviour and, on the emulator, as emulator.behaviour; problems are small enough for both.
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness/cases.hpp"
#include "harness/check.hpp"
#include "harness/input_error.hpp"
#include "harness/jit_kernels.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

constexpr KernelKind plain{DType::f16, false, Activation::none};

Kernel compiled(const Config& config, const KernelKind& kind) {
  return compile_kernel(config, kind, current_device().arch).kernel;
}
Config own_default(const KernelKind& kind) { return default_config(kind, current_device().arch); }
Kernel default_kernel(const KernelKind& kind) { return compiled(own_default(kind), kind); }

std::vector<Problem> tiny_problems(const KernelKind& kind) {
  return small_problems(kind, static_cast<uint32_t>(own_default(kind).tile_m), CaseSize::tiny);
}

// Plain rows of one expert among four, `tokens` of them.
Problem one_expert(uint32_t n, uint32_t k, uint32_t tokens) {
  Problem problem;
  problem.shape = {n, k, 4, 4, 0, 1, DType::f16, Projection::plain, Activation::none};
  problem.routing = routing_with_rows({0, 0, tokens, 0}, problem.local(), 4, 1, 1);
  problem.workload = "behaviour";
  problem.case_name = "one expert";
  problem.item = "plain";
  return problem;
}

void write(ProblemOnDevice& problem, const void* to, const void* from, uint64_t bytes) {
  require(cuda_api::copy_async(const_cast<void*>(to), from, bytes, problem.stream()));
  require(cuda_api::synchronize(problem.stream()));
}

// Rows of out after a launch on random data, each as [columns].
using Rows = std::vector<std::vector<uint16_t>>;
Rows rows_of(ProblemOnDevice& problem) {
  const OutView view = problem.out_view();
  std::vector<uint8_t> bytes(view.bytes());
  require(cuda_api::copy_async(bytes.data(), view.memory, bytes.size(), problem.stream()));
  require(cuda_api::synchronize(problem.stream()));
  Rows rows(view.rows, std::vector<uint16_t>(view.columns));
  for (uint64_t row = 0; row < view.rows; ++row)
    std::memcpy(rows[row].data(), bytes.data() + view.guard_bytes + row * view.stride_bytes, view.columns * 2);
  return rows;
}
Rows launched_rows(ProblemOnDevice& problem, const Plan& plan) {
  problem.clear_out();
  problem.launch_once(plan, Data::random);
  return rows_of(problem);
}

// Bytes from one row of tokens to the next.
uint64_t token_stride(const Problem& problem, const Buffers& buffers) {
  return buffers.tokens_stride_bytes != 0 ? buffers.tokens_stride_bytes : uint64_t{problem.shape.k} * 2;
}

const uint8_t* token_row(const Problem& problem, const Buffers& buffers, uint64_t row) {
  return static_cast<const uint8_t*>(buffers.tokens) + row * token_stride(problem, buffers);
}

void check_passes(const Problem& each, const Kernel& kernel) {
  ProblemOnDevice problem(each);
  const CheckResult result = check(problem, kernel);
  BOOST_TEST(result.passed, problem_name(each) << " " << each.case_name << ": " << result.what);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(behaviour, *boost::unit_test::precondition(needs_gpu))

BOOST_AUTO_TEST_CASE(nan_in_a_token_stays_in_its_rows) {
  const Problem each = tiny_problems(plain).front();
  ProblemOnDevice problem(each);
  const Plan plan = problem.plan(default_kernel(plain));
  const Rows before = launched_rows(problem, plan);
  const std::vector<uint8_t> nan(uint64_t{each.shape.k} * 2, 0xFF);
  write(problem, problem.buffers(Data::random, plan).tokens, nan.data(), nan.size());
  const Rows after = launched_rows(problem, plan);
  const ExpertRange local = each.local();
  uint32_t num_local = 0;
  for (uint32_t row = 0; row < after.size(); ++row) {
    if (row >= each.shape.top_k) {  // rows are pairs, and token 0 has the first top_k of them
      BOOST_REQUIRE(before[row] == after[row]);
      continue;
    }
    const auto id = static_cast<uint32_t>(each.routing.ids[row]) - local.first;  // -1 wraps round to a large one
    num_local += id < local.count ? 1 : 0;
    for (const uint16_t bits : after[row]) BOOST_REQUIRE(std::isnan(value_of(each.shape.dtype, bits)));
  }
  BOOST_TEST(num_local > 0u);  // rows of other experts are NaN before the launch, too
}

BOOST_AUTO_TEST_CASE(finite_results_never_become_infinite) {
  const Problem each = tiny_problems(plain).front();
  ProblemOnDevice problem(each);
  const Plan plan = problem.plan(default_kernel(plain));
  const std::vector<float> huge(each.shape.local_experts, 1e30f);  // f32 holds the results, f16 does not
  write(problem, problem.weights(Data::random, plan.layout).global_scales, huge.data(), huge.size() * sizeof(float));
  const Rows rows = launched_rows(problem, plan);
  uint64_t largest = 0;
  for (const OracleRow& at : problem.expected(Data::random).host_rows) {
    for (const uint16_t bits : rows[at.output_row]) {
      BOOST_REQUIRE(std::isfinite(value_of(each.shape.dtype, bits)));
      largest += (bits & 0x7FFF) == max_f16_bits ? 1 : 0;
    }
  }
  BOOST_TEST(largest > 0u);
}

BOOST_AUTO_TEST_CASE(each_factor_alone_and_all_of_them_in_their_order) {
  for (const KernelKind kind :
       {plain, KernelKind{DType::bf16, true, Activation::none}, KernelKind{DType::f16, true, Activation::silu}}) {
    const Kernel kernel = default_kernel(kind);
    for (const Problem& each : tiny_problems(kind)) check_passes(each, kernel);
  }
}

BOOST_AUTO_TEST_CASE(gate_and_up_have_global_scales_of_their_own) {
  const KernelKind kind{DType::f16, true, Activation::none};
  const Problem each = tiny_problems(kind).front();
  ProblemOnDevice problem(each);
  const Plan plan = problem.plan(default_kernel(kind));
  const float* const scales = problem.weights(Data::random, plan.layout).global_scales;  // [expert][gate, up]
  const auto with = [&](float gate, float up) {
    std::vector<float> values;
    for (uint32_t e = 0; e < each.shape.local_experts; ++e) values.insert(values.end(), {gate, up});
    write(problem, scales, values.data(), values.size() * sizeof(float));
    return launched_rows(problem, plan);
  };
  const Rows one = with(0x1p-4f, 0x1p-3f);
  BOOST_TEST((with(0x1p-3f, 0x1p-4f) == one));  // a product: powers of two may change places
  BOOST_TEST((with(0x1p-4f, 0x1p-4f) != one));
  BOOST_TEST((with(0x1p-3f, 0x1p-3f) != one));
}

BOOST_AUTO_TEST_CASE(rows_do_not_depend_on_the_order_of_tokens) {
  Problem each = tiny_problems(plain).front();
  const Kernel kernel = default_kernel(plain);
  std::vector<uint32_t> order(each.routing.tokens);
  for (uint32_t token = 0; token < order.size(); ++token)
    order[token] = static_cast<uint32_t>(order.size()) - 1 - token;
  ProblemOnDevice first(each);
  const Plan plan = first.plan(kernel);
  const Rows expected = launched_rows(first, plan);
  const Buffers from = first.buffers(Data::random, plan);
  const uint64_t row_bytes = uint64_t{each.shape.k} * 2;
  std::vector<std::vector<uint8_t>> tokens;
  for (uint32_t token = 0; token < order.size(); ++token) {
    std::vector<uint8_t>& row = tokens.emplace_back(row_bytes);
    require(cuda_api::copy_async(row.data(), token_row(each, from, token), row_bytes, first.stream()));
  }
  require(cuda_api::synchronize(first.stream()));

  each.routing = permute_tokens(each.routing, order);
  ProblemOnDevice second(each);
  const Plan other = second.plan(kernel);
  const Buffers to = second.buffers(Data::random, other);
  for (uint32_t token = 0; token < order.size(); ++token)
    write(second, token_row(each, to, token), tokens[order[token]].data(), row_bytes);
  const Rows permuted = launched_rows(second, other);
  const uint32_t top_k = each.shape.top_k;
  for (uint32_t pair = 0; pair < permuted.size(); ++pair)
    BOOST_REQUIRE(permuted[pair] == expected[order[pair / top_k] * top_k + pair % top_k]);
}

BOOST_AUTO_TEST_CASE(bytes_between_rows_do_not_matter) {
  const Problem each = tiny_problems(plain).front();
  BOOST_REQUIRE(each.token_gap_bytes > 0);
  ProblemOnDevice problem(each);
  const Plan plan = problem.plan(default_kernel(plain));
  const Buffers buffers = problem.buffers(Data::random, plan);
  Rows rows[2];
  for (const uint8_t fill : {uint8_t{0}, uint8_t{0xFF}}) {
    const std::vector<uint8_t> gap(each.token_gap_bytes, fill);
    for (uint32_t token = 0; token < each.routing.tokens; ++token)
      write(problem, token_row(each, buffers, token) + uint64_t{each.shape.k} * 2, gap.data(), gap.size());
    rows[fill & 1] = launched_rows(problem, plan);
  }
  BOOST_TEST((rows[0] == rows[1]));
}

// As build_routing() leaves a batch whose experts are all remote.
BOOST_AUTO_TEST_CASE(a_batch_without_local_pairs_writes_nothing) {
  for (const TileQueue queue : {TileQueue::fixed, TileQueue::ticket}) {
    Config config = own_default(plain);
    config.tile_queue = queue;
    ProblemOnDevice problem(tiny_problems(plain).front());
    const Plan plan = problem.plan(compiled(config, plain));
    const int32_t none = 0;
    write(problem, problem.buffers(Data::random, plan).routing.num_token_tiles, &none, sizeof none);
    for (int repeat = 0; repeat < 2; ++repeat)  // the counters are left as they were
      for (const std::vector<uint16_t>& row : launched_rows(problem, plan))
        for (const uint16_t bits : row) BOOST_REQUIRE_EQUAL(bits, 0xFFFF);
  }
}

BOOST_AUTO_TEST_CASE(one_expert_may_have_every_row) {
  const Kernel kernel = default_kernel(plain);
  for (const uint32_t tokens : {1u, 100u}) check_passes(one_expert(64, 80, tokens), kernel);
}

BOOST_AUTO_TEST_CASE(tails_of_models) {
  const Kernel kernel = default_kernel(plain);
  check_passes(one_expert(160, 672, 9), kernel);
  check_passes(one_expert(1856, 208, 9), kernel);
  ProblemOnDevice large(one_expert(2880, 2880, 3));
  const CheckResult result = check(large, kernel, Data::exact);
  BOOST_TEST(result.passed, result.what);
}

BOOST_AUTO_TEST_CASE(more_blocks_than_are_resident_end) {
  Config config = own_default(plain);
  config.tile_queue = TileQueue::ticket;
  config.grid_extent = GridExtent::bound;
  const Problem each = one_expert(528, 80, 200);
  {
    ProblemOnDevice problem(each);
    const Plan plan = problem.plan(compiled(config, plain));
    BOOST_TEST(launch_blocks(plan, problem.buffers(Data::exact, plan)) > plan.max_items(1));
  }
  check_passes(each, compiled(config, plain));
}

BOOST_AUTO_TEST_CASE(a_problem_above_its_memory_is_refused_with_both_numbers) {
  BOOST_CHECK_EXCEPTION(ProblemOnDevice(tiny_problems(plain).front(), 1000), InputError, [](const InputError& error) {
    const std::string words = error.what();
    return words.find(" needs ") != std::string::npos && words.find(" may be used") != std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
