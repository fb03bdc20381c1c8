// `fulcrum bench`: writes the record of benchmarks, one question a call. For maintainers; not in the list of verbs.
//
// Called by main through add_bench(). Invariant: a line is appended to the results as soon as it is measured, so an
// interrupted call keeps what it has; see bench/README.md for the columns.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/run_verb.hpp"
#include "cli/verb_measure.hpp"
#include "harness/bench.hpp"
#include "harness/input_error.hpp"
#include "tuner/progress.hpp"

namespace fulcrum::cli {
namespace {

using namespace fulcrum::harness;

struct Options {
  std::string what;
  std::string table;
  std::string config;
  std::string results;  // empty: print only
  std::vector<std::string> cases;
  SweepRequest sweep;
  bool resume = false;
  std::string routing;
  std::string dtype;
  int samples = 40;
};

std::string number(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

// Once, before the first record: what is refused prints no table.
void print_heading() {
  static bool printed = false;
  if (std::exchange(printed, true)) return;
  fmt::print("{:<43} {:<12} {:<5} {:>11} {:>11} {:>9} {:>10} {:>7} {:>8} {:>8} {:>10}\n", "case", "item", "dtype",
             "median us", "best us", "+- us", "floor us", "ratio", "TFLOP/s", "GB/s", "rel error");
}

void print_record(const Record& record) {
  fmt::print("{:<43} {:<12} {:<5} {:>11} {:>11} {:>9} {:>10} {:>7} {:>8} {:>8} {:>10}\n",
             record.workload + " " + record.case_name, record.item, record.dtype, number(record.median_us, 2),
             number(record.best_us, 2), number(record.ci_us, 2), number(record.floor_us, 2), number(record.ratio, 3),
             number(record.tflops, 1), number(record.gbps, 0),
             record.rel_error ? fmt::format("{:.2e}", *record.rel_error) : "-");
  (void)std::fflush(stdout);
}

// A cell that is left out costs a line on stderr, and what was measured stays.
int run_sweep(const BenchRequest& request, const Report& report) {
  tuner::watch_interrupts();
  std::optional<tuner::Progress> progress;
  SweepEvents events;
  events.before = [&](size_t done, size_t total, const Problem& next) {
    if (!progress) progress.emplace(request.workload, total);
    progress->update(done, next.case_name + " " + next.item);
    return !tuner::interrupted();
  };
  events.left_out = [&](const Problem& problem, const std::string& why) {
    progress->clear();
    fmt::print(stderr, "left out: {}: {}\n", problem_name(problem), why);
  };
  const size_t num_wrong = bench_sweep(request, events, [&](const Record& record) {
    progress->clear();
    report(record);
  });
  if (tuner::interrupted()) return 130;
  return num_wrong == 0 ? 0 : 2;
}

// The GPU's architecture; without a GPU that of the machines on record.
Arch arch_at_hand() {
  const Result<Device> device = query_device(0);
  return device.ok() ? device->arch : Arch{90};
}

int run(const Options& options) {
  BenchRequest request;
  if (!options.results.empty()) request.history = read_records(options.results);
  if (!options.config.empty()) request.config = read_config(options.config);
  if (!options.results.empty()) append_records(options.results, {});  // better refused now than after a measurement
  const Report report = [&](const Record& record) {
    print_heading();
    print_record(record);
    if (!options.results.empty()) append_records(options.results, {record});
  };
  if (options.what == "jit") {
    tuner::watch_interrupts();
    bench_jit(arch_at_hand(), request.config, options.samples, tuner::interrupted, report);
    if (tuner::interrupted()) return 130;
  } else if (options.what == "repack") {
    bench_repack(options.samples, report);
  } else {
    request.workload = options.what;
    request.cases = options.cases;
    request.routing = options.routing;
    if (!options.dtype.empty()) request.dtype = options.dtype == "bf16" ? DType::bf16 : DType::f16;
    if (!options.table.empty()) request.table = read_table(options.table);
    request.samples = options.samples;
    request.sweep = options.sweep;
    request.resume = options.resume;
    if (options.what == "models" || options.what == "growth") return run_sweep(request, report);
    bench_workload(request, report);
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("bench", "Measures one question and appends its record");
  verb->group("");  // hidden
  const auto options = std::make_shared<Options>();
  verb->add_option("what", options->what, "prefill, decode, models, growth, repack or jit")
      ->required()
      ->check(CLI::IsMember({"prefill", "decode", "models", "growth", "repack", "jit"}));
  verb->add_option("--table", options->table, "Configs of this table; without one the built-in default")
      ->check(CLI::ExistingFile);
  verb->add_option("--config", options->config, "one Config everywhere; levers not named are absent")
      ->excludes("--table");
  CLI::Option* results = verb->add_option("--results", options->results,
                                          "the file to append to, bench/results/<gpu>.tsv; without one only print");
  CLI::Option* table_option = verb->get_option("--table");
  CLI::Option* cases =
      verb->add_option("--cases", options->cases, "cases of the workload, separated by commas; all when left out")
          ->delimiter(',');
  SweepRequest& sweep = options->sweep;
  const std::vector<CLI::Option*> of_models = {
      verb->add_option("--only", sweep.only, "these models, separated by commas; all when left out")->delimiter(','),
      add_tensor_parallel(verb, sweep.tensor_parallel),
      add_tokens(verb, sweep.tokens, "token counts of models, 64 and 2048 by default"),
  };
  for (CLI::Option* option : of_models) option->group("Of models");
  CLI::Option* resume = verb->add_flag("--resume", options->resume,
                                       "of models and growth: leave out what --results has with the same Config")
                            ->needs(results);
  CLI::Option* routing = verb->add_option("--routing", options->routing, "another routing than the workload's own");
  CLI::Option* dtype = verb->add_option("--dtype", options->dtype, "f16 or bf16; the workload's own when left out")
                           ->check(CLI::IsMember({"f16", "bf16"}));
  verb->add_option("--samples", options->samples, "samples of each figure")
      ->check(CLI::Range(3, 10000))
      ->capture_default_str();
  const std::vector<CLI::Option*> of_gemms = {table_option, routing, dtype};
  verb->callback([options, of_models, of_gemms, cases, resume, &exit_code] {
    exit_code = run_verb("bench", [&] {
      const std::string& what = options->what;
      for (const CLI::Option* option : of_models)
        if (what != "models" && option->count() > 0)
          throw InputError(option->get_name() + " belongs to `bench models`");
      if (what != "models" && what != "growth" && resume->count() > 0)
        throw InputError("--resume belongs to `bench models` and `bench growth`");
      if (what != "prefill" && what != "decode" && cases->count() > 0)
        throw InputError("--cases belongs to `bench prefill` and `bench decode`");
      for (const CLI::Option* option : of_gemms)
        if ((what == "jit" || what == "repack") && option->count() > 0)
          throw InputError(fmt::format("{} does not belong to `bench {}`", option->get_name(), what));
      if (what == "repack" && !options->config.empty()) throw InputError("--config does not belong to `bench repack`");
      return run(*options);
    });
  });
}

}  // namespace fulcrum::cli
