// Problems of a layer, of the two reference workloads, and their sizes.
//
// Called by the verbs, the tuner, bench and the tests. Invariant: see problem.hpp.
#include "harness/problem.hpp"

#include <fulcrum/core/layout.h>
#include <fulcrum/core/rules.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/input_error.hpp"
#include "harness/routing_stats.hpp"
#include "harness/workload.hpp"

namespace fulcrum::harness {
namespace {

const Workload& workload_called(std::string_view name) {
  if (const Workload* workload = find_workload(name)) return *workload;
  throw InputError(fmt::format("workload '{}' is not one of prefill, decode", name));
}

// A case's tokens: by name, or for prefill any count.
uint32_t case_tokens(const Workload& workload, std::string_view name) {
  for (const WorkloadCase& each : workload.cases)
    if (each.name == name) return each.tokens;
  uint32_t tokens = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), tokens);
  const bool is_number = error == std::errc{} && end == name.data() + name.size();
  if (is_number && workload.name == "prefill" && tokens >= 1 && tokens <= most_tokens) return tokens;
  throw InputError(fmt::format("'{}' is not a case of {}: {}", name, workload.name,
                               workload.name == "prefill" ? "give a token count, 1 to 131,072" : "K0, K1, K3, K4, K7"));
}

// A problem of the workload but for n, k, the projection and the item's name.
Problem base_problem(const Workload& workload, std::string_view case_name, uint32_t tokens, std::string_view routing,
                     std::optional<DType> dtype) {
  RoutingSpec spec;
  spec.kind = workload.routing;
  if (!routing.empty()) spec = parse_routing_spec(routing);
  Problem problem;
  problem.routing = make_routing(spec, {tokens, workload.experts, workload.top_k});
  problem.shape.experts = workload.experts;
  problem.shape.local_experts = workload.local.count;
  problem.shape.first_expert = workload.local.first;
  problem.shape.top_k = workload.top_k;
  problem.shape.dtype = dtype.value_or(workload.dtype);
  problem.workload = workload.name;
  problem.case_name = case_name;
  const bool prefill = workload.name == "prefill";
  problem.format = prefill ? CheckpointFormat::block36 : CheckpointFormat::modelopt;
  problem.row_scales = prefill;
  problem.bias = workload.bias;
  return problem;
}

Problem projection_of(Problem problem, std::string_view item, Projection projection, uint32_t n, uint32_t k) {
  problem.item = item;
  problem.shape.projection = projection;
  problem.shape.n = n;
  problem.shape.k = k;
  const bool gate_up = projection == Projection::gate_up;
  problem.shape.activation = gate_up ? Activation::silu : Activation::none;
  problem.input_rows = projection == Projection::down ? RowOrder::pair : RowOrder::token;
  problem.output_rows = RowOrder::pair;
  return problem;
}

}  // namespace

ProblemSize problem_size(const Problem& problem) {
  const RoutingStats stats = routing_stats(problem.routing, problem.local());
  const Shape& shape = problem.shape;
  ProblemSize size;
  size.rows = stats.local_pairs;
  size.active = stats.active;
  size.flop = 2.0 * static_cast<double>(stats.local_pairs) * shape.k * shape.n;
  size.weight_bytes = stats.active * expert_bytes(shape.n, shape.k);
  return size;
}

const char* illegal_reason(const Config& config, Arch arch, const Problem& problem) {
  if (const char* reason = fulcrum::illegal_reason(config, arch, problem.shape)) return reason;
  if (read_in_place(config.code_word) && problem.format != CheckpointFormat::block36)
    return "code_word=block36 reads a block36 checkpoint";
  return nullptr;
}

Problem with_checkpoint_for(Problem problem, const Config& config) {
  if (read_in_place(config.code_word)) problem.format = CheckpointFormat::block36;
  return problem;
}

