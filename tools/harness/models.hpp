// Public MoE models by name: their dimensions, and a layer's two GEMMs as problems.
//
// Called by the verbs models, tune, verify and bench, and by the tests. The list is models.tsv beside this file, which
// the build renders into the binary; its first lines say where it comes from.
// Invariant: a name means the same model everywhere, and what model_problems() returns every default kernel can run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/problem.hpp"

namespace fulcrum::harness {

struct Model {
  std::string name;               // owner/release
  std::vector<std::string> also;  // other releases of the same shape, without their owner
  uint32_t hidden = 0;
  std::optional<uint32_t> latent;  // row length of the tokens that experts read, where it is known
  uint32_t intermediate = 0;       // of one expert
  uint32_t experts = 0;
  uint32_t top_k = 0;
  uint32_t shared_experts = 0;
  std::optional<uint32_t> shared_intermediate;  // of all shared experts together
  std::string activation;
  bool gated = true;
  bool bias = false;
  std::optional<uint32_t> layers, moe_layers;
  std::string nvfp4;  // where NVFP4 weights are published
  std::string source, note;

  std::string release() const { return name.substr(name.find('/') + 1); }
  uint32_t input() const { return latent.value_or(hidden); }
};

// All of them, in the order of the file.
const std::vector<Model>& models();

// Reads a list; throws InputError "<where>:<line>: ..." for a wrong header, a missing column or a word for a number.
std::vector<Model> read_models(std::string_view text, const std::string& where);

// By name, by release without its owner, or by the beginning of one model's names alone; capitals do not matter. Throws
// InputError that names the closest, or the models between which the name does not decide.
const Model& find_model(std::string_view name);

inline constexpr std::array<uint32_t, 4> tensor_parallel_degrees{1, 2, 4, 8};

// A rank's part of the intermediate size. Throws InputError for a degree that is none of the four, and where the part
// is no multiple of 16: the 16 columns of down that share a scale cannot go to two ranks.
uint32_t rank_intermediate(const Model& model, uint32_t tensor_parallel);

// The degrees that rank_intermediate() takes.
std::vector<uint32_t> legal_degrees(const Model& model);

// A model as a user asks for it. The token counts are one of decoding and one of prefill.
struct ModelRequest {
  std::string name;
  uint32_t tensor_parallel = 1;
  std::vector<uint32_t> tokens = {64, 2048};
};

// A walk over many models: all of the list, or those named.
struct SweepRequest {
  std::vector<std::string> only;  // empty: all that the degree can cut
  uint32_t tensor_parallel = 1;
  std::vector<uint32_t> tokens = ModelRequest{}.tokens;
};

// gate_up (`up` for a model without a gate) and down at each token count, on one rank of a tensor parallel group, which
// has all experts. bf16 rows and the routing `uniform` unless others are given. Kernels have SiLU: it stands in for
// other gated activations, which cost about as much; that of a model without a gate is left out. Throws InputError.
std::vector<Problem> model_problems(const ModelRequest& request, std::string_view routing = {},
                                    std::optional<DType> dtype = {});

// The same for a model that need not be in the list.
std::vector<Problem> model_problems(const Model& model, uint32_t tensor_parallel, const std::vector<uint32_t>& tokens,
                                    std::string_view routing = {}, std::optional<DType> dtype = {});

// model_problems() of each model in turn. Throws InputError for a degree that is none of the four, and for a named
// model that it cannot cut.
std::vector<Problem> sweep_problems(const SweepRequest& request, std::string_view routing = {},
                                    std::optional<DType> dtype = {});

}  // namespace fulcrum::harness
