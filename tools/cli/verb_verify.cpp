// `fulcrum verify`: every row of a table, one Config, or the GEMMs of a model, against the oracle on this GPU; Configs
// on the emulator too.
//
// Called by main through add_verify(). Invariant: what is wrong with the arguments is said before a GPU is looked for;
// a line a check is printed as it ends; one failure makes the exit code 2, and the rest still runs.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/run_verb.hpp"
#include "cli/verb_measure.hpp"
#include "harness/check.hpp"
#include "harness/input_error.hpp"
#include "harness/json_text.hpp"
#include "harness/jit_kernels.hpp"
#include "harness/measure.hpp"
#include "harness/variant_check.hpp"
#include "tuner/emulate.hpp"
#include "tuner/progress.hpp"

namespace fulcrum::cli {
namespace {

using namespace fulcrum::harness;

struct Options {
  std::string table;
  std::string config;
  ModelRequest model;  // no name: none
  std::string dtype = "both";
  bool emulate = false;
  bool json = false;
};

struct Outcome {
  std::string name;  // of the problem, or "small shapes"
  std::string config;
  std::string failure;  // empty: passed
  double rel_error = 0;
};

// A row's problem in one checkpoint format; its rows are tokens, or pairs for down.
Problem problem_of(const Row& row, CheckpointFormat format) {
  Problem problem;
  problem.shape = row.shape;
  // make_routing() refuses what is too large, so the end of the range is only kept from wrapping round
  const auto tokens = static_cast<uint32_t>(std::min<uint64_t>(row.tokens_last, UINT32_MAX));
  problem.routing = make_routing(parse_routing_spec(row.routing), {tokens, row.shape.experts, row.shape.top_k});
  problem.input_rows = row.shape.projection == Projection::down ? RowOrder::pair : RowOrder::token;
  problem.workload = "table";
  problem.case_name = fmt::format("{} tokens, {}", tokens, format_name(format));
  problem.item = fmt::format("{} n={} k={}", value_name(row.shape.projection), row.shape.n, row.shape.k);
  problem.format = format;
  problem.row_scales = true;
  problem.pair_weights = row.shape.projection == Projection::down;
  return problem;
}

std::string small_name(const KernelKind& kind, const char* size) {
  return fmt::format("{} shapes, {}{}{}", size, value_name(kind.dtype), kind.gate_up ? " gate_up" : "",
                     kind.activation == Activation::none ? "" : " silu");
}

// Prints each outcome as it comes, and all of them at the end.
class Outcomes {
 public:
  explicit Outcomes(bool json) : json_(json) {}

  void add(Outcome outcome) {
    if (!json_) {
      fmt::print("{}  {}  {}\n", outcome.failure.empty() ? "pass" : "FAIL", outcome.name,
                 outcome.failure.empty() ? outcome.config : outcome.failure);
      (void)std::fflush(stdout);
    }
    outcomes_.push_back(std::move(outcome));
  }

  int finish() const {
    size_t failed = 0;
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Outcome& outcome : outcomes_) {
      failed += outcome.failure.empty() ? 0 : 1;
      json.push_back({{"what", outcome.name},
                      {"config", outcome.config},
                      {"passed", outcome.failure.empty()},
                      {"failure", outcome.failure},
                      {"rel_error", outcome.rel_error}});
    }
    if (json_) {
      fmt::print("{}\n", json_text(json));
    } else {
      fmt::print("{} of {} checks passed\n", outcomes_.size() - failed, outcomes_.size());
    }
    return failed == 0 ? 0 : 2;
  }

 private:
  bool json_;
  std::vector<Outcome> outcomes_;
};

// Runs checks one after the other, each with memory of its own, and keeps what came of them.
class Verifier {
 public:
  explicit Verifier(bool json) : arch_(current_device().arch), outcomes_(json) {}

  void check_row(const Row& row) {
    check_small(row.config, kernel_kind(row.shape));
    for (const CheckpointFormat format : {CheckpointFormat::modelopt, CheckpointFormat::block36}) {
      if (format == CheckpointFormat::block36 && row.shape.k % 64 != 0) continue;
      if (format == CheckpointFormat::modelopt && read_in_place(row.config.code_word)) continue;
      check_problem(problem_of(row, format), row.config);
    }
  }

