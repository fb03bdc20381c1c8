// Times kernels: a sample is one event-timed CUDA graph of several launches, each on the next weight bank.
//
// Called by the tuner's race, probe, bench and roofs.
// Invariant: the graph is made once, outside of the timed part. A sample holds no host work: a short delay on the GPU
// runs while the host enqueues the events and the graph behind it.
#pragma once

#include <functional>
#include <vector>

#include "harness/problem_on_device.hpp"

namespace fulcrum::harness {

// Anything that can be captured, `repeats` times in one graph. record(stream, i) enqueues repetition i.
class GraphTimer {
 public:
  GraphTimer(cuda_api::Stream stream, int repeats, const std::function<void(cuda_api::Stream, int)>& record);
  ~GraphTimer();
  GraphTimer(GraphTimer&& other) noexcept;
  GraphTimer& operator=(GraphTimer&&) = delete;

  void warm_up();      // one replay that is not timed
  double sample_us();  // one replay: microseconds of one repetition

 private:
  cuda_api::Stream stream_ = nullptr;
  int repeats_ = 1;
  cuda_api::Graph graph_ = nullptr;
  cuda_api::Event begin_ = nullptr, end_ = nullptr;
};

// `launches` launches of one kernel on the problem's random data; 0: the fewest that use every bank equally often and
// are at least four. The problem must outlive the timer.
GraphTimer kernel_timer(ProblemOnDevice& problem, const Kernel& kernel, int launches = 0);

// Keeps `stream` busy for about `microseconds`. Asynchronous.
Status enqueue_delay(cuda_api::Stream stream, uint32_t microseconds);

// Order statistics of samples; 0 when there are none.
double median_of(std::vector<double> samples);

// Half of the 95 % interval of the median, from the order statistics n/2 +- 0.98 sqrt(n).
double median_ci(std::vector<double> samples);

}  // namespace fulcrum::harness
