// `fulcrum routing`: statistics of a routing, without a GPU.
//
// Called by main. Invariant: as the other verbs, it adds itself to `app` and sets exit_code when the user calls it.
#pragma once

#include <CLI/CLI.hpp>

namespace fulcrum::cli {

// Adds the verb to `app`. When the user calls it, exit_code becomes 0, or 1 after one sentence on stderr.
void add_routing(CLI::App& app, int& exit_code);

}  // namespace fulcrum::cli
