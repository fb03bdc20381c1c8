// `fulcrum tune`, and the compile workers that it starts.
//
// Called by main. Invariant: everything that can be wrong about the arguments is said before anything is compiled.
#include <memory>
#include <string>

#include "cli/arguments.hpp"
#include "cli/run_verb.hpp"
#include "cli/verb_tuner.hpp"
#include "harness/input_error.hpp"
#include "tuner/compile_job.hpp"
#include "tuner/tune.hpp"

namespace fulcrum::cli {
namespace {

using harness::InputError;
using tuner::OwnShape;
using tuner::TuneOptions;

// Flags that were given decide whether the workloads, the user's shape or a model is tuned.
struct Options {
  TuneOptions tune;
  OwnShape own;
  harness::ModelRequest model;
  std::vector<uint32_t> tokens;  // of the shape or the model
  std::vector<CLI::Option*> workload_flags, own_flags;
  CLI::Option* model_flag = nullptr;
  CLI::Option* tokens_flag = nullptr;
};

void take_model(Options& options) {
  if (!options.tokens.empty()) options.model.tokens = options.tokens;
  options.tune.cells.model = options.model;
}

// The user's own shape is whole or absent.
void take_own_shape(Options& options) {
  bool any = options.tokens_flag->count() > 0;
  for (const CLI::Option* flag : options.own_flags) any = any || flag->count() > 0;
  if (!any) return;
  for (const CLI::Option* flag : options.workload_flags) {
    if (flag->count() > 0)
      throw InputError(
          fmt::format("{} is of the workloads, and --n, --k, --tokens and their like are a shape of your own: give one "
                      "or the other",
                      flag->get_name()));
  }
  OwnShape& own = options.own;
  own.tokens = options.tokens;
  if (own.n == 0 || own.k == 0 || own.experts == 0 || own.top_k == 0 || own.tokens.empty()) {
    throw InputError("a shape of your own needs --n, --k, --experts, --top-k and --tokens together");
  }
  if (own.first_expert >= own.experts)
    throw InputError(fmt::format("--first-expert {} must be below the {} experts", own.first_expert, own.experts));
  if (own.local_experts > own.experts - own.first_expert) {
    throw InputError(fmt::format("--first-expert {} and --local-experts {} reach past the {} experts", own.first_expert,
                                 own.local_experts, own.experts));
  }
  options.tune.cells.own = own;
}

void add_own_shape(CLI::App* verb, Options& options) {
  OwnShape& own = options.own;
  const char* group = "A shape of your own, in place of the workloads";
  options.own_flags = {
      verb->add_option("--n", own.n, "rows of the packed weight: outputs, twice the intermediate size for gate_up"),
      verb->add_option("--k", own.k, "reduction: the row length of tokens"),
      verb->add_option("--experts", own.experts, "experts of the global id space"),
      verb->add_option("--local-experts", own.local_experts, "experts of this rank; 0: all from the first on"),
      verb->add_option("--first-expert", own.first_expert, "first expert of this rank"),
      verb->add_option("--top-k", own.top_k, "experts per token")->check(CLI::Range(1, 32))};
  options.own_flags.push_back(
      add_projection(verb, own.projection, "plain (the default), gate_up (with SiLU) or down (one row a pair)"));
  for (CLI::Option* flag : options.own_flags) flag->group(group);
}

// After the flags that a model takes the place of.
void add_own_model(CLI::App* verb, Options& options) {
  options.tokens_flag =
      add_tokens(verb, options.tokens, "token counts of the shape or the model; 64 and 2048 for a model");
  options.model_flag = add_model(verb, options.model, "a model of `fulcrum models`, in place of the workloads");
  for (const std::vector<CLI::Option*>* flags : {&options.workload_flags, &options.own_flags})
    for (CLI::Option* flag : *flags) options.model_flag->excludes(flag);
}

}  // namespace

void add_tune(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "tune",
      "Finds the best Config for every cell of a workload and writes a table; without a GPU, by the cost model");
  const auto options = std::make_shared<Options>();
  TuneOptions& tune = options->tune;
  tuner::CellRequest& cells = tune.cells;
  options->workload_flags = {
      verb->add_option("--workload", cells.workloads, "prefill, decode or both, separated by commas")
          ->delimiter(',')
          ->check(CLI::IsMember({"prefill", "decode"}))
          ->capture_default_str(),
      verb->add_option("--cases", cells.cases,
                       "cases of the workload, separated by commas: 512, K3 ...; all of them by default")
          ->delimiter(',')};
  verb->add_option("--routing", cells.routing,
                   "probe, receipt, decode, uniform, one_hot or trace:PATH[:layer=L][:seed=S][:runs=R]; the workload's "
                   "own by default, uniform for a shape or a model");
  add_dtype(verb, cells.dtype, "f16 or bf16; by default f16 for prefill and a shape, bf16 for decode and a model");
  add_arch(verb, tune.arch, "architecture to tune for; another than the GPU's compiles and models only");
  verb->add_option("--budget", tune.budget_s, "seconds for the whole run; 240 by default, 60 without a GPU")
      ->check(CLI::Range(1.0, 86400.0))
      ->check(
          [](const std::string& text) { return text.find_first_of("nN") == std::string::npos ? "" : "not a number"; });
  verb->add_option("--out", tune.out, "the table; rows of an earlier one that are not tuned again stay")
      ->capture_default_str();
  verb->add_option("--records", tune.records, "append the winners' measurements to this file, bench/results/<gpu>.tsv");
  verb->add_option(
      "--journal", tune.journal,
      "what was done, one line of JSON an event, added to this file; the table's name + .journal by default");
  verb->add_flag("--json", tune.json, "print JSON");
  verb->add_option("--jobs", tune.jobs, "compile workers; one a core by default")->check(CLI::Range(1, 256));
  verb->add_option("--top", tune.top, "candidates to compile for each cell; 40 by default, 3 without a GPU")
      ->check(CLI::Range(1, 10000));
  add_own_shape(verb, *options);
  add_own_model(verb, *options);
  add_lever_flags(verb, tune.pins);
  verb->footer(
      "Exit codes: 0 every cell has its row; 1 wrong usage or input; 2 a cell has none, or a default is wrong; 130 "
      "interrupted, with what is known in the table.");
  verb->callback([options, &exit_code] {
    exit_code = run_verb("tune", [&] {
      if (options->model_flag->count() > 0) {
        take_model(*options);
      } else {
        take_own_shape(*options);
      }
      return tuner::tune(options->tune);
    });
  });
}

void add_compile_worker(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("compile-worker", "Answers compile jobs on stdin; tune starts these");
  verb->group("");  // hidden
  verb->callback([&exit_code] { exit_code = tuner::run_compile_worker(); });
}

}  // namespace fulcrum::cli
