// A problem: one grouped GEMM of a workload on one routing - what the tuner tunes, bench times and check proves.
//
// Called by the tuner, the verbs, bench and the tests; ProblemOnDevice gives it memory.
// Invariant: a Problem is a plain value without data of its own; its weights, tokens and factors are pure functions of
// (data, seed, position), so two processes that hold equal Problems see equal bytes.
#pragma once

#include <fulcrum/core/config.h>
#include <fulcrum/core/params.h>
#include <fulcrum/core/shape.h>
#include <fulcrum/pack/formats.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/routing.hpp"

namespace fulcrum::harness {

struct Workload;

struct Problem {
  Shape shape;
  Routing routing;
  RowOrder input_rows = RowOrder::token;
  RowOrder output_rows = RowOrder::pair;
  std::string workload;   // prefill, decode, models, growth, or the user's own
  std::string case_name;  // 512, 2048, 4096, K0 ... K7, or a model's name and tokens
  std::string item;       // gate, up, gate_up, down

  CheckpointFormat format = CheckpointFormat::modelopt;
  bool edge_scales = false;  // random data: every scale byte that the format reads, zero and subnormal ones included
  bool row_scales = false;   // one f32 factor a row of tokens
  bool bias = false;
  bool pair_weights = false;     // routing weights, applied last
  uint32_t token_gap_bytes = 0;  // between rows, a multiple of 16; bytes that nobody may use
  uint32_t out_gap_bytes = 0;    // likewise, a multiple of 4
  bool expert_pointers = false;  // weights through a table of pointers instead of a bank
  uint64_t seed = 1;

  ExpertRange local() const { return {shape.first_expert, shape.local_experts}; }
};

// What a problem is made of, for rates and floors.
struct ProblemSize {
  uint64_t rows = 0;          // pairs whose expert is local: the rows of the GEMM
  uint32_t active = 0;        // local experts with rows
  double flop = 0;            // 2 * rows * k * n
  uint64_t weight_bytes = 0;  // packed bytes of the active experts
};
ProblemSize problem_size(const Problem& problem);

// The least time on a machine with these roofs: the larger of the two times. 0 for a roof that is not known (0).
double floor_us(const ProblemSize& size, double read_gbps, double matrix_tflops);

// Why a Config cannot compute a problem, or null: the rules' reason for its shape, or a checkpoint that cannot be read
// in place.
const char* illegal_reason(const Config& config, Arch arch, const Problem& problem);

// The problem with a checkpoint that a Config's weights can be made of, or read from in place.
Problem with_checkpoint_for(Problem problem, const Config& config);

// Rows that `tokens` and `out` have in a row order: tokens, pairs, or local pairs.
uint64_t num_rows(const Problem& problem, RowOrder order);

// The two GEMMs of a layer on one batch: gate_up with SiLU, or `up` where there is no gate (token rows gathered, scaled
// where the workload says so), and down (pair-major, rows as the first leaves them). `routing` empty: the workload's
// own; likewise `dtype`. Throws InputError for a routing that cannot be.
std::vector<Problem> layer_problems(const Workload& workload, std::string_view case_name, uint32_t tokens,
                                    std::string_view routing = {}, std::optional<DType> dtype = {});

// layer_problems() for every case. `cases` empty: all of the workload; a prefill case may be any token count. Throws
// InputError for a name that is not known.
std::vector<Problem> workload_problems(std::string_view workload, const std::vector<std::string>& cases,
                                       std::string_view routing = {}, std::optional<DType> dtype = {});

// What tune tunes: workload_problems(), and for prefill the probed gate of each case (up has the same shape).
std::vector<Problem> tuned_problems(std::string_view workload, const std::vector<std::string>& cases,
                                    std::string_view routing = {}, std::optional<DType> dtype = {});

// `prefill` as probed, for one token count: gate, up (n=640, k=4096, token rows) and down (n=4096, k=640, pair-major),
// each with a scale a row.
std::vector<Problem> probe_problems(uint32_t tokens, std::string_view routing = {}, std::optional<DType> dtype = {});

// Layers that show how cost grows, of the workload `growth`: prefill's with all its experts and 1, 2, 4 ... 131,072
// tokens ("tokens 1" ...), and with 2,048 tokens and 1, 2, 4 ... 1,024 experts ("experts 1" ..., top_k 8 or as many as
// there are). Routing `uniform` unless another is given.
std::vector<Problem> growth_problems(std::string_view routing = {}, std::optional<DType> dtype = {});

// "prefill 2048 gate_up (f16, routing probe)"
std::string problem_name(const Problem& problem);

}  // namespace fulcrum::harness
