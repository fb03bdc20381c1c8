// Memory of a problem: everything made on first use, counted, and kept until the problem goes.
//
// Called by check(), the timer, the tuner and bench. Invariant: see problem_on_device.hpp.
#include "harness/problem_on_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/input_error.hpp"
#include "harness/jit_kernels.hpp"
#include "harness/repack_device.hpp"

namespace fulcrum::harness {
namespace {

constexpr uint64_t guard_bytes = 4096;        // before and after the output: more than any tile's row of outputs
constexpr uint64_t most_sampled_rows = 1024;  // every first and last row of 288 experts, and 448 more
constexpr uint32_t most_banks = 64;           // of problems so small that three times the L2 would be thousands

uint32_t banks_for(const ProblemSize& size, uint64_t l2_bytes) {
  const uint64_t bank = std::max<uint64_t>(size.weight_bytes, 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(ceil_div<uint64_t>(3 * l2_bytes, bank), 2, most_banks));
}

uint64_t checkpoint_bytes(const Problem& problem) {
  const CheckpointRecipe recipe = recipe_of(problem, Data::exact);
  return uint64_t{recipe.num_parts} * recipe.num_experts * (codes_expert_bytes(recipe) + scales_expert_bytes(recipe));
}

uint64_t out_bytes(const Problem& problem) {
  return 2 * guard_bytes + num_rows(problem, problem.output_rows) * out_stride_bytes(problem);
}

std::string gib(uint64_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30)); }

}  // namespace

uint64_t ProblemOnDevice::bytes_needed(const Problem& problem, uint32_t num_layouts, uint64_t l2_bytes) {
  const ProblemSize size = problem_size(problem);
  const uint64_t banks = uint64_t{num_layouts} * (banks_for(size, l2_bytes) + 1);  // and one of exact data
  const uint64_t tokens = num_rows(problem, problem.input_rows) * tokens_stride_bytes(problem);
  const uint64_t expected =
      std::min(size.rows, most_sampled_rows) * out_columns(problem.shape) * (sizeof(Expectation) + sizeof(float));
  return checkpoint_bytes(problem) + banks * packed_bytes(problem.shape) + 2 * (tokens + expected) + out_bytes(problem);
}

ProblemOnDevice::ProblemOnDevice(const Problem& problem, uint64_t memory_cap_bytes)
    : problem_(problem), size_(problem_size(problem)), device_(current_device()) {
  if (problem.routing.experts != problem.shape.experts || problem.routing.top_k != problem.shape.top_k) {
    throw InputError(fmt::format("routing '{}' has {} experts and top_k {}, the shape {} and {}", problem.routing.name,
                                 problem.routing.experts, problem.routing.top_k, problem.shape.experts,
                                 problem.shape.top_k));
  }
  const uint64_t free_bytes = require(cuda_api::free_memory());
  cap_bytes_ = memory_cap_bytes != 0 ? memory_cap_bytes : free_bytes - free_bytes / 10;
  const uint64_t needed = bytes_needed(problem, 1, device_.l2_bytes);
  if (needed > cap_bytes_) {
    throw InputError(fmt::format("{} needs {} of GPU memory, and {} may be used", problem_name(problem), gib(needed),
                                 gib(cap_bytes_)));
  }
  num_banks_ = banks_for(size_, device_.l2_bytes);
  stream_ = require(cuda_api::create_stream());
  csr_ = build_csr(problem.routing, problem.local());
  pair_ids_ = take<int32_t>(problem.routing.num_pairs(), "the routing");
  require(
      cuda_api::copy_async(pair_ids_.data(), csr_.pair_ids.data(), csr_.pair_ids.size() * sizeof(int32_t), stream_));
  out_ = take<uint8_t>(out_bytes(problem), "the output");
  std::vector<uint8_t> written(num_rows(problem, problem.output_rows), 0);
  for (uint32_t s = 0; s < csr_.pair_ids.size(); ++s) written[row_of(problem, csr_, problem.output_rows, s)] = 1;
  written_rows_ = DeviceBuffer<uint8_t>(written, stream_);
}

ProblemOnDevice::~ProblemOnDevice() {
  if (stream_ != nullptr) (void)cuda_api::destroy_stream(stream_);
}

// One element at least: an engine's buffers are there when a batch leaves them empty, too.
template <class T>
DeviceBuffer<T> ProblemOnDevice::take(uint64_t count, const char* what) {
  const uint64_t bytes = std::max<uint64_t>(count, 1) * sizeof(T);
  if (taken_bytes_ + bytes > cap_bytes_) {
    throw InputError(fmt::format("{}: {} would take {} more than the {} in use, and {} may be used",
                                 problem_name(problem_), what, gib(bytes), gib(taken_bytes_), gib(cap_bytes_)));
  }
  DeviceBuffer<T> buffer(bytes / sizeof(T));
  taken_bytes_ += bytes;
  return buffer;
}

