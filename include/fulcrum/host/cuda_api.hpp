// The only file that calls the CUDA runtime: thin functions that return Status, one call each.
//
// Called by plan, launch, kernel, weights, routing and the harness. Nothing outside names a cuda* function, so another
// folder can shadow this header.
// Invariant: an error that one of our own calls caused is cleared before it is returned, so that it is never taken
// for somebody else's; an error that was there before is left where it was.
#pragma once

#include <fulcrum/core/tensor_map.h>
#include <fulcrum/host/device.hpp>
#include <fulcrum/host/error.hpp>

#include <cuda.h>  // types alone
#include <cuda_runtime_api.h>

FULCRUM_NAMESPACE_BEGIN
namespace cuda_api {

using Stream = cudaStream_t;
using Event = cudaEvent_t;
using Graph = cudaGraphExec_t;

/// A kernel that can be launched: a cudaKernel_t of a loaded library, or the address of a compiled-in __global__.
struct Function {
  const void* address = nullptr;
};
struct Library {
  cudaLibrary_t handle = nullptr;
};

/// What the loader knows of a kernel on the current device.
struct FunctionAttributes {
  uint32_t registers = 0;
  uint32_t local_bytes = 0;  // per thread: spills and stack
  uint32_t static_shared_bytes = 0;
  uint32_t max_threads = 0;
  uint32_t binary_cc = 0;  // 90 for sm_90 code
};

struct LaunchShape {
  uint32_t blocks = 0;  // along x; nothing of ours grows along y or z
  uint32_t threads = 0;
  uint32_t shared_bytes = 0;  // dynamic
};

inline constexpr const char* no_device_rule =
    "no usable GPU: {subject} says \"{detail}\". Compiling for a named architecture still works; to run, use a "
    "machine with an NVIDIA GPU and a driver for CUDA 13 (580 or newer)";
inline constexpr const char* call_rule = "{subject} failed: {detail}";
inline constexpr const char* foreign_rule =
    "an earlier CUDA call, not one of fulcrum's, left the error \"{detail}\"; nothing was launched. Find that call, or "
    "clear the error with cudaGetLastError()";

/// Errors that mean that there is nothing to run on; the runtime answers every call with them, so they are nobody's.
constexpr bool is_absent(cudaError_t error) {
  return error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary ||
         error == cudaErrorSystemDriverMismatch;
}

inline Status error_status(cudaError_t error, Code code, const char* rule, const char* call) {
  const bool absent = is_absent(error);
  Status status = make_error(absent ? Code::no_device : code, absent ? no_device_rule : rule, call, 0, 0,
                             cudaGetErrorString(error));
  status.cuda = static_cast<int32_t>(error);
  return status;
}

/// Status of one runtime call; clears the runtime's last error when the call failed.
inline Status check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return success();
  (void)cudaGetLastError();
  return error_status(error, Code::cuda, call_rule, call);
}

/// The error that somebody else's call left behind, if any; does not clear it.
inline Status foreign_error() {
  const cudaError_t error = cudaPeekAtLastError();
  return error == cudaSuccess ? success()
                              : error_status(error, Code::foreign_cuda, foreign_rule, "cudaPeekAtLastError");
}

/// Is it the error of a kernel that has no machine code for the device?
inline bool is_missing_code(const Status& status) {
  return status.cuda == cudaErrorNoKernelImageForDevice || status.cuda == cudaErrorInvalidDeviceFunction;
}

// Devices.

inline Result<int> num_devices() {
  int count = 0;
  const Status status = check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (!status.ok()) return status;
  return count;
}

inline Result<int> current_device() {
  int ordinal = 0;
  const Status status = check(cudaGetDevice(&ordinal), "cudaGetDevice");
  if (!status.ok()) return status;
  return ordinal;
}

inline Status set_device(int ordinal) { return check(cudaSetDevice(ordinal), "cudaSetDevice"); }

/// Runtime and driver versions as 1000 * major + 10 * minor; 0 where there is no driver.
inline int runtime_version() {
  int version = 0;
  (void)check(cudaRuntimeGetVersion(&version), "cudaRuntimeGetVersion");
  return version;
}
inline int driver_version() {
  int version = 0;
  (void)check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  return version;
}

namespace detail {
inline uint32_t attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  const Status status = check(cudaDeviceGetAttribute(&value, which, ordinal), "cudaDeviceGetAttribute");
  return status.ok() && value > 0 ? static_cast<uint32_t>(value) : 0u;
}

/// A driver function of CUDA `version`, asked for at run time so that nothing has to link with the driver.
inline Result<void*> driver_function(const char* name, unsigned int version) {
  void* function = nullptr;
  const Status status = check(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault), name);
  if (!status.ok()) return status;
  if (function == nullptr) return make_error(Code::unsupported, "this driver has no {subject}; update it", name);
  return function;
}
}  // namespace detail

