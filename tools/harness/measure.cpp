// Compiles, checks and times one Config, or two one after the other in one graph.
//
// Called by the verb probe and by bench. Invariant: see measure.hpp.
#include "harness/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "harness/check.hpp"
#include "harness/input_error.hpp"

namespace fulcrum::harness {
namespace {

double tile_padding(const Csr& csr, const Config& config) {
  const auto granularity = static_cast<uint64_t>(config.token_granularity);
  uint64_t useful = 0, multiplied = 0;
  for (const TokenTile& tile : cut_token_tiles(csr, static_cast<uint32_t>(config.tile_m), config.tile_order)) {
    useful += static_cast<uint64_t>(tile.num_rows);
    multiplied += round_up(static_cast<uint64_t>(tile.num_rows), granularity);
  }
  return useful > 0 ? static_cast<double>(multiplied) / static_cast<double>(useful) : 1;
}

}  // namespace

Timing timing_of(const std::vector<double>& samples_us) {
  return {median_of(samples_us), *std::min_element(samples_us.begin(), samples_us.end()), median_ci(samples_us),
          samples_us.size()};
}

Timing time_samples(GraphTimer& timer, int samples) {
  timer.warm_up();
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) times.push_back(timer.sample_us());
  return timing_of(times);
}

Measurement measure(ProblemOnDevice& problem, const Config& config, int samples) {
  CompiledKernel compiled = compile_kernel(config, kernel_kind(problem.problem().shape), problem.device().arch);
  const CheckResult checked = check(problem, compiled.kernel);
  if (!checked.passed) throw std::runtime_error(fmt::format("{}\nconfig: {}", checked.what, config_text(config)));
  Measurement result;
  result.config = config;
  result.size = problem.size();
  result.rel_error = checked.rel_error;
  result.padding = tile_padding(problem.csr(), config);
  result.machine = compiled.info.machine;
  {
    GraphTimer timer = kernel_timer(problem, compiled.kernel);
    result.timing = time_samples(timer, samples);
  }
  require(unload_kernel(compiled.kernel));
  return result;
}

Timing measure_two_gemms(ProblemOnDevice& gate_up, const Config& gate_up_config, ProblemOnDevice& down,
                         const Config& down_config, int samples) {
  CompiledKernel first = compile_kernel(gate_up_config, kernel_kind(gate_up.problem().shape), gate_up.device().arch);
  CompiledKernel second = compile_kernel(down_config, kernel_kind(down.problem().shape), down.device().arch);
  const Plan first_plan = gate_up.plan(first.kernel), second_plan = down.plan(second.kernel);
  gate_up.prepare_timing(first_plan);
  down.prepare_timing(second_plan);
  const Buffers first_buffers = gate_up.buffers(Data::random, first_plan);
  Buffers second_buffers = down.buffers(Data::random, second_plan);
  second_buffers.tokens = first_buffers.out;  // h [pairs][intermediate]
  second_buffers.tokens_stride_bytes = first_buffers.out_stride_bytes;
  Timing timing;
  {
    const uint32_t banks = std::max({gate_up.num_banks(), down.num_banks(), 4u});
    GraphTimer timer(gate_up.stream(), static_cast<int>(banks), [&](cuda_api::Stream stream, int i) {
      const auto bank = static_cast<uint32_t>(i);
      const Weights first_weights = gate_up.weights(Data::random, first_plan.layout, bank);
      const Weights second_weights = down.weights(Data::random, second_plan.layout, bank);
      require(launch(first_plan, first_weights, first_buffers, stream), "launching gate_up: ");
      require(launch(second_plan, second_weights, second_buffers, stream), "launching down: ");
    });
    timing = time_samples(timer, samples);
  }
  require(unload_kernel(first.kernel));
  require(unload_kernel(second.kernel));
  return timing;
}

Choice choose_config(const Table& table, const Problem& problem, const Device& device) {
  const DeviceKey key = device_key(device);
  const Layout layout = table.layout(key, problem.shape);
  return table.choose(key, problem.shape, layout, problem.routing.tokens, problem.routing.name.c_str());
}

Table read_table(const std::string& path) {
  const Result<Table> table = Table::load(path.c_str());
  if (!table.ok()) throw InputError(fmt::format("{}: {}", path, message(table.status())));
  for (const std::string& warning : table->warnings()) fmt::print(stderr, "{}: {}\n", path, warning);
  return *table;
}

}  // namespace fulcrum::harness