void ProblemOnDevice::make_checkpoint(Data data) {
  if (checkpoint_data_ == data) return;
  const CheckpointRecipe recipe = recipe_of(problem_, data);
  for (uint32_t part = 0; part < recipe.num_parts; ++part) {
    if (codes_[part].size() == 0) {
      codes_[part] = take<uint8_t>(recipe.num_experts * codes_expert_bytes(recipe), "the checkpoint");
      scales_[part] = take<uint8_t>(recipe.num_experts * scales_expert_bytes(recipe), "the checkpoint");
    }
    require(fill_checkpoint(recipe, part, codes_[part].data(), scales_[part].data(), stream_),
            "filling a checkpoint: ");
  }
  checkpoint_data_ = data;
}

const ProblemOnDevice::Inputs& ProblemOnDevice::inputs(Data data) {
  std::optional<Inputs>& made = inputs_[static_cast<size_t>(data)];
  if (made) return *made;
  const Factors factors = draw_factors(problem_, data);
  Inputs fresh;
  fresh.tokens =
      take<uint8_t>(num_rows(problem_, problem_.input_rows) * tokens_stride_bytes(problem_), "the token rows");
  require(fill_tokens(problem_, data, fresh.tokens.data(), stream_), "filling token rows: ");
  fresh.global_scales = DeviceBuffer<float>(factors.global_scales, stream_);
  fresh.row_scales = DeviceBuffer<float>(factors.row_scales, stream_);
  fresh.bias = DeviceBuffer<float>(factors.bias, stream_);
  fresh.pair_weights = DeviceBuffer<float>(factors.pair_weights, stream_);
  made = std::move(fresh);
  return *made;
}

ProblemOnDevice::Bank ProblemOnDevice::make_bank(Data data, Layout layout) {
  return layout.code_word == CodeWord::block36 ? checkpoint_bank(data) : pack_bank(data, layout);
}

ProblemOnDevice::Bank ProblemOnDevice::pack_bank(Data data, Layout layout) {
  make_checkpoint(data);
  Bank bank;
  bank.parts[0] = take<uint8_t>(packed_bytes(problem_.shape), "a bank of packed weights");
  DeviceBuffer<uint64_t> refusal(1);
  RepackParams params = dense_params(recipe_of(problem_, data));
  for (uint32_t part = 0; part < params.num_parts; ++part) {
    params.parts[part].codes.bank = codes_[part].data();
    params.parts[part].scales.bank = scales_[part].data();
  }
  params.packed = bank.parts[0].data();
  params.refusal = refusal.data();
  run_repack({problem_.format, layout}, RepackDirection::pack, params, stream_);
  ScaleRefusal refused;
  require(read_refusal(refusal.data(), stream_, refused), "packing weights: ");
  make_table(bank);
  return bank;
}

// A copy, because a checkpoint of other data may take the place of this one.
ProblemOnDevice::Bank ProblemOnDevice::checkpoint_bank(Data data) {
  if (problem_.format != CheckpointFormat::block36)
    throw InputError(fmt::format("{}: only a block36 checkpoint can be read in place", problem_name(problem_)));
  make_checkpoint(data);
  Bank bank;
  for (uint32_t part = 0; part < 2; ++part) {
    if (codes_[part].size() == 0) continue;
    bank.parts[part] = take<uint8_t>(codes_[part].size(), "a bank of weights");
    require(cuda_api::copy_async(bank.parts[part].data(), codes_[part].data(), codes_[part].bytes(), stream_));
  }
  make_table(bank);
  return bank;
}

ProblemOnDevice::Bank ProblemOnDevice::copy_bank(const Bank& from) {
  Bank bank;
  for (uint32_t part = 0; part < 2; ++part) {
    if (from.parts[part].size() == 0) continue;
    bank.parts[part] = take<uint8_t>(from.parts[part].size(), "a bank of weights");
    require(cuda_api::copy_async(bank.parts[part].data(), from.parts[part].data(), from.parts[part].bytes(), stream_));
  }
  make_table(bank);
  return bank;
}

void ProblemOnDevice::make_table(Bank& bank) {
  if (!problem_.expert_pointers) return;
  for (uint32_t part = 0; part < 2; ++part) {
    if (bank.parts[part].size() == 0) continue;
    std::vector<const uint8_t*> pointers;
    const uint64_t bytes = bank.parts[part].size() / problem_.shape.local_experts;
    for (uint32_t expert = 0; expert < problem_.shape.local_experts; ++expert)
      pointers.push_back(bank.parts[part].data() + expert * bytes);
    bank.expert_pointers[part] = DeviceBuffer<const uint8_t*>(pointers, stream_);
  }
}

const ProblemOnDevice::TileList& ProblemOnDevice::tile_list(uint32_t tile_m, TileOrder order) {
  const auto [at, is_new] = tile_lists_.try_emplace({tile_m, order});
  if (!is_new) return at->second;
  const std::vector<TokenTile> tiles = cut_token_tiles(csr_, tile_m, order);
  at->second.count = tiles.size();
  // one element at least: launch() wants a pointer even where every id is remote
  at->second.token_tiles = DeviceBuffer<TokenTile>(tiles.empty() ? std::vector<TokenTile>(1) : tiles, stream_);
  at->second.num_token_tiles = DeviceBuffer<int32_t>(std::vector<int32_t>{static_cast<int32_t>(tiles.size())}, stream_);
  return at->second;
}

