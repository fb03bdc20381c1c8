// Cells of workloads, of a user's shape and of a model. Invariant: see cell.hpp.
#include "tuner/cell.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/input_error.hpp"

namespace fulcrum::tuner {
namespace {

std::vector<harness::Problem> own_problems(const OwnShape& own, const std::string& routing, DType dtype) {
  const harness::RoutingSpec spec = harness::parse_routing_spec(routing.empty() ? "uniform" : routing);
  std::vector<harness::Problem> problems;
  for (const uint32_t tokens : own.tokens) {
    harness::Problem problem;
    const uint32_t local = own.local_experts == 0 ? own.experts - own.first_expert : own.local_experts;
    problem.shape = {own.n,     own.k, own.experts,    local,           own.first_expert,
                     own.top_k, dtype, own.projection, Activation::none};
    if (own.projection == Projection::gate_up) problem.shape.activation = Activation::silu;
    if (own.projection == Projection::down) problem.input_rows = RowOrder::pair;
    problem.routing = harness::make_routing(spec, {tokens, own.experts, own.top_k});
    problem.workload = "own";
    problem.case_name = std::to_string(tokens);
    problem.item = value_name(own.projection);
    problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<harness::Problem> problems_of(const CellRequest& request) {
  if (request.own) return own_problems(*request.own, request.routing, request.dtype.value_or(DType::f16));
  if (request.model) return harness::model_problems(*request.model, request.routing, request.dtype);
  std::vector<harness::Problem> problems;
  for (const std::string& workload : request.workloads) {
    for (harness::Problem& problem : harness::tuned_problems(workload, request.cases, request.routing, request.dtype)) {
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

void check_shape(const harness::Problem& problem) {
  // the default Config is legal everywhere, so what is refused is the shape
  const Config base = default_config(kernel_kind(problem.shape), Arch{supported_archs[0]});
  if (const char* reason = illegal_reason(base, Arch{supported_archs[0]}, problem.shape)) {
    throw harness::InputError(fmt::format("n={} k={} experts={} top_k={}: {}", problem.shape.n, problem.shape.k,
                                          problem.shape.experts, problem.shape.top_k, reason));
  }
}

}  // namespace

std::vector<Cell> make_cells(const CellRequest& request) {
  std::vector<Cell> cells;
  std::vector<std::string> shapes;
  for (harness::Problem& problem : problems_of(request)) {
    check_shape(problem);
    const auto is_same = [&](const Cell& cell) {
      return harness::problem_name(cell.problem) == harness::problem_name(problem);
    };
    if (std::any_of(cells.begin(), cells.end(), is_same)) continue;  // named twice
    Cell cell;
    cell.size = harness::problem_size(problem);
    if (cell.size.rows == 0) {
      throw harness::InputError(harness::problem_name(problem) + " has no local rows, so there is nothing to time");
    }
    const std::string shape = shape_text(problem.shape);
    const auto known = std::find(shapes.begin(), shapes.end(), shape);
    cell.group = static_cast<size_t>(known - shapes.begin());
    if (known == shapes.end()) shapes.push_back(shape);
    cell.problem = std::move(problem);
    cells.push_back(std::move(cell));
  }
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.group < b.group; });
  return cells;
}

size_t num_groups(const std::vector<Cell>& cells) {
  size_t groups = 0;
  for (const Cell& cell : cells) groups = std::max(groups, cell.group + 1);
  return groups;
}

}  // namespace fulcrum::tuner
