// Problems, roofs and timers put together to Records: layers, repacks and compiles.
//
// Called by the verb bench. Invariant: see bench.hpp; a figure leaves only through report(), as soon as it is made.
#include "harness/bench.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "harness/input_error.hpp"
#include "harness/repack_device.hpp"
#include "harness/roofs.hpp"
#include "harness/workload.hpp"

namespace fulcrum::harness {
namespace {

constexpr double recorded_share = 0.98;  // of the best roof on record: clocks differ a little from day to day

// Roofs of this call; but for prefill they are read with the item's exact bytes, which can be too few to hide a start.
class BenchRoofs {
 public:
  BenchRoofs(const Problem& problem, const std::vector<Record>& history) : history_(history) {
    RoofMeter meter;
    large_gbps_ = meter.read().gbps();
    matrix_tflops_ = meter.matrix().tflops;
    exact_ = problem.workload != "prefill";
  }

  void fill(Record& record, uint64_t weight_bytes) const {
    double read = large_gbps_, matrix = matrix_tflops_;
    if (exact_) {
      RoofMeter meter;
      read = meter.read_bytes(weight_bytes).gbps();
    }
    for (const Record& old : history_) {
      if (old.workload != record.workload || old.case_name != record.case_name || old.item != record.item) continue;
      read = std::max(read, recorded_share * old.read_roof_gbps.value_or(0));
      matrix = std::max(matrix, recorded_share * old.matrix_roof_tflops.value_or(0));
    }
    record.read_roof_gbps = read;
    if (matrix > 0) record.matrix_roof_tflops = matrix;
  }

