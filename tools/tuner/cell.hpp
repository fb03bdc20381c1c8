// A cell: one problem that gets one row of the table, with all that is known about it on the way there.
//
// Made by make_cells(), filled by the steps of tune.
// Invariant: cells of one group share a Shape (and so must share a packed Layout) and differ in their token count.
#pragma once

#include <fulcrum/host/table.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/models.hpp"
#include "harness/problem.hpp"
#include "tuner/candidates.hpp"
#include "tuner/statistics.hpp"
#include "tuner/variants.hpp"

namespace fulcrum::tuner {

// A shape of the user's own, as the command line gives it.
struct OwnShape {
  uint32_t n = 0, k = 0;  // n as packed: twice the intermediate size for gate_up
  uint32_t experts = 0, local_experts = 0, first_expert = 0, top_k = 0;
  std::vector<uint32_t> tokens;
  Projection projection = Projection::plain;
};

// What is tuned: named workloads, or in their place a shape of the user's own or a model.
struct CellRequest {
  std::vector<std::string> workloads = {"prefill", "decode"};
  std::vector<std::string> cases;  // empty: all of the workload
  std::string routing;             // empty: the workload's own; uniform for a shape or a model
  std::optional<DType> dtype;      // empty: the workload's own; f16 for a shape, bf16 for a model
  std::optional<OwnShape> own;
  std::optional<harness::ModelRequest> model;
};

// A Config that was timed or modelled: what the summary of levers is made of.
struct Tried {
  Config config{};
  double us = 0;
  double ratio = 0;  // log(time / default's)
};

struct CellResult {
  Config config{};
  Source source = Source::measured;
  std::string chosen;  // how, in words
  Interval median_us;
  double best_us = 0;
  double default_us = 0;
  Interval ratio;    // log(time / default's)
  double noise = 0;  // what the A/A twin showed
  uint64_t samples = 0;
  uint32_t registers = 0;
  uint32_t blocks_per_sm = 0;
  double rel_error = 0;
  std::string machine;
};

struct Cell {
  harness::Problem problem;
  harness::ProblemSize size;
  size_t group = 0;
  Arch arch;  // to tune for
  std::unique_ptr<CostModel> model;
  Ranking ranking;
  std::vector<Variant*> candidates;  // the default first
  std::vector<Tried> tried;          // with a GPU measured, else modelled
  std::optional<CellResult> result;
  std::string problem_words;  // why there is no result

  KernelKind kind() const { return kernel_kind(problem.shape); }
  Config base() const { return default_config(kind(), arch); }
};

// Throws InputError.
std::vector<Cell> make_cells(const CellRequest& request);

size_t num_groups(const std::vector<Cell>& cells);

}  // namespace fulcrum::tuner
