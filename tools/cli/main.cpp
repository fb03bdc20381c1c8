// fulcrum: the command line tool. Describes the verbs to CLI11 and turns outcomes into exit codes.
//
// Exit codes of every verb: 0 done; 1 wrong usage or input, or the machine failed; 2 something was measured or verified
// and is wrong, or nothing was found; 3 there is no GPU and the verb needs one; 130 interrupted.
// Invariant: words for people go to stderr unless they are the verb's own output.
#include <fulcrum/core/macros.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

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
    if (std::fflush(stdout) == 0) return exit_code;
    fmt::print(stderr, "fulcrum: the output could not be written: {}\n", std::strerror(errno));
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fulcrum: {}\n", error.what());
    return 1;
  }
}
