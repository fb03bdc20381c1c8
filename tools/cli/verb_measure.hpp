// The verbs that measure or verify on a GPU: roof, probe, verify, bench.
//
// Called by main. Invariant: as the other verbs, each adds itself to `app` and sets exit_code when the user calls it;
// see run_verb.hpp for the codes.
#pragma once

#include <CLI/CLI.hpp>

namespace fulcrum::cli {

void add_roof(CLI::App& app, int& exit_code);
void add_probe(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);

}  // namespace fulcrum::cli
