// Arguments that several verbs take: architectures, types, models, token counts, and one flag per lever, made from
// levers.def.
//
// Called by the verbs when they describe themselves to CLI11.
// Invariant: a value that is refused is refused while arguments are parsed, with what would have been right.
#pragma once

#include <CLI/CLI.hpp>
#include <fulcrum/core/config.h>
#include <fulcrum/core/shape.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/models.hpp"
#include "tuner/space.hpp"

namespace fulcrum::cli {

// --arch: sm_90a, sm_90, 90a or 90.
CLI::Option* add_arch(CLI::App* verb, std::optional<Arch>& arch, const std::string& words);

// --dtype: f16 or bf16.
CLI::Option* add_dtype(CLI::App* verb, std::optional<DType>& dtype, const std::string& words);

// --projection: plain, gate_up or down.
CLI::Option* add_projection(CLI::App* verb, Projection& projection, const std::string& words);

// --model and --tp. Whether a model is asked for is the option's count().
CLI::Option* add_model(CLI::App* verb, harness::ModelRequest& model, const std::string& words);

// --tp: 1, 2, 4 or 8.
CLI::Option* add_tensor_parallel(CLI::App* verb, uint32_t& degree);

// --tokens: counts separated by commas.
CLI::Option* add_tokens(CLI::App* verb, std::vector<uint32_t>& tokens, const std::string& words);

// --config: one Config as text, which may not be empty.
CLI::Option* add_config(CLI::App* verb, std::string& config, const std::string& words);

// --tile-n, --stages, --copy ...: each holds one lever still.
void add_lever_flags(CLI::App* verb, tuner::Pins& pins);

// Sets what is pinned in `config`.
void apply_pins(const tuner::Pins& pins, Config& config);

}  // namespace fulcrum::cli
