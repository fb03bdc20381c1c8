// fulcrum: the command line tool. Describes the verbs to CLI11 and turns outcomes into exit codes.
//
// Exit codes of every verb: 0 done; 1 wrong usage or input, or the machine failed; 2 something was measured or verified
// and is wrong, or nothing was found; 3 there is no GPU and the verb needs one; 130 interrupted.
// Invariant: words for people go to stderr unless they are the verb's own output.
#include <fulcrum/core/macros.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/verb_measure.hpp"
#include "cli/verb_routing.hpp"
#include "cli/verb_tuner.hpp"

namespace {

constexpr const char* about =
    "Finds the best grouped-MoE GEMM kernel for NVFP4 weights on this GPU and this routing, and says why.";
constexpr const char* exit_codes =
    "Exit codes: 0 done; 1 wrong usage or input; 2 something is wrong or nothing was found; 3 no GPU where one is "
    "needed; "
    "130 interrupted.";

// Letters to insert, remove or replace to make one word of the other.
size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);  // of the first letters of `from`, to every beginning of `to`
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

// The verb that `word` is most like; empty when it is a verb itself.
std::string closest_verb(const CLI::App& app, const std::string& word) {
  std::string closest;
  size_t least = SIZE_MAX;
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (verb->get_name() == word) return "";
    const size_t distance = edit_distance(word, verb->get_name());
    if (verb->get_group().empty() || distance >= least) continue;  // without a group: hidden
    least = distance;
    closest = verb->get_name();
  }
  return closest;
}

// An empty value is a script's unset variable more often than a wish.
void refuse_empty_values(CLI::App& app) {
  const auto check = [](const std::string& text) {
    return text.empty() ? std::string("it is empty; leave the option out for its default") : std::string();
  };
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : verb->get_options())
      if (option->get_items_expected_max() > 0) option->check(check);
  }
}

int run(int argc, char** argv) {
  CLI::App app(about, "fulcrum");
  app.set_version_flag("--version", "fulcrum " FULCRUM_VERSION_TEXT);
  app.require_subcommand(1);
  app.footer(exit_codes);
  int exit_code = 0;
  fulcrum::cli::add_tune(app, exit_code);
  fulcrum::cli::add_probe(app, exit_code);
  fulcrum::cli::add_roof(app, exit_code);
  fulcrum::cli::add_bench(app, exit_code);
  fulcrum::cli::add_routing(app, exit_code);
  fulcrum::cli::add_verify(app, exit_code);
  fulcrum::cli::add_models(app, exit_code);
  fulcrum::cli::add_space(app, exit_code);
  fulcrum::cli::add_show(app, exit_code);
  fulcrum::cli::add_compile_worker(app, exit_code);
  refuse_empty_values(app);
  if (argc > 1 && argv[1][0] != '-') {
    if (const std::string closest = closest_verb(app, argv[1]); !closest.empty()) {
      fmt::print(stderr, "fulcrum: there is no verb '{}'; the closest is '{}', and --help lists them all\n", argv[1],
                 closest);
      return 1;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;  // 0 is --help and --version
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int exit_code = run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
    fmt::print(stderr, "fulcrum: the output could not be written: {}\n", std::strerror(errno));
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fulcrum: {}\n", error.what());
    return 1;
  }
}
