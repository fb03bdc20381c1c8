// `fulcrum models`: the public models that tune, verify and bench know by name, with the sizes of their GEMMs.
//
// Called by main through add_models(). Needs no GPU. Invariant: the table and --json come from the same problems that
// `tune --model` would tune.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/host/weights.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_verb.hpp"
#include "cli/verb_tuner.hpp"
#include "harness/models.hpp"

namespace fulcrum::cli {
namespace {

using namespace fulcrum::harness;

struct Line {
  const Model& model;
  Shape first, down;
  std::string first_item;
  uint64_t layer_bytes;  // packed, routed experts of one layer
};

Line line_of(const Model& model) {
  const std::vector<Problem> problems = model_problems(model, 1, {1});
  const Shape &first = problems[0].shape, &down = problems[1].shape;
  return {model, first, down, problems[0].item, packed_bytes(first) + packed_bytes(down)};
}

nlohmann::ordered_json or_null(std::optional<uint32_t> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json json_of(const Line& line) {
  const Model& model = line.model;
  return {{"model", model.name},
          {"also", model.also},
          {"experts", model.experts},
          {"top_k", model.top_k},
          {"hidden", model.hidden},
          {"input", or_null(model.latent)},
          {"intermediate", model.intermediate},
          {"shared_experts", model.shared_experts},
          {"shared_intermediate", or_null(model.shared_intermediate)},
          {"activation", model.activation},
          {"gated", model.gated},
          {"bias", model.bias},
          {"layers", or_null(model.layers)},
          {"moe_layers", or_null(model.moe_layers)},
          {"gemms",
           {{{"item", line.first_item}, {"n", line.first.n}, {"k", line.first.k}},
            {{"item", "down"}, {"n", line.down.n}, {"k", line.down.k}}}},
          {"layer_bytes", line.layer_bytes},
          {"tensor_parallel", legal_degrees(model)},
          {"nvfp4", model.nvfp4},
          {"source", model.source},
          {"note", model.note}};
}

void print_line(const Line& line) {
  const Model& model = line.model;
  fmt::print("{:<28} {:>7} {:>5}  {:<7} {:>5} x {:<5}  {:>5} x {:<5} {:>9.1f}  {:<10} {}\n", model.release(),
             model.experts, model.top_k, line.first_item, line.first.n, line.first.k, line.down.n, line.down.k,
             static_cast<double>(line.layer_bytes) / (1 << 20), fmt::format("{}", fmt::join(legal_degrees(model), ",")),
             model.activation);
}

int run(bool as_json) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  if (!as_json) {
    fmt::print("{:<28} {:>7} {:>5}  {:<21}  {:<13} {:>9}  {:<10} {}\n", "model", "experts", "top_k", "first GEMM n x k",
               "down n x k", "MiB/layer", "tp", "activation");
  }
  for (const Model& model : models()) {
    const Line line = line_of(model);
    if (as_json) {
      json.push_back(json_of(line));
    } else {
      print_line(line);
    }
  }
  if (as_json) fmt::print("{}\n", json.dump(2));
  return 0;
}

}  // namespace

void add_models(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("models", "Lists the models that --model takes, and their GEMMs");
  const auto as_json = std::make_shared<bool>(false);
  verb->add_flag("--json", *as_json, "print JSON, with everything that the list knows");
  verb->footer("MiB/layer is of packed routed experts; tp the tensor parallel degrees that --tp takes.");
  verb->callback([as_json, &exit_code] { exit_code = run_verb("models", [&] { return run(*as_json); }); });
}

}  // namespace fulcrum::cli
