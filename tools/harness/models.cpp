// Reads the list of models, finds one by what a user calls it, and makes its problems.
//
// Called by the verbs and the tests. Invariant: see models.hpp; one table of columns serves header and reading.
#include "harness/models.hpp"

#include <fulcrum/core/nvfp4.h>
#include <fulcrum/host/table_text.hpp>
#include <fulcrum_models.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <numeric>
#include <utility>
#include <variant>

#include "harness/input_error.hpp"
#include "harness/workload.hpp"

namespace fulcrum::harness {
namespace {

constexpr size_t most_named = 5;   // models in an error
constexpr size_t num_closest = 3;  // of them, when none fits

using Member = std::variant<std::string Model::*, uint32_t Model::*, bool Model::*, std::optional<uint32_t> Model::*,
                            std::vector<std::string> Model::*>;

struct Column {
  const char* name;
  Member member;
};

const Column columns[] = {
    {"model", &Model::name},
    {"also", &Model::also},
    {"hidden", &Model::hidden},
    {"input", &Model::latent},
    {"intermediate", &Model::intermediate},
    {"experts", &Model::experts},
    {"top_k", &Model::top_k},
    {"shared_experts", &Model::shared_experts},
    {"shared_intermediate", &Model::shared_intermediate},
    {"activation", &Model::activation},
    {"gated", &Model::gated},
    {"bias", &Model::bias},
    {"layers", &Model::layers},
    {"moe_layers", &Model::moe_layers},
    {"nvfp4", &Model::nvfp4},
    {"source", &Model::source},
    {"note", &Model::note},
};

bool read_number(const std::string& text, uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// False when the text is not what the column holds.
struct ReadColumn {
  Model& model;
  const std::string& text;

  bool operator()(std::string Model::*member) const {
    model.*member = text;
    return true;
  }
  bool operator()(uint32_t Model::*member) const { return read_number(text, model.*member); }
  bool operator()(bool Model::*member) const {
    model.*member = text == "1";
    return text == "0" || text == "1";
  }
  bool operator()(std::optional<uint32_t> Model::*member) const {
    return text.empty() || read_number(text, (model.*member).emplace());
  }
  bool operator()(std::vector<std::string> Model::*member) const {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find("; ", begin), text.size());
      (model.*member).push_back(text.substr(begin, end - begin));
      begin = end + 2;
    }
    return true;
  }
};

Model read_model(const std::string& line, const std::string& where) {
  const std::vector<std::string> parts = detail::split(line, '\t');
  if (parts.size() != std::size(columns))
    throw InputError(fmt::format("{}: a model has {} columns, this line {}", where, std::size(columns), parts.size()));
  Model model;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!std::visit(ReadColumn{model, parts[i]}, columns[i].member))
      throw InputError(fmt::format("{}: '{}' cannot be the {} of a model", where, parts[i], columns[i].name));
  }
  return model;
}

std::string lower(std::string_view text) {
  std::string result;
  for (const char letter : text) result += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return result;
}

// Everything that a model is called, in small letters.
std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names{lower(model.name), lower(model.release())};
  for (const std::string& other : model.also) names.push_back(lower(other));
  return names;
}

// Letters to insert, delete or replace until one text is the other (Levenshtein, 1966).
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);  // [prefix of b], for the prefix of a so far
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

std::vector<std::string> closest_releases(const std::string& name) {
  std::vector<std::pair<size_t, std::string>> order;
  for (const Model& model : models()) {
    size_t distance = ~size_t{0};
    for (const std::string& known : names_of(model)) distance = std::min(distance, edit_distance(name, known));
    order.emplace_back(distance, model.release());
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> closest;
  for (size_t i = 0; i < num_closest; ++i) closest.push_back(order[i].second);
  return closest;
}

void check_degree(uint32_t tensor_parallel) {
  const auto& degrees = tensor_parallel_degrees;
  if (std::find(degrees.begin(), degrees.end(), tensor_parallel) == degrees.end())
    throw InputError(fmt::format("tensor parallel {} is not one of {}", tensor_parallel, fmt::join(degrees, ", ")));
}

bool divides(uint32_t degree, const Model& model) { return model.intermediate % (degree * scale_group) == 0; }

}  // namespace

const std::vector<Model>& models() {
  static const std::vector<Model> all = read_models(models_text, "models.tsv");
  return all;
}