double floor_us(const ProblemSize& size, double read_gbps, double matrix_tflops) {
  const double read = read_gbps > 0 ? static_cast<double>(size.weight_bytes) / (read_gbps * 1e3) : 0;
  const double matrix = matrix_tflops > 0 ? size.flop / (matrix_tflops * 1e6) : 0;
  return std::max(read, matrix);
}

uint64_t num_rows(const Problem& problem, RowOrder order) {
  switch (order) {
    case RowOrder::token: return problem.routing.tokens;
    case RowOrder::pair: return problem.routing.num_pairs();
    default: return routing_stats(problem.routing, problem.local()).local_pairs;
  }
}

std::vector<Problem> layer_problems(const Workload& workload, std::string_view case_name, uint32_t tokens,
                                    std::string_view routing, std::optional<DType> dtype) {
  const Problem base = base_problem(workload, case_name, tokens, routing, dtype);
  const uint32_t inner = workload.intermediate, outer = workload.hidden;
  const Problem first = workload.gated ? projection_of(base, "gate_up", Projection::gate_up, 2 * inner, outer)
                                       : projection_of(base, "up", Projection::plain, inner, outer);
  Problem down = projection_of(base, "down", Projection::down, outer, inner);
  down.row_scales = false;  // the first one's outputs have none
  return {first, down};
}

std::vector<Problem> workload_problems(std::string_view workload_name, const std::vector<std::string>& cases,
                                       std::string_view routing, std::optional<DType> dtype) {
  const Workload& workload = workload_called(workload_name);
  std::vector<std::string> names = cases;
  if (names.empty())
    for (const WorkloadCase& each : workload.cases) names.emplace_back(each.name);
  std::vector<Problem> problems;
  for (const std::string& name : names) {
    for (Problem& problem : layer_problems(workload, name, case_tokens(workload, name), routing, dtype))
      problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<Problem> tuned_problems(std::string_view workload, const std::vector<std::string>& cases,
                                    std::string_view routing, std::optional<DType> dtype) {
  std::vector<Problem> problems = workload_problems(workload, cases, routing, dtype);
  if (workload != "prefill") return problems;
  const size_t num_layers = problems.size() / 2;
  for (size_t i = 0; i < num_layers; ++i)
    problems.push_back(probe_problems(problems[2 * i].routing.tokens, routing, dtype).front());
  return problems;
}

std::vector<Problem> probe_problems(uint32_t tokens, std::string_view routing, std::optional<DType> dtype) {
  const Workload& workload = workload_called("prefill");
  const Problem base = base_problem(workload, std::to_string(tokens), tokens, routing, dtype);
  return {projection_of(base, "gate", Projection::plain, workload.intermediate, workload.hidden),
          projection_of(base, "up", Projection::plain, workload.intermediate, workload.hidden),
          projection_of(base, "down", Projection::down, workload.hidden, workload.intermediate)};
}

std::vector<Problem> growth_problems(std::string_view routing, std::optional<DType> dtype) {
  Workload layer = workload_called("prefill");
  layer.name = "growth";
  layer.routing = RoutingKind::uniform;
  std::vector<Problem> problems;
  const auto add = [&](std::string_view axis, uint32_t value, uint32_t tokens) {
    for (Problem& problem : layer_problems(layer, fmt::format("{} {}", axis, value), tokens, routing, dtype))
      problems.push_back(std::move(problem));
  };
  for (uint32_t tokens = 1; tokens <= 131072; tokens *= 2) add("tokens", tokens, tokens);
  const uint32_t top_k = layer.top_k;
  for (uint32_t experts = 1; experts <= 1024; experts *= 2) {
    layer.experts = experts;
    layer.local = {0, experts};
    layer.top_k = std::min(top_k, experts);
    add("experts", experts, 2048);
  }
  return problems;
}

std::string problem_name(const Problem& problem) {
  return fmt::format("{} {} {} ({}, routing {})", problem.workload, problem.case_name, problem.item,
                     value_name(problem.shape.dtype), problem.routing.name);
}

}  // namespace fulcrum::harness
