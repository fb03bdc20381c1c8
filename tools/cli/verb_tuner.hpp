// The verbs of the tuner: tune, models, space, show, and the hidden one that compile workers run.
//
// Called by main. Invariant: as the other verbs, each adds itself to `app` and sets exit_code when the user calls it;
// see run_verb.hpp for the codes.
#pragma once

#include <CLI/CLI.hpp>

namespace fulcrum::cli {

void add_tune(CLI::App& app, int& exit_code);
void add_models(CLI::App& app, int& exit_code);
void add_space(CLI::App& app, int& exit_code);
void add_show(CLI::App& app, int& exit_code);
void add_compile_worker(CLI::App& app, int& exit_code);

}  // namespace fulcrum::cli
