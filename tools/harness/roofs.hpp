// This GPU's roofs, measured: reading, copying, and the matrix rate of cuBLAS.
//
// Called by `roof`, probe, bench and the tuner, always in the run whose figures are held against them.
// Invariant: every figure is a median of 20 samples on data that no cache holds; the read roof is the best over 4 to 32
// blocks per SM, so it cannot be low for want of a good kernel. cuBLAS is opened at run time and may be missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/device_memory.hpp"

namespace fulcrum::harness {

struct ReadRoof {
  uint64_t bytes = 0;  // of one read
  double median_us = 0;
  uint32_t blocks_per_sm = 0;  // of the best
  double gbps() const { return median_us > 0 ? static_cast<double>(bytes) / median_us * 1e-3 : 0; }
};

struct MatrixRoof {
  double tflops = 0;    // 0: not measured
  std::string library;  // what was opened
  std::string problem;  // why it was not measured, in one sentence
};

class RoofMeter {
 public:
  // Takes 4 GiB of device memory, or half of what is free.
  RoofMeter();
  ~RoofMeter();
  RoofMeter(const RoofMeter&) = delete;
  RoofMeter& operator=(const RoofMeter&) = delete;

  ReadRoof read();                      // the whole buffer
  ReadRoof read_bytes(uint64_t bytes);  // each launch the next part of the buffer; at most the buffer
  double copy_gbps();                   // its start to its end, read and written bytes counted
  MatrixRoof matrix();                  // bf16, 8192^3, random data, f32 accumulation

 private:
  Device device_;
  cuda_api::Stream stream_ = nullptr;
  DeviceBuffer<uint8_t> buffer_;
};

// Files that may be cuBLAS, in the order in which they are tried: CUDA_HOME and CUDA_PATH, the loader's path, the usual
// prefix, Python's site-packages.
std::vector<std::string> cublas_candidates();

}  // namespace fulcrum::harness