  void check_problem(const Problem& problem, const Config& config) {
    attempt({problem_name(problem), config_text(config), "", 0}, [&](Outcome& outcome) {
      ProblemOnDevice memory(problem);
      CompiledKernel compiled = compile_kernel(config, kernel_kind(problem.shape), arch_);
      const CheckResult result = check(memory, compiled.kernel);
      outcome.failure = result.what;
      outcome.rel_error = result.rel_error;
      require(unload_kernel(compiled.kernel));
    });
  }

  void check_small(const Config& config, const KernelKind& kind) {
    const std::string key = config_text(config) + jit::entry_name(config, kind);
    if (std::exchange(seen_[key], true)) return;
    attempt({small_name(kind, "small"), config_text(config), "", 0},
            [&](const Outcome& outcome) { check_variant(outcome.config.c_str(), kind); });
  }

  int finish() const { return outcomes_.finish(); }

 private:
  // An error of the GPU itself ends the run: nothing after it could be trusted. A refusal is a failure like another.
  template <class Check>
  void attempt(Outcome outcome, const Check& check_it) {
    try {
      check_it(outcome);
    } catch (const DeviceError& error) {
      if (error.code == Code::cuda || error.code == Code::foreign_cuda || error.code == Code::no_device) {
        fmt::print(stderr, "fulcrum verify: while checking {} with {}\n", outcome.name, outcome.config);
        throw;
      }
      outcome.failure = error.what();
    } catch (const std::exception& error) {
      outcome.failure = error.what();
    }
    outcomes_.add(std::move(outcome));
  }

