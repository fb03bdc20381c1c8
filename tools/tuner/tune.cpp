// The steps of a run in order. Invariant: see tune.hpp.
#include "tuner/tune.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <thread>

#include "harness/input_error.hpp"
#include "harness/jit_kernels.hpp"
#include "harness/record.hpp"
#include "harness/roofs.hpp"
#include "tuner/progress.hpp"
#include "tuner/steps.hpp"

namespace fulcrum::tuner {
namespace {

constexpr double gpu_budget_s = 240;
constexpr double model_budget_s = 60;
constexpr size_t gpu_top = 40;
constexpr size_t model_top = 3;
constexpr double compile_share = 0.35;  // of the budget, before the first launch
constexpr double model_compile_share = 0.75;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The GPU to tune on, unless there is none or another architecture is asked for.
void find_target(TuneRun& run) {
  std::optional<Device> device;
  try {
    device = harness::current_device();
  } catch (const harness::DeviceError& error) {
    if (error.code != Code::no_device) throw;
  }
  run.has_gpu = device && (!run.options.arch || run.options.arch->cc == device->arch.cc);
  if (run.has_gpu) {
    if (arch_name(device->arch) == nullptr) {
      throw harness::InputError(
          fmt::format("{} has compute capability {}, for which fulcrum has no kernels", device->name, device->arch.cc));
    }
    run.target = measured_target(*device, 0, 0);
  } else {
    run.target = named_target(run.options.arch.value_or(Arch{90}));
    fmt::print(stderr,
               "no {} GPU here: compiling for {} and ranking by the cost model of {}; rows are marked modelled\n",
               arch_name(run.target.device.arch), arch_name(run.target.device.arch), run.target.device.name);
  }
}

void set_defaults(TuneRun& run) {
  TuneOptions& options = run.options;
  if (options.budget_s <= 0) options.budget_s = run.has_gpu ? gpu_budget_s : model_budget_s;
  if (options.top == 0) options.top = run.has_gpu ? gpu_top : model_top;
  if (options.journal.empty()) options.journal = options.out + ".journal";
  run.pool.num_workers = options.jobs > 0 ? options.jobs : std::max(1, int(std::thread::hardware_concurrency()));
  run.date = harness::date_now();
  run.run_id = harness::gpu_file_name(run.target.device.name) + "-";
  std::copy_if(run.date.begin(), run.date.end(), std::back_inserter(run.run_id),
               [](char letter) { return letter != '-' && letter != ':'; });
  run.run_id += fmt::format("-{}", ::getpid());  // two runs may begin in one second and write one table
}

// Once the run is sure to do something: a request that is refused leaves no file.
void open_journal(TuneRun& run) {
  const TuneOptions& options = run.options;
  if (!run.journal.open(options.journal)) {
    fmt::print(stderr, "the journal {} cannot be written ({}), so there is none\n", options.journal,
               std::strerror(errno));
  }
  run.journal.write("run", {{"id", run.run_id},
                            {"gpu", std::string(run.target.device.name)},
                            {"measured", run.has_gpu},
                            {"budget_s", options.budget_s}});
}

// Workers and this process share compiled code through the cache, so there must be one: where the usual one cannot be
// written, a folder that is removed when the run ends, by an interrupt too.
class Cache {
 public:
  Cache() {
    const std::string folder = jit::cache_folder();
    if (!folder.empty() && make_folders(folder) && ::access(folder.c_str(), W_OK) == 0) return;
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    std::string name = (parent / "fulcrum-cache-XXXXXX").string();
    if (error || ::mkdtemp(name.data()) == nullptr) {
      throw harness::InputError(
          fmt::format("neither the cache of compiled code, '{}', nor a folder for temporary "
                      "files can be written; set FULCRUM_CACHE_DIR or TMPDIR",
                      folder));
    }
    temporary_ = name;
    fmt::print(stderr, "the cache '{}' cannot be written; using {} for this run\n", folder, temporary_);
    (void)::setenv("FULCRUM_CACHE_DIR", temporary_.c_str(), 1);
  }
  ~Cache() {
    if (temporary_.empty()) return;
    std::error_code ignored;
    std::filesystem::remove_all(temporary_, ignored);
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

 private:
  std::string temporary_;  // empty: the usual one is used
};

void measure_roofs(TuneRun& run) {
  if (run.has_gpu) {
    harness::RoofMeter meter;
    run.roofs = {meter.read().gbps(), meter.matrix().tflops, true};
    run.target = measured_target(run.target.device, run.roofs.read_gbps, run.roofs.matrix_tflops);
  }
  run.roofs.read_gbps = run.target.read_gbps;
  run.roofs.matrix_tflops = run.target.matrix_tflops;
  if (!run.has_gpu || run.options.records.empty()) return;
  // a run on a throttled GPU must not flatter itself: the best on record counts, less 2 %
  for (const harness::Record& record : harness::read_records(run.options.records)) {
    run.roofs.read_gbps = std::max(run.roofs.read_gbps, 0.98 * record.read_roof_gbps.value_or(0));
    run.roofs.matrix_tflops = std::max(run.roofs.matrix_tflops, 0.98 * record.matrix_roof_tflops.value_or(0));
  }
}

// Levers held still may leave nothing: then the default, which they exclude, must not be the answer.
void require_legal(const std::vector<std::pair<KernelKind, LegalSpace>>& spaces) {
  for (const auto& [kind, space] : spaces) {
    if (space.counts.legal > 0) continue;
    throw harness::InputError(fmt::format(
        "none of {} points with the levers held still is legal for {} rows{}: {}", space.counts.points,
        value_name(kind.dtype), kind.gate_up ? ", gate_up" : "",
        space.counts.reasons.empty() ? "the family is held to another" : space.counts.reasons.front().first));
  }
}

// The legal space of each kind of kernel once, then every cell's candidates, cells side by side.
void rank_cells(TuneRun& run) {
  std::vector<std::pair<KernelKind, LegalSpace>> spaces;
  for (const Cell& cell : run.cells) {
    const auto same = [&](const auto& each) { return each.first == cell.kind(); };
    if (std::find_if(spaces.begin(), spaces.end(), same) == spaces.end())
      spaces.emplace_back(cell.kind(), LegalSpace{});
  }
  Progress progress("cost model", spaces.size() + run.cells.size());
  std::atomic<size_t> next{0}, done{0};
  const auto in_parallel = [&](size_t count, const std::function<void(size_t)>& work) {
    next = 0;
    const auto loop = [&] {
      for (size_t index = next++; index < count && !interrupted(); index = next++) {
        work(index);
        ++done;
      }
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < std::min<int>(run.pool.num_workers, int(count)); ++i) threads.emplace_back(loop);
    for (size_t index = next++; index < count && !interrupted(); index = next++) {
      work(index);
      progress.update(++done);
    }
    for (std::thread& thread : threads) thread.join();
  };
  const Arch arch = run.target.device.arch;
  in_parallel(spaces.size(),
              [&](size_t index) { spaces[index].second = legal_space(arch, spaces[index].first, run.options.pins); });
  if (!interrupted()) require_legal(spaces);
  in_parallel(run.cells.size(), [&](size_t index) {
    Cell& cell = run.cells[index];
    const auto same = [&](const auto& each) { return each.first == cell.kind(); };
    const LegalSpace& space = std::find_if(spaces.begin(), spaces.end(), same)->second;
    const harness::Csr csr = harness::build_csr(cell.problem.routing, cell.problem.local());
    cell.model = std::make_unique<CostModel>(run.target, cell.problem.shape, csr, cell.problem.routing.tokens);
    cell.ranking = rank(space, *cell.model, cell.kind(), arch, run.options.top);
  });
  std::map<std::string, uint64_t> reasons;
  for (const auto& [kind, space] : spaces) {
    run.space.points += space.counts.points;
    run.space.legal += space.counts.legal;
    for (const auto& [reason, count] : space.counts.reasons) reasons[reason] += count;
  }
  run.space.reasons.assign(reasons.begin(), reasons.end());
  std::stable_sort(run.space.reasons.begin(), run.space.reasons.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const Cell& cell : run.cells) {
    run.space.would_spill = std::max<uint64_t>(run.space.would_spill, cell.ranking.would_spill);
    run.space.no_room = std::max<uint64_t>(run.space.no_room, cell.ranking.no_room);
  }
}

// Defaults first, then every cell's best, its second best and so on: whenever time ends, all cells have had a like
// share.
void compile_candidates(TuneRun& run) {
  const Arch arch = run.target.device.arch;
  const auto want = [&](Cell& cell, const Config& config) {
    Variant* variant = &run.variants.get(config, cell.kind(), arch);
    if (std::find(cell.candidates.begin(), cell.candidates.end(), variant) != cell.candidates.end()) return;
    cell.candidates.push_back(variant);
  };
  for (Cell& cell : run.cells) want(cell, cell.base());
  for (size_t place = 0; place < run.options.top * 2;
       ++place) {  // `best` holds a little more than top: layouts' shares
    for (Cell& cell : run.cells) {
      if (place < cell.ranking.best.size()) want(cell, cell.ranking.best[place].config);
    }
  }
  const std::vector<Variant*> wanted = run.variants.all();
  // without a GPU compiling is what the budget is for, however long a busy machine took to rank
  const double seconds = run.options.budget_s * (run.has_gpu ? compile_share : model_compile_share);
  Progress progress(fmt::format("compile, {} workers", run.pool.num_workers), wanted.size(), seconds);
  run.variants.compile(wanted, run.pool, seconds, [&](size_t done, const Variant& variant) {
    progress.update(done);
    run.journal.write("compiled", {{"config", config_text(variant.job.config)},
                                   {"ok", variant.outcome.ok},
                                   {"why", variant.outcome.why},
                                   {"registers", uint64_t{variant.outcome.registers}},
                                   {"spill_bytes", uint64_t{variant.outcome.spill_bytes}},
                                   {"seconds", variant.outcome.seconds}});
  });
  for (Cell& cell : run.cells) run.variants.readmit_spills(cell.candidates);
}

// Weights that the pins want read in place need such a checkpoint, and a shape that can have one.
void set_target(Cell& cell, Arch arch, const Pins& pins) {
  cell.arch = arch;
  const Config base = default_config(cell.kind(), arch, layout_of(with_pins(cell.base(), pins)));
  cell.problem = harness::with_checkpoint_for(std::move(cell.problem), base);
  if (!read_in_place(base.code_word)) return;
  if (const char* reason = harness::illegal_reason(base, arch, cell.problem))
    throw harness::InputError(fmt::format("{}: {}", harness::problem_name(cell.problem), reason));
}

}  // namespace

double TuneRun::seconds_used() const { return steady_seconds() - begin_s; }

int tune(const TuneOptions& options) {
  TuneRun run;
  run.options = options;
  run.begin_s = steady_seconds();
  watch_interrupts();
  if (!options.records.empty()) harness::append_records(options.records, {});  // better refused now than at the end
  run.cells = make_cells(options.cells);
  check_out(options.out);
  find_target(run);
  for (Cell& cell : run.cells) set_target(cell, run.target.device.arch, options.pins);
  set_defaults(run);
  const Cache cache;
  measure_roofs(run);
  if (!interrupted()) rank_cells(run);
  open_journal(run);
  if (!interrupted()) compile_candidates(run);
  const bool all_ranked =
      std::all_of(run.cells.begin(), run.cells.end(), [](const Cell& c) { return c.model != nullptr; });
  if (run.has_gpu) {
    if (!interrupted()) race_cells(run, [&] { write_table(run); });
  } else if (all_ranked) {
    model_cells(run);
    if (!interrupted()) emulate_best(run);
  }
  write_table(run);
  if (run.has_gpu) write_records(run);
  print_summary(run);
  if (interrupted()) return 130;
  const bool complete =
      std::all_of(run.cells.begin(), run.cells.end(), [](const Cell& c) { return c.result.has_value(); });
  return complete && !run.failed_check ? 0 : 2;
}

}  // namespace fulcrum::tuner