// Kernels.

/// Loads a cubin or fatbin (host memory, may be freed afterwards). The library serves every device it has code for.
inline Result<Library> load_library(const void* image) {
  Library library;
  const Status status = check(cudaLibraryLoadData(&library.handle, image, nullptr, nullptr, 0, nullptr, nullptr, 0),
                              "cudaLibraryLoadData");
  if (!status.ok()) return status;
  return library;
}

inline Status unload_library(Library library) { return check(cudaLibraryUnload(library.handle), "cudaLibraryUnload"); }

inline Result<Function> find_function(Library library, const char* entry) {
  cudaKernel_t kernel = nullptr;
  const Status status = check(cudaLibraryGetKernel(&kernel, library.handle, entry), "cudaLibraryGetKernel");
  if (!status.ok()) return status;
  return Function{reinterpret_cast<const void*>(kernel)};
}

inline Result<FunctionAttributes> function_attributes(Function function) {
  cudaFuncAttributes raw{};
  const Status status = check(cudaFuncGetAttributes(&raw, function.address), "cudaFuncGetAttributes");
  if (!status.ok()) return status;
  FunctionAttributes attributes;
  attributes.registers = static_cast<uint32_t>(raw.numRegs);
  attributes.local_bytes = static_cast<uint32_t>(raw.localSizeBytes);
  attributes.static_shared_bytes = static_cast<uint32_t>(raw.sharedSizeBytes);
  attributes.max_threads = static_cast<uint32_t>(raw.maxThreadsPerBlock);
  attributes.binary_cc = static_cast<uint32_t>(raw.binaryVersion);
  return attributes;
}

