// Captured graphs between events, and order statistics of their times.
//
// Called by the tuner's race, measure(), roofs and measure_repack(). Invariant: see timer.hpp.
#include "harness/timer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fulcrum::harness {
namespace {

// Longer than a host takes for three enqueues (under 15 us), so that the graph starts right behind the first event.
constexpr uint32_t delay_us = 30;
constexpr uint32_t fewest_launches = 4;

}  // namespace

GraphTimer::GraphTimer(cuda_api::Stream stream, int repeats, const std::function<void(cuda_api::Stream, int)>& record)
    : stream_(stream), repeats_(repeats) {
  require(cuda_api::begin_capture(stream), "capturing a graph: ");
  try {
    for (int i = 0; i < repeats; ++i) record(stream, i);
  } catch (...) {
    // the capture must end, whatever it holds, before the stream can be used again
    if (const Result<cuda_api::Graph> unused = cuda_api::end_capture(stream); unused.ok())
      (void)cuda_api::destroy_graph(*unused);
    throw;
  }
  graph_ = require(cuda_api::end_capture(stream), "capturing a graph: ");
  begin_ = require(cuda_api::create_event());
  end_ = require(cuda_api::create_event());
}

GraphTimer::GraphTimer(GraphTimer&& other) noexcept
    : stream_(other.stream_),
      repeats_(other.repeats_),
      graph_(std::exchange(other.graph_, nullptr)),
      begin_(std::exchange(other.begin_, nullptr)),
      end_(std::exchange(other.end_, nullptr)) {}

GraphTimer::~GraphTimer() {
  if (graph_ != nullptr) (void)cuda_api::destroy_graph(graph_);
  if (begin_ != nullptr) (void)cuda_api::destroy_event(begin_);
  if (end_ != nullptr) (void)cuda_api::destroy_event(end_);
}

void GraphTimer::warm_up() {
  require(cuda_api::launch_graph(graph_, stream_), "replaying a graph: ");
  require(cuda_api::synchronize(stream_), "replaying a graph: ");
}

double GraphTimer::sample_us() {
  require(enqueue_delay(stream_, delay_us));
  require(cuda_api::record(begin_, stream_));
  require(cuda_api::launch_graph(graph_, stream_), "replaying a graph: ");
  require(cuda_api::record(end_, stream_));
  require(cuda_api::wait(end_), "replaying a graph: ");
  return 1e3 * require(cuda_api::elapsed_ms(begin_, end_)) / repeats_;
}

GraphTimer kernel_timer(ProblemOnDevice& problem, const Kernel& kernel, int launches) {
  const Plan plan = problem.plan(kernel);
  problem.prepare_timing(plan);
  const int repeats = launches > 0 ? launches : static_cast<int>(round_up(fewest_launches, problem.num_banks()));
  return GraphTimer(problem.stream(), repeats, [&](cuda_api::Stream, int i) {
    problem.launch_once(plan, Data::random, static_cast<uint32_t>(i));
  });
}

double median_of(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

double median_ci(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const double count = static_cast<double>(samples.size()), reach = 0.98 * std::sqrt(count);
  const double low = std::max(0.0, std::floor(count / 2 - reach));
  const double high = std::min(count - 1, std::ceil(count / 2 + reach));
  return (samples[static_cast<size_t>(high)] - samples[static_cast<size_t>(low)]) / 2;
}

}  // namespace fulcrum::harness
