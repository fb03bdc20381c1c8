// Measures the roofs: reads and copies of one large buffer, and cuBLAS, found and called through its four functions.
//
// Called by the verbs roof and probe, by bench and by the tuner. Invariant: see roofs.hpp.
#include "harness/roofs.hpp"

#include <fmt/format.h>

#include <dlfcn.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>

#include "harness/jit_kernels.hpp"
#include "harness/roofs_device.hpp"
#include "harness/timer.hpp"

namespace fulcrum::harness {
namespace {

constexpr int num_samples = 20;
constexpr uint64_t wanted_bytes = uint64_t{4} << 30;
constexpr uint32_t blocks_per_sm[] = {4, 6, 8, 12, 16, 24, 32};
constexpr uint64_t fewest_repeats = 4, most_repeats = 1024;  // reads in one graph
constexpr uint64_t matrix_size = 8192;

double median_sample(GraphTimer& timer) {
  timer.warm_up();
  std::vector<double> samples;
  for (int i = 0; i < num_samples; ++i) samples.push_back(timer.sample_us());
  return median_of(samples);
}

// The four functions of cuBLAS that a GEMM needs, by their names in the library; enumerators as cublas_api.h has them.
struct Cublas {
  using Handle = void*;
  using Gemm = int (*)(Handle, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
                       const void*, void*, int, int, int, int);
  static constexpr int op_n = 0, op_t = 1;      // CUBLAS_OP_N, CUBLAS_OP_T
  static constexpr int bf16 = 14;               // CUDA_R_16BF
  static constexpr int compute_f32 = 68;        // CUBLAS_COMPUTE_32F
  static constexpr int default_algorithm = -1;  // CUBLAS_GEMM_DEFAULT

  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*set_stream)(Handle, cuda_api::Stream) = nullptr;
  Gemm gemm = nullptr;
  std::string library;

  bool complete() const { return create != nullptr && destroy != nullptr && set_stream != nullptr && gemm != nullptr; }
};

template <class Function>
void find_symbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// The library stays open until the process ends: it has threads and device memory of its own.
Cublas open_cublas() {
  for (const std::string& path : cublas_candidates()) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    Cublas cublas;
    find_symbol(library, "cublasCreate_v2", cublas.create);
    find_symbol(library, "cublasDestroy_v2", cublas.destroy);
    find_symbol(library, "cublasSetStream_v2", cublas.set_stream);
    find_symbol(library, "cublasGemmEx", cublas.gemm);
    cublas.library = path;
    if (cublas.complete()) return cublas;
  }
  return {};
}

void append_glob(std::vector<std::string>& paths, const std::string& pattern) {
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  }
  globfree(&found);
}

}  // namespace

std::vector<std::string> cublas_candidates() {
  constexpr const char* name = "libcublas.so.13";
  std::vector<std::string> paths;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* prefix = std::getenv(variable);
    if (prefix != nullptr) paths.push_back(fmt::format("{}/lib64/{}", prefix, name));
  }
  paths.emplace_back(name);
  paths.push_back(fmt::format("/usr/local/cuda/lib64/{}", name));
  std::vector<std::string> prefixes{"/usr/local/lib", "/usr/lib"};
  if (const char* environment = std::getenv("VIRTUAL_ENV"))
    prefixes.insert(prefixes.begin(), fmt::format("{}/lib", environment));
  if (const char* home = std::getenv("HOME")) prefixes.push_back(fmt::format("{}/.local/lib", home));
  for (const std::string& prefix : prefixes)
    append_glob(paths, fmt::format("{}/python3*/*-packages/nvidia/*/lib/{}", prefix, name));
  return paths;
}

RoofMeter::RoofMeter() : device_(current_device()) {
  const uint64_t free_bytes = require(cuda_api::free_memory());
  buffer_ = DeviceBuffer<uint8_t>(std::min(wanted_bytes, free_bytes / 2) / 4096 * 4096);
  stream_ = require(cuda_api::create_stream());
  // random bits, so that no compression of memory can help; and a sink that the reads may not overlap
  require(enqueue_random_bf16(reinterpret_cast<uint16_t*>(buffer_.data()), buffer_.size() / 2, 1, stream_));
  require(cuda_api::synchronize(stream_));
}