/// Allows `bytes` of dynamic shared memory for this kernel on the current device.
inline Status allow_shared(Function function, uint32_t bytes) {
  return check(
      cudaFuncSetAttribute(function.address, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
      "cudaFuncSetAttribute");
}

/// Blocks of this kernel that one SM of the current device holds at once.
inline Result<int> blocks_per_sm(Function function, uint32_t threads, uint32_t shared_bytes) {
  int blocks = 0;
  const Status status = check(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function.address, static_cast<int>(threads), shared_bytes),
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  if (!status.ok()) return status;
  return blocks;
}

/// `arguments` is an array of pointers to the kernel's parameters, copied before the call returns.
inline Status launch(Function function, const LaunchShape& shape, Stream stream, void** arguments) {
  cudaLaunchConfig_t raw{};
  raw.gridDim = dim3(shape.blocks, 1, 1);
  raw.blockDim = dim3(shape.threads, 1, 1);
  raw.dynamicSmemBytes = shape.shared_bytes;
  raw.stream = stream;
  return check(cudaLaunchKernelExC(&raw, function.address, arguments), "cudaLaunchKernelExC");
}

// Tensor maps.

/// `tensor` must be legal (core/tensor_map.h).
inline Status encode_tensor_map(const TensorMap2d& tensor, TensorMap& map) {
  constexpr const char* name = "cuTensorMapEncodeTiled";
  static const Result<void*> function = detail::driver_function(name, 12000);
  if (!function.ok()) return function.status();
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(*function);
  const cuuint64_t sizes[] = {tensor.columns, tensor.rows}, strides[] = {tensor.row_bytes};
  const cuuint32_t box[] = {tensor.box_columns, tensor.box_rows}, steps[] = {1, 1};
  const auto call = [&] {
    return encode(reinterpret_cast<CUtensorMap*>(&map),
                  tensor.element_bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 2,
                  const_cast<void*>(tensor.base), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  tensor.swizzle == TensorSwizzle::none ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CUresult result = call();
  if (result == CUDA_ERROR_INVALID_CONTEXT) {  // this thread's first use of CUDA: give it its device's context
    if (const Status status = set_device(*current_device()); !status.ok()) return status;
    result = call();
  }
  // a driver's error has the number of the runtime's, and leaves the runtime's last error alone
  return result == CUDA_SUCCESS ? success() : error_status(cudaError_t(result), Code::cuda, call_rule, name);
}

// Memory, streams, events, graphs: for callers and the harness; launch() uses none but memset_async.

inline Result<void*> allocate(uint64_t bytes) {
  void* memory = nullptr;
  const Status status = check(cudaMalloc(&memory, bytes), "cudaMalloc");
  if (!status.ok()) return status;
  return memory;
}
inline Status release(void* memory) { return check(cudaFree(memory), "cudaFree"); }
inline Status memset_async(void* memory, int byte, uint64_t bytes, Stream stream) {
  return check(cudaMemsetAsync(memory, byte, bytes, stream), "cudaMemsetAsync");
}
inline Status copy_async(void* to, const void* from, uint64_t bytes, Stream stream) {
  return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}
inline Result<uint64_t> free_memory() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  const Status status = check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  if (!status.ok()) return status;
  return static_cast<uint64_t>(free_bytes);
}

inline Result<Stream> create_stream() {
  Stream stream = nullptr;
  const Status status = check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  if (!status.ok()) return status;
  return stream;
}
inline Status destroy_stream(Stream stream) { return check(cudaStreamDestroy(stream), "cudaStreamDestroy"); }
inline Status synchronize(Stream stream) { return check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }

inline Result<Event> create_event() {
  Event event = nullptr;
  const Status status = check(cudaEventCreate(&event), "cudaEventCreate");
  if (!status.ok()) return status;
  return event;
}
inline Status destroy_event(Event event) { return check(cudaEventDestroy(event), "cudaEventDestroy"); }
inline Status record(Event event, Stream stream) { return check(cudaEventRecord(event, stream), "cudaEventRecord"); }
inline Status wait(Event event) { return check(cudaEventSynchronize(event), "cudaEventSynchronize"); }
/// Milliseconds between two recorded events that have both completed.
inline Result<float> elapsed_ms(Event begin, Event end) {
  float milliseconds = 0;
  const Status status = check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  if (!status.ok()) return status;
  return milliseconds;
}

inline Status begin_capture(Stream stream) {
  return check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
}
/// Ends a capture and instantiates what it recorded.
inline Result<Graph> end_capture(Stream stream) {
  cudaGraph_t recorded = nullptr;
  Status status = check(cudaStreamEndCapture(stream, &recorded), "cudaStreamEndCapture");
  if (!status.ok()) return status;
  Graph graph = nullptr;
  status = check(cudaGraphInstantiate(&graph, recorded, 0), "cudaGraphInstantiate");
  (void)check(cudaGraphDestroy(recorded), "cudaGraphDestroy");
  if (!status.ok()) return status;
  return graph;
}
inline Status launch_graph(Graph graph, Stream stream) {
  return check(cudaGraphLaunch(graph, stream), "cudaGraphLaunch");
}
inline Status destroy_graph(Graph graph) { return check(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy"); }

}  // namespace cuda_api

/// Reads the limits of device `ordinal`. Error: no_device, or cuda for an ordinal that does not exist.
inline Result<Device> query_device(int ordinal) {
  using cuda_api::detail::attribute;
  const Result<int> count = cuda_api::num_devices();
  if (!count.ok()) return count.status();
  if (ordinal < 0 || ordinal >= *count) {
    return make_error(Code::invalid_argument, "device {value} does not exist; this machine has {limit}", "device",
                      ordinal, *count);
  }
  cudaDeviceProp properties{};
  const Status status = cuda_api::check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  if (!status.ok()) return status;
  Device device;
  device.ordinal = ordinal;
  device.arch.cc = properties.major * 10 + properties.minor;
  device.num_sms = static_cast<uint32_t>(properties.multiProcessorCount);
  device.shared_per_block_bytes = static_cast<uint32_t>(properties.sharedMemPerBlockOptin);
  device.shared_per_sm_bytes = static_cast<uint32_t>(properties.sharedMemPerMultiprocessor);
  device.shared_reserved_bytes = static_cast<uint32_t>(properties.reservedSharedMemPerBlock);
  device.registers_per_sm = static_cast<uint32_t>(properties.regsPerMultiprocessor);
  device.registers_per_block = static_cast<uint32_t>(properties.regsPerBlock);
  device.max_threads_per_sm = static_cast<uint32_t>(properties.maxThreadsPerMultiProcessor);
  device.max_threads_per_block = static_cast<uint32_t>(properties.maxThreadsPerBlock);
  device.max_blocks_per_sm = static_cast<uint32_t>(properties.maxBlocksPerMultiProcessor);
  device.max_grid = static_cast<uint32_t>(properties.maxGridSize[0]);
  device.l2_bytes = static_cast<uint64_t>(properties.l2CacheSize);
  device.memory_bytes = static_cast<uint64_t>(properties.totalGlobalMem);
  device.memory_clock_khz = attribute(cudaDevAttrMemoryClockRate, ordinal);
  device.memory_bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, ordinal);
  for (uint32_t at = 0; at + 1 < sizeof(device.name) && properties.name[at] != '\0'; ++at)
    device.name[at] = properties.name[at];
  return device;
}

/// Makes `ordinal` current for a scope and restores what was current before it.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) {
    const Result<int> before = cuda_api::current_device();
    status_ = before.status();
    if (!status_.ok() || *before == ordinal) return;
    before_ = *before;
    status_ = cuda_api::set_device(ordinal);
    restore_ = status_.ok();
  }
  ~CurrentDevice() {
    if (restore_) (void)cuda_api::set_device(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  const Status& status() const { return status_; }

 private:
  Status status_{};
  int before_ = 0;
  bool restore_ = false;
};

FULCRUM_NAMESPACE_END
