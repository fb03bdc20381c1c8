// Streams a recorded routing and samples batches from it.
//
// Called by make_routing(). Invariant: see trace.hpp.
#include "harness/trace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/draw.hpp"
#include "harness/input_error.hpp"
#include "harness/run_sampler.hpp"
#include "harness/trace_reader.hpp"

namespace fulcrum::harness {
namespace {

// Layers seen so far, for the message that the wanted one is not among them.
struct LayerRange {
  uint32_t least = UINT32_MAX;
  uint32_t most = 0;

  void add(uint32_t layer) {
    least = std::min(least, layer);
    most = std::max(most, layer);
  }
};

[[noreturn]] void missing_layer(const TraceRequest& request, const LayerRange& layers) {
  if (!request.layer || layers.least > layers.most) throw InputError(fmt::format("{} has no rows", request.path));
  throw InputError(fmt::format("layer {} has no rows in {}, which has layers {} to {}", *request.layer, request.path,
                               layers.least, layers.most));
}

TraceSample sample_tokens(TraceReader& reader, const TraceRequest& request, TraceReport report) {
  if (!reader.has_layer() && request.layer) {
    throw InputError(fmt::format("{} has no layer column; leave :layer={} out", request.path, *request.layer));
  }
  RunSampler sampler(report.top_k, request.size.tokens, request.runs, request.seed, request.batches);
  WarmUpFilter filter(report.top_k, sampler);
  LayerRange layers;
  std::vector<int32_t> ids;
  uint32_t layer = 0;
  bool names_expert = false;
  while (reader.next_tokens(layer, ids)) {
    layers.add(layer);
    if (reader.has_layer() && !report.layer) report.layer = layer;
    if (report.layer && *report.layer != layer) continue;
    names_expert = names_expert || std::any_of(ids.begin(), ids.end(), [](int32_t id) { return id >= 0; });
    filter.add(ids, reader.line());
  }
  filter.finish();
  report.rows = sampler.num_rows();
  report.warm_up_rows = filter.warm_up_rows();
  report.warm_up_line = filter.first_line();
  const uint64_t all_rows = report.rows + report.warm_up_rows;
  if (!names_expert && all_rows > 0) {
    throw InputError(fmt::format("all {} rows of {}{} name no expert (every id is -1): nothing to sample", all_rows,
                                 report.layer ? fmt::format("layer {} of ", *report.layer) : "", request.path));
  }
  if (report.rows == 0 && report.warm_up_rows > 0) {
    throw InputError(fmt::format("all {} rows of {} from line {} on name the same experts (warm-up): nothing to sample",
                                 report.warm_up_rows, request.path, report.warm_up_line));
  }
  if (report.rows == 0) missing_layer(request, layers);
  report.experts = std::max(request.size.experts, reader.largest_expert() + 1);
  report.repeated = sampler.repeats();
  return {report, sampler.take()};
}

TraceSample sample_counts(TraceReader& reader, const TraceRequest& request, TraceReport report) {
  if (request.size.top_k == 0) {
    throw InputError(
        fmt::format("{} holds counts, which do not say how many experts a token has; give top_k", request.path));
  }
  std::vector<uint64_t> weights;
  LayerRange layers;
  TraceCount row;
  while (reader.next_count(row)) {
    layers.add(row.layer);
    if (!report.layer) report.layer = row.layer;
    if (*report.layer != row.layer) continue;
    if (weights.size() <= row.expert) weights.resize(row.expert + 1, UINT64_MAX);  // not listed yet
    if (weights[row.expert] != UINT64_MAX) {
      reader.fail(fmt::format("expert {} of layer {} has a count already", row.expert, row.layer));
    }
    weights[row.expert] = row.count;
    ++report.rows;
  }
  if (report.rows == 0) missing_layer(request, layers);
  std::replace(weights.begin(), weights.end(), uint64_t{UINT64_MAX}, uint64_t{0});
  report.experts = std::max(request.size.experts, reader.largest_expert() + 1);
  weights.resize(report.experts, 0);

  // 2^40 steps to a token's share: finer than any count of a recording, and 32 shares stay far below 2^64.
  const uint64_t stride = uint64_t{1} << 40;
  const std::vector<uint64_t> lengths = apportion(weights, report.top_k, stride);
  if (lengths.empty()) {
    throw InputError(fmt::format("layer {} of {} has fewer than top_k = {} experts with a count above zero",
                                 *report.layer, request.path, report.top_k));
  }
  TraceSample sample{report, {}};
  for (uint32_t batch = 0; batch < request.batches; ++batch) {
    std::vector<int32_t>& ids = sample.batches.emplace_back(size_t{request.size.tokens} * report.top_k);
    Random random(request.seed + batch);
    for (size_t begin = 0; begin < ids.size(); begin += report.top_k) {
      draw_token(lengths, stride, random, {&ids[begin], report.top_k});
    }
  }
  return sample;
}

}  // namespace

TraceSample sample_trace(const TraceRequest& request) {
  TraceReader reader(request.path, request.size.experts);
  TraceReport report;
  report.form = reader.form();
  report.layer = request.layer;
  report.top_k = reader.form() == TraceForm::tokens ? reader.top_k() : request.size.top_k;
  if (request.size.top_k != 0 && request.size.top_k != report.top_k) {
    throw InputError(fmt::format("{}:1: the trace has {} experts a token, but top_k is {}", request.path, report.top_k,
                                 request.size.top_k));
  }
  return reader.form() == TraceForm::tokens ? sample_tokens(reader, request, report)
                                            : sample_counts(reader, request, report);
}

}  // namespace fulcrum::harness