RoofMeter::~RoofMeter() {
  if (stream_ != nullptr) (void)cuda_api::destroy_stream(stream_);
}

ReadRoof RoofMeter::read() { return read_bytes(buffer_.size()); }

ReadRoof RoofMeter::read_bytes(uint64_t bytes) {
  ReadRoof best;
  best.bytes = std::clamp<uint64_t>(bytes / 16 * 16, 16, buffer_.size());
  // enough reads of different parts that the first part has left the L2 when its turn comes again
  const uint64_t wanted = std::clamp(3 * device_.l2_bytes / best.bytes + 1, fewest_repeats, most_repeats);
  const int repeats = static_cast<int>(std::min(buffer_.size() / best.bytes, wanted));
  const DeviceBuffer<uint32_t> sink(1);
  for (const uint32_t blocks : blocks_per_sm) {
    GraphTimer timer(stream_, repeats, [&](cuda_api::Stream stream, int i) {
      require(enqueue_read(buffer_.data() + static_cast<uint64_t>(i) * best.bytes, best.bytes, blocks * device_.num_sms,
                           sink.data(), stream));
    });
    const double median_us = median_sample(timer);
    if (best.median_us > 0 && median_us >= best.median_us) continue;
    best.median_us = median_us;
    best.blocks_per_sm = blocks;
  }
  return best;
}

double RoofMeter::copy_gbps() {
  // In pieces: on an H200 one copy of 1.6 or 2 GB in a graph runs at 2,700 GB/s, copies of 0.4 GB at 4,200.
  constexpr int pieces = 8;
  const uint64_t half = buffer_.size() / 2, piece = half / pieces / 4096 * 4096;
  GraphTimer timer(stream_, pieces, [&](cuda_api::Stream stream, int i) {
    const uint64_t begin = static_cast<uint64_t>(i) * piece;
    require(cuda_api::copy_async(buffer_.data() + half + begin, buffer_.data() + begin, piece, stream));
  });
  return 2.0 * static_cast<double>(piece) / median_sample(timer) * 1e-3;
}

MatrixRoof RoofMeter::matrix() {
  MatrixRoof roof;
  const Cublas cublas = open_cublas();
  if (!cublas.complete()) {
    roof.problem =
        "cuBLAS 13 (libcublas.so.13) was not found under CUDA_HOME, in the loader's path or among Python's packages";
    return roof;
  }
  roof.library = cublas.library;
  constexpr uint64_t elements = matrix_size * matrix_size;
  if (buffer_.size() < 3 * elements * 2) {
    roof.problem = "the matrices of 8192 x 8192 do not fit the memory that is free";
    return roof;
  }
  auto* matrices = reinterpret_cast<uint16_t*>(buffer_.data());  // [3][8192][8192] bf16, two of them already random
  Cublas::Handle handle = nullptr;
  if (cublas.create(&handle) != 0 || cublas.set_stream(handle, stream_) != 0) {
    roof.problem = fmt::format("{} could not be started", cublas.library);
    return roof;
  }
  constexpr int size = static_cast<int>(matrix_size);
  const float one = 1, zero = 0;
  int status = 0;
  const auto multiply = [&] {
    const int code = cublas.gemm(handle, Cublas::op_t, Cublas::op_n, size, size, size, &one, matrices, Cublas::bf16,
                                 size, matrices + elements, Cublas::bf16, size, &zero, matrices + 2 * elements,
                                 Cublas::bf16, size, Cublas::compute_f32, Cublas::default_algorithm);
    if (code != 0) status = code;
  };
  // the first call chooses a kernel and takes workspace, which a capture must not see
  multiply();
  require(cuda_api::synchronize(stream_), "running cuBLAS: ");
  if (status == 0) {
    GraphTimer timer(stream_, 1, [&](cuda_api::Stream, int) { multiply(); });
    roof.tflops = 2.0 * matrix_size * matrix_size * matrix_size / median_sample(timer) * 1e-6;
  }
  if (status != 0) roof.problem = fmt::format("{} failed with status {}", cublas.library, status);
  (void)cublas.destroy(handle);
  return roof;
}

}  // namespace fulcrum::harness