Plan ProblemOnDevice::plan(const Kernel& kernel) const {
  const uint64_t tokens = problem_.routing.tokens;
  return require(make_plan(kernel, problem_.shape, layout_of(kernel.config), tokens), "planning a launch: ");
}

Weights ProblemOnDevice::weights(Data data, Layout layout, uint32_t bank) {
  const uint32_t index = data == Data::exact ? 0 : bank % num_banks_;
  std::vector<Bank>& banks = banks_[{data, layout.code_word, layout.k_order}];
  if (banks.empty()) banks.push_back(make_bank(data, layout));
  while (banks.size() <= index) banks.push_back(copy_bank(banks.front()));
  const Inputs& in = inputs(data);
  Weights weights;
  weights.packed = banks[index].parts[0].data();
  weights.packed_up = banks[index].parts[1].data();
  weights.expert_pointers = banks[index].expert_pointers[0].data();
  weights.expert_pointers_up = banks[index].expert_pointers[1].data();
  weights.global_scales = in.global_scales.data();
  weights.bias = in.bias.data();
  weights.layout = layout;
  weights.n = problem_.shape.n;
  weights.k = problem_.shape.k;
  weights.num_experts = problem_.shape.local_experts;
  return weights;
}

Buffers ProblemOnDevice::buffers(Data data, const Plan& plan) {
  const Inputs& in = inputs(data);
  const Config& config = plan.kernel.config;
  const TileList& tiles = tile_list(static_cast<uint32_t>(config.tile_m), config.tile_order);
  Buffers buffers;
  buffers.num_tokens = problem_.routing.tokens;
  buffers.routing = {tiles.token_tiles.data(), tiles.num_token_tiles.data(), pair_ids_.data()};
  buffers.tokens = in.tokens.data();
  buffers.tokens_stride_bytes = tokens_stride_bytes(problem_);
  buffers.input_rows = problem_.input_rows;
  buffers.row_scales = in.row_scales.data();
  buffers.pair_weights = in.pair_weights.data();
  buffers.out = out_view().out();
  buffers.out_stride_bytes = out_stride_bytes(problem_);
  buffers.output_rows = problem_.output_rows;
  const DeviceBuffer<uint8_t>& memory = workspace(plan);
  buffers.workspace = memory.data();
  buffers.workspace_bytes = memory.size();
  buffers.num_token_tiles = tiles.count;
  return buffers;
}

const DeviceBuffer<uint8_t>& ProblemOnDevice::workspace(const Plan& plan) {
  DeviceBuffer<uint8_t>& memory = workspaces_[{plan.workspace().counter_bytes, plan.workspace_bytes()}];
  if (memory.size() < plan.workspace_bytes()) {
    memory = take<uint8_t>(plan.workspace_bytes(), "a workspace");
    require(prepare_workspace(plan, memory.data(), stream_));
  }
  return memory;
}

void ProblemOnDevice::launch_once(const Plan& plan, Data data, uint32_t bank) {
  require(launch(plan, weights(data, plan.layout, bank), buffers(data, plan), stream_), "launching a kernel: ");
}

void ProblemOnDevice::prepare_timing(const Plan& plan) {
  (void)weights(Data::random, plan.layout, num_banks_ - 1);
  (void)buffers(Data::random, plan);
  require(cuda_api::synchronize(stream_));
}

void ProblemOnDevice::clear_out() { require(cuda_api::memset_async(out_.data(), 0xFF, out_.bytes(), stream_)); }

OutView ProblemOnDevice::out_view() const {
  OutView view;
  view.memory = out_.data();
  view.guard_bytes = guard_bytes;
  view.rows = written_rows_.size();
  view.stride_bytes = out_stride_bytes(problem_);
  view.columns = out_columns(problem_.shape);
  view.written = written_rows_.data();
  return view;
}

OracleInput ProblemOnDevice::oracle_input(Data data) {
  make_checkpoint(data);
  const Inputs& in = inputs(data);
  OracleInput input;
  input.data = data;
  input.recipe = recipe_of(problem_, data);
  const bool block36 = problem_.format == CheckpointFormat::block36;
  for (uint32_t part = 0; part < 2; ++part) {
    input.codes[part] = codes_[part].data();
    input.scales[part] = block36 ? codes_[part].data() : scales_[part].data();
  }
  input.global_scales = in.global_scales.data();
  input.tokens = in.tokens.data();
  input.tokens_stride_bytes = tokens_stride_bytes(problem_);
  input.row_scales = in.row_scales.data();
  input.bias = in.bias.data();
  input.pair_weights = in.pair_weights.data();
  input.dtype = problem_.shape.dtype;
  input.activation = problem_.shape.activation;
  return input;
}

const Expected& ProblemOnDevice::expected(Data data) {
  std::optional<Expected>& made = expected_[static_cast<size_t>(data)];
  if (!made) {
    made = make_expected(oracle_input(data), sample_rows(problem_, csr_, most_sampled_rows),
                         out_columns(problem_.shape), stream_);
  }
  return *made;
}

}  // namespace fulcrum::harness