 private:
  const std::vector<Record>& history_;
  double large_gbps_ = 0, matrix_tflops_ = 0;
  bool exact_ = false;
};

Record record_of(const Problem& problem, const std::string& item) {
  Record record;
  record.workload = problem.workload;
  record.case_name = problem.case_name;
  record.routing = problem.routing.name;
  record.item = item;
  record.dtype = value_name(problem.shape.dtype);
  record.date = date_now();
  return record;
}

void fill_timing(Record& record, const Timing& timing) {
  record.median_us = timing.median_us;
  record.best_us = timing.best_us;
  record.ci_us = timing.ci_us;
  record.samples = timing.samples;
}

// Floor, ratio and rates, once the roofs and the time are there. `sizes` are of the GEMMs that ran one after the other.
void fill_rates(Record& record, const std::vector<ProblemSize>& sizes) {
  double floor = 0, flop = 0, bytes = 0;
  for (const ProblemSize& size : sizes) {
    floor += floor_us(size, *record.read_roof_gbps, record.matrix_roof_tflops.value_or(0));
    flop += size.flop;
    bytes += static_cast<double>(size.weight_bytes);
  }
  record.floor_us = floor;
  record.ratio = floor / *record.median_us;
  record.tflops = flop / *record.median_us * 1e-6;
  record.gbps = bytes / *record.median_us * 1e-3;
}

Config config_for(const BenchRequest& request, const Problem& problem, const Device& device) {
  if (request.config) {
    if (const char* reason = illegal_reason(*request.config, device.arch, problem))
      throw InputError(fmt::format("the Config cannot run {}: {}", problem_name(problem), reason));
    return *request.config;
  }
  if (!request.table) return default_config(kernel_kind(problem.shape), device.arch);
  return choose_config(*request.table, problem, device).config;
}

std::vector<Problem> readable_by(const BenchRequest& request, std::vector<Problem> problems) {
  for (Problem& problem : problems) {
    if (request.config) problem = with_checkpoint_for(problem, *request.config);
  }
  return problems;
}

Record measure_item(ProblemOnDevice& memory, const std::string& item, const Config& config, const BenchRequest& request,
                    const BenchRoofs& roofs) {
  const Measurement measured = measure(memory, config, request.samples);
  Record record = record_of(memory.problem(), item);
  record.config = config_text(config);
  record.rel_error = measured.rel_error;
  record.machine = measured.machine;
  fill_timing(record, measured.timing);
  roofs.fill(record, measured.size.weight_bytes);
  fill_rates(record, {measured.size});
  return record;
}

// gate_up, down, and both in one graph.
void bench_layer(const Problem& gate_up, const Problem& down, const BenchRequest& request, const BenchRoofs& roofs,
                 const Report& report) {
  ProblemOnDevice first(gate_up), second(down);
  const Config first_config = config_for(request, gate_up, first.device());
  const Config second_config = config_for(request, down, second.device());
  const Record first_record = measure_item(first, "gate_up", first_config, request, roofs);
  report(first_record);
  const Record second_record = measure_item(second, "down", second_config, request, roofs);
  report(second_record);
  Record both = record_of(gate_up, "two_gemms");
  both.config = first_record.config + " + " + second_record.config;
  both.rel_error = std::max(*first_record.rel_error, *second_record.rel_error);
  both.machine = first_record.machine + " + " + second_record.machine;
  fill_timing(both, measure_two_gemms(first, first_config, second, second_config, request.samples));
  roofs.fill(both, first.size().weight_bytes + second.size().weight_bytes);
  fill_rates(both, {first.size(), second.size()});
  report(both);
}

// A folder for one cache, removed with it.
class CacheFolder {
 public:
  CacheFolder() : path_((std::filesystem::temp_directory_path() / "fulcrum_bench_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr)
      throw InputError(path_ + " cannot be made; set TMPDIR to a folder that can be written");
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

jit::Cubin compile_once(const Config& config, const KernelKind& kind, Arch arch, const char* cache) {
  jit::Options options = jit_options();
  options.cache_folder = cache;
  jit::Cubin cubin = jit::compile_cubin(config, kind, arch, options);
  if (!cubin.status.ok()) throw InputError(cubin.explanation);
  return cubin;
}

// Nothing is reported of a compile that `stopped` cuts short.
void bench_compile(const Config& config, const KernelKind& kind, Arch arch, int samples, const CacheFolder& cache,
                   const std::function<bool()>& stopped, const Report& report) {
  if (stopped()) return;
  std::vector<double> cold, warm;
  jit::Cubin cubin = compile_once(config, kind, arch, cache.path().c_str());
  const auto total_us = [](const jit::Cubin& each) { return 1e6 * (each.compile_seconds + each.load_seconds); };
  for (int i = 0; i < samples && !stopped(); ++i) cold.push_back(total_us(compile_once(config, kind, arch, "")));
  if (stopped()) return;
  for (int i = 0; i < 4 * samples; ++i) {
    cubin = compile_once(config, kind, arch, cache.path().c_str());
    if (!cubin.from_cache) throw InputError("the cache of compiled kernels did not keep an entry in " + cache.path());
    warm.push_back(total_us(cubin));
  }
  for (const auto& [item, times] : {std::pair{"cold", &cold}, std::pair{"warm", &warm}}) {
    Record record;
    record.workload = "jit";
    record.case_name = fmt::format("{}{}{} {}", value_name(config.family), kind.gate_up ? " gate_up" : "",
                                   kind.activation == Activation::none ? "" : " silu", arch_name(arch));
    record.item = item;
    record.config = config_text(config);
    record.dtype = value_name(kind.dtype);
    record.machine = cubin.info.machine;
    record.date = date_now();
    fill_timing(record, timing_of(*times));
    report(record);
  }
}

}  // namespace

void bench_workload(const BenchRequest& request, const Report& report) {
  const std::vector<Problem> problems =
      readable_by(request, workload_problems(request.workload, request.cases, request.routing, request.dtype));
  const BenchRoofs roofs(problems.front(), request.history);
  for (size_t i = 0; i < problems.size(); i += 2) {
    if (request.workload == "prefill") {
      const uint32_t tokens = problems[i].routing.tokens;
      for (const Problem& problem : readable_by(request, probe_problems(tokens, request.routing, request.dtype))) {
        ProblemOnDevice memory(problem);
        const std::string item = problem.item == "down" ? "down_probed" : problem.item;
        report(measure_item(memory, item, config_for(request, problem, memory.device()), request, roofs));
      }
    }
    bench_layer(problems[i], problems[i + 1], request, roofs, report);
  }
}

size_t bench_sweep(const BenchRequest& request, const SweepEvents& events, const Report& report) {
  const std::vector<Problem> problems = readable_by(
      request, request.workload == "growth" ? growth_problems(request.routing, request.dtype)
                                            : sweep_problems(request.sweep, request.routing, request.dtype));
  const Device device = current_device();
  const BenchRoofs roofs(problems.front(), request.history);
  size_t num_wrong = 0;
  for (size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i];
    if (!events.before(i, problems.size(), problem)) break;
    const uint64_t needed = ProblemOnDevice::bytes_needed(problem, 1, device.l2_bytes);
    const uint64_t free_bytes = require(cuda_api::free_memory());
    if (needed > free_bytes / 10 * 9) {
      events.left_out(problem, fmt::format("it needs {} MiB, and {} MiB are free", needed >> 20, free_bytes >> 20));
      continue;
    }
    try {
      const Config config = config_for(request, problem, device);
      Record key = record_of(problem, problem.item);
      key.config = config_text(config);
      if (request.resume && is_recorded(request.history, key)) continue;
      ProblemOnDevice memory(problem);
      report(measure_item(memory, problem.item, config, request, roofs));
    } catch (const DeviceError&) {
      throw;  // nothing after it could be trusted
    } catch (const std::exception& error) {
      ++num_wrong;
      events.left_out(problem, error.what());
    }
  }
  return num_wrong;
}

void bench_repack(int samples, const Report& report) {
  const Arch arch = current_device().arch;
  for (const Workload& workload : workloads) {
    for (const Problem& problem : workload_problems(workload.name, {std::string(workload.cases.front().name)})) {
      const CheckpointRecipe recipe = recipe_of(problem, Data::random);
      const Layout layout = layout_of(default_config(kernel_kind(problem.shape), arch));
      for (const RepackDirection direction : {RepackDirection::pack, RepackDirection::unpack}) {
        const RepackRate rate = measure_repack(recipe, layout, direction, static_cast<uint32_t>(samples));
        Record record = record_of(problem, direction_name(direction));
        record.workload = "repack";
        record.case_name = fmt::format("{} {} {} experts n={} k={}", format_name(recipe.format), problem.item,
                                       recipe.num_experts, recipe.n, recipe.k);
        record.routing.clear();
        record.config =
            fmt::format("code_word={},k_order={}", value_name(layout.code_word), value_name(layout.k_order));
        record.median_us = rate.median_us;
        record.best_us = rate.best_us;
        record.floor_us = rate.copy_median_us;  // a copy of as many bytes
        record.ratio = rate.copy_median_us / rate.median_us;
        record.gbps = rate.gbps();
        record.samples = rate.samples;
        report(record);
      }
    }
  }
}

void bench_jit(Arch arch, const std::optional<Config>& given, int samples, const std::function<bool()>& stopped,
               const Report& report) {
  const CacheFolder cache;
  const char* reason = nullptr;
  bool any = false;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const KernelKind kind :
         {KernelKind{dtype, false, Activation::none}, KernelKind{dtype, true, Activation::silu}}) {
      const Config config = given ? *given : default_config(kind, arch);
      if (const char* why = illegal_reason(config, arch, kind)) {
        reason = why;
        continue;
      }
      any = true;
      bench_compile(config, kind, arch, samples, cache, stopped, report);
    }
  }
  if (!any) throw InputError(fmt::format("the Config suits no kind of kernel on {}: {}", arch_name(arch), reason));
}

}  // namespace fulcrum::harness