std::vector<Model> read_models(std::string_view text, const std::string& where) {
  std::string header;
  for (const Column& column : columns) header += fmt::format("{}{}", header.empty() ? "" : "\t", column.name);
  std::vector<Model> all;
  bool has_header = false;
  const std::vector<std::string> lines = detail::split(std::string(text), '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty() || lines[i][0] == '#') continue;
    const std::string here = fmt::format("{}:{}", where, i + 1);
    if (has_header) {
      all.push_back(read_model(lines[i], here));
    } else if (lines[i] == header) {
      has_header = true;
    } else {
      throw InputError(fmt::format("{}: this is not the header of a list of models; it begins with '{}'", here,
                                   lines[i].substr(0, 40)));
    }
  }
  return all;
}

const Model& find_model(std::string_view name) {
  const std::string wanted = lower(name);
  std::vector<const Model*> begun;
  for (const Model& model : models()) {
    bool begins = false;
    for (const std::string& known : names_of(model)) {
      if (known == wanted) return model;
      begins = begins || known.rfind(wanted, 0) == 0;
    }
    if (begins) begun.push_back(&model);
  }
  if (begun.size() == 1) return *begun.front();
  if (begun.empty()) {
    throw InputError(fmt::format("there is no model '{}'; the closest are {}, and `fulcrum models` lists all", name,
                                 fmt::join(closest_releases(wanted), ", ")));
  }
  std::vector<std::string> releases;
  for (const Model* model : begun) releases.push_back(model->release());
  const size_t more = begun.size() - std::min(begun.size(), most_named);
  releases.resize(begun.size() - more);
  throw InputError(fmt::format("'{}' begins the names of {}{}; give more of one", name, fmt::join(releases, ", "),
                               more > 0 ? fmt::format(" and {} more", more) : ""));
}

uint32_t rank_intermediate(const Model& model, uint32_t tensor_parallel) {
  check_degree(tensor_parallel);
  if (!divides(tensor_parallel, model)) {
    throw InputError(fmt::format(
        "tensor parallel {} cuts the intermediate size {} of {} into {}, which is no multiple of the {} columns that "
        "share a scale; it may be {}",
        tensor_parallel, model.intermediate, model.release(), static_cast<double>(model.intermediate) / tensor_parallel,
        scale_group, fmt::join(legal_degrees(model), ", ")));
  }
  return model.intermediate / tensor_parallel;
}

std::vector<uint32_t> legal_degrees(const Model& model) {
  std::vector<uint32_t> legal;
  for (const uint32_t degree : tensor_parallel_degrees)
    if (divides(degree, model)) legal.push_back(degree);
  return legal;
}

std::vector<Problem> model_problems(const ModelRequest& request, std::string_view routing, std::optional<DType> dtype) {
  return model_problems(find_model(request.name), request.tensor_parallel, request.tokens, routing, dtype);
}

std::vector<Problem> model_problems(const Model& model, uint32_t tensor_parallel, const std::vector<uint32_t>& tokens,
                                    std::string_view routing, std::optional<DType> dtype) {
  const Workload layer{"models",
                       model.input(),
                       rank_intermediate(model, tensor_parallel),
                       model.experts,
                       {0, model.experts},
                       model.top_k,
                       DType::bf16,
                       RoutingKind::uniform,
                       {},
                       model.gated,
                       model.bias};
  const std::string rank = tensor_parallel > 1 ? fmt::format(" tp{}", tensor_parallel) : "";
  std::vector<Problem> problems;
  for (const uint32_t count : tokens) {
    const std::string name = fmt::format("{}{} {}", model.release(), rank, count);
    for (Problem& problem : layer_problems(layer, name, count, routing, dtype)) problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<Problem> sweep_problems(const SweepRequest& request, std::string_view routing, std::optional<DType> dtype) {
  check_degree(request.tensor_parallel);
  std::vector<const Model*> asked;
  for (const std::string& name : request.only) asked.push_back(&find_model(name));
  if (asked.empty()) {
    for (const Model& model : models())
      if (divides(request.tensor_parallel, model)) asked.push_back(&model);
  }
  std::vector<Problem> problems;
  for (const Model* model : asked) {
    for (Problem& problem : model_problems(*model, request.tensor_parallel, request.tokens, routing, dtype))
      problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace fulcrum::harness