  Arch arch_;
  std::map<std::string, bool> seen_;
  Outcomes outcomes_;
};

// The kinds that a Config can be compiled for, and why the last of the others is none.
struct LegalKinds {
  std::vector<KernelKind> kinds;
  const char* reason = "no such dtype";
};

LegalKinds find_legal_kinds(const Config& config, Arch arch, const std::string& dtype) {
  LegalKinds found;
  for (const DType type : {DType::f16, DType::bf16}) {
    if (dtype != "both" && dtype != value_name(type)) continue;
    for (const KernelKind kind : {KernelKind{type, false, Activation::none}, KernelKind{type, true, Activation::none},
                                  KernelKind{type, true, Activation::silu}}) {
      const char* why = illegal_reason(config, arch, kind);
      if (why == nullptr)
        found.kinds.push_back(kind);
      else
        found.reason = why;
    }
  }
  return found;
}

// Throws InputError when there is none.
std::vector<KernelKind> legal_kinds(const Config& config, Arch arch, const std::string& dtype) {
  LegalKinds found = find_legal_kinds(config, arch, dtype);
  if (found.kinds.empty()) throw InputError(fmt::format("this Config cannot run here: {}", found.reason));
  return std::move(found.kinds);
}

// Reads a Config; throws InputError for one that no architecture can run, before anybody looks for a GPU.
Config read_legal_config(const std::string& text, const std::string& dtype) {
  const Config config = read_config(text);
  const char* reason = nullptr;
  for (const int cc : supported_archs) {
    const LegalKinds found = find_legal_kinds(config, Arch{cc}, dtype);
    if (!found.kinds.empty()) return config;
    if (reason == nullptr) reason = found.reason;
  }
  throw InputError(fmt::format("this Config cannot run anywhere: {}", reason));
}

// Every kind on small shapes; then both workloads where their kind is among them.
void check_config(Verifier& verifier, const Config& config, const std::string& dtype) {
  const Arch arch = current_device().arch;
  for (const KernelKind& kind : legal_kinds(config, arch, dtype)) verifier.check_small(config, kind);
  for (const DType type : {DType::f16, DType::bf16}) {
    if (dtype != "both" && dtype != value_name(type)) continue;
    for (const auto& [workload, name] : {std::pair{"prefill", "2048"}, std::pair{"decode", "K3"}}) {
      for (const Problem& problem : workload_problems(workload, {name}, {}, type)) {
        const Problem own = with_checkpoint_for(problem, config);
        if (illegal_reason(config, arch, own) == nullptr) verifier.check_problem(own, config);
      }
    }
  }
}

// The model's GEMMs with one Config, or each with the built-in default of its kind.
void check_model(Verifier& verifier, const Options& options) {
  const Arch arch = current_device().arch;
  std::optional<Config> given;
  if (!options.config.empty()) {
    given = read_config(options.config);
    (void)legal_kinds(*given, arch, options.dtype);  // refuses what no kind can run
  }
  for (const DType type : {DType::f16, DType::bf16}) {
    if (options.dtype != "both" && options.dtype != value_name(type)) continue;
    for (const Problem& problem : model_problems(options.model, {}, type)) {
      const Config config = given ? *given : default_config(kernel_kind(problem.shape), arch);
      const Problem own = with_checkpoint_for(problem, config);
      if (illegal_reason(config, arch, own) == nullptr) verifier.check_problem(own, config);
    }
  }
}

Table read_usable_table(const std::string& path) {
  Table table = read_table(path);
  if (table.rows().empty()) throw InputError(path + " has no rows that this build can use");
  return table;
}

// Each piece of device code once; the emulator is an sm_90 device.
std::vector<tuner::CompileJob> emulator_jobs(const Options& options) {
  constexpr Arch arch{90};
  std::vector<tuner::CompileJob> jobs;
  std::set<std::string> seen;
  const auto add = [&](const Config& config, const KernelKind& kind) {
    if (seen.insert(jit::entry_name(config, kind)).second) jobs.push_back({without_run_levers(config), kind, arch});
  };
  if (!options.config.empty()) {
    const Config config = read_config(options.config);
    for (const KernelKind& kind : legal_kinds(config, arch, options.dtype)) add(config, kind);
  } else {
    const Table table = read_usable_table(options.table);
    for (const Row& row : table.rows()) add(row.config, kernel_kind(row.shape));
  }
  return jobs;
}

int run_emulated(const Options& options) {
  const std::vector<tuner::CompileJob> jobs = emulator_jobs(options);
  if (const std::string why = tuner::why_no_emulator(); !why.empty())
    throw InputError("the emulator cannot run here: " + why);
  Outcomes outcomes(options.json);
  tuner::Progress progress("emulator", jobs.size());
  const auto workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  size_t finished = 0;
  tuner::watch_interrupts();
  (void)tuner::emulate_all(jobs, workers, 0, [&](size_t index, const tuner::CompileOutcome& outcome) {
    progress.clear();
    outcomes.add({small_name(jobs[index].kind, "tiny"), config_text(jobs[index].config), outcome.why, 0});
    progress.update(++finished);
    return true;
  });
  if (finished < jobs.size()) fmt::print(stderr, "stopped after {} of {} variants\n", finished, jobs.size());
  const int code = outcomes.finish();
  return tuner::interrupted() ? 130 : code;
}

int run(const Options& options) {
  const bool has_model = !options.model.name.empty();
  if (!has_model && options.table.empty() == options.config.empty())
    throw InputError("give a table, --config and a Config, or --model and a name");
  if (has_model) (void)model_problems(options.model);  // a name or degree that cannot be, before the GPU is asked
  if (options.emulate) return run_emulated(options);
  if (has_model) {
    Verifier verifier(options.json);
    check_model(verifier, options);
    return verifier.finish();
  }
  if (!options.config.empty()) {
    const Config config = read_legal_config(options.config, options.dtype);
    Verifier verifier(options.json);
    check_config(verifier, config, options.dtype);
    return verifier.finish();
  }
  const Table table = read_usable_table(options.table);
  Verifier verifier(options.json);
  for (const Row& row : table.rows()) verifier.check_row(row);
  return verifier.finish();
}

}  // namespace

void add_verify(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("verify", "Runs a table's rows, a Config or a model against the oracle");
  const auto options = std::make_shared<Options>();
  CLI::Option* table = verb->add_option("table", options->table, "a table")->check(CLI::ExistingFile);
  add_config(verb, options->config, "a Config, as in tile_n=128,stages=4; levers not named are absent");
  CLI::Option* model = add_model(
      verb, options->model, "the GEMMs of a model of `fulcrum models`, at full size, with --config or the default");
  model->excludes(table);
  add_tokens(verb, options->model.tokens, "token counts of the model, 64 and 2048 by default")->needs(model);
  verb->add_option("--dtype", options->dtype, "f16, bf16 or both, with --config or --model")
      ->check(CLI::IsMember({"f16", "bf16", "both"}))
      ->capture_default_str()
      ->excludes(table);
  verb->add_flag("--emulate", options->emulate, "run the kernels on the CPU emulator, on tiny shapes; needs no GPU")
      ->excludes(model);
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer("Exit code: 0 all passed, 2 something differs from the oracle, 3 no GPU, 1 anything else.");
  verb->callback([options, &exit_code] { exit_code = run_verb("verify", [&] { return run(*options); }); });
}

}  // namespace fulcrum::cli
