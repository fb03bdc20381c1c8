// The twin of host/cuda_api.hpp: the same functions on the emulated device, so that plan, launch and the harness run as
// they are.
//
// Found first by sources that are built for the emulator. Invariant: a launch has ended when it returns; what went
// wrong in it is reported once, by the next synchronize(), as a GPU would.
#pragma once

#include <emulator/host.h>
#include <fulcrum/core/tensor_map.h>
#include <fulcrum/host/device.hpp>
#include <fulcrum/host/error.hpp>

#include <cstring>

FULCRUM_NAMESPACE_BEGIN
namespace cuda_api {

struct StreamState;
using Stream = StreamState*;

struct Function {
  const void* address = nullptr;  // of an emulator::Entry
};
struct Library {
  void* handle = nullptr;
};

struct FunctionAttributes {
  uint32_t registers = 0;
  uint32_t local_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t max_threads = 0;
  uint32_t binary_cc = 0;
};

struct LaunchShape {
  uint32_t blocks = 0;
  uint32_t threads = 0;
  uint32_t shared_bytes = 0;
};

inline constexpr const char* fault_rule = "the emulated kernel is wrong: {detail}";
inline constexpr const char* memory_rule = "{subject} was given memory that the emulated device does not have";

namespace detail {

/// What the launches since the last synchronize() left.
inline Status& pending_error() {
  static Status status;
  return status;
}

}  // namespace detail

inline Status foreign_error() { return success(); }
inline bool is_missing_code(const Status&) { return false; }

inline Result<int> num_devices() { return 1; }
inline Result<int> current_device() { return 0; }
inline Status set_device(int) { return success(); }
inline int runtime_version() { return 0; }
inline int driver_version() { return 0; }

/// `image` is a shared library that exports an emulator::Entry for each kernel.
inline Result<Library> load_library(const void* image) {
  const char* error = "";
  Library library{emulator::load_image(image, &error)};
  if (library.handle == nullptr) return make_error(Code::cuda, "loading a variant failed: {detail}", "", 0, 0, error);
  return library;
}

inline Status unload_library(Library library) {
  emulator::unload_image(library.handle);
  return success();
}

inline Result<Function> find_function(Library library, const char* entry) {
  const emulator::Entry* found = emulator::find_entry(library.handle, entry);
  if (found == nullptr) return make_error(Code::cuda, "a variant lacks the entry {subject}", "it was compiled for");
  return Function{found};
}

inline Result<FunctionAttributes> function_attributes(Function) { return FunctionAttributes{32, 0, 0, 1024, 90}; }
inline Status allow_shared(Function, uint32_t) { return success(); }
inline Result<int> blocks_per_sm(Function, uint32_t, uint32_t) { return 1; }

inline Status launch(Function function, const LaunchShape& shape, Stream, void** arguments) {
  const char* words = emulator::run(static_cast<const emulator::Entry*>(function.address), shape.blocks, shape.threads,
                                    shape.shared_bytes, arguments[0]);
  if (words != nullptr && detail::pending_error().ok())
    detail::pending_error() = make_error(Code::cuda, fault_rule, "", 0, 0, words);
  return success();
}

/// A map is the description itself.
inline Status encode_tensor_map(const TensorMap2d& tensor, TensorMap& map) {
  static_assert(sizeof tensor <= sizeof map);
  std::memcpy(map.words, &tensor, sizeof tensor);
  return success();
}

inline Result<void*> allocate(uint64_t bytes) { return emulator::allocate(bytes); }
inline Status release(void* memory) {
  return emulator::release(memory) ? success() : make_error(Code::cuda, memory_rule, "release");
}
inline Status memset_async(void* memory, int byte, uint64_t bytes, Stream) {
  emulator::set(memory, byte, bytes);
  return success();
}
inline Status copy_async(void* to, const void* from, uint64_t bytes, Stream) {
  emulator::copy(to, from, bytes);
  return success();
}
inline Result<uint64_t> free_memory() { return uint64_t{1} << 32; }

inline Result<Stream> create_stream() { return Stream{nullptr}; }
inline Status destroy_stream(Stream) { return success(); }
inline Status synchronize(Stream) {
  const Status status = detail::pending_error();
  detail::pending_error() = success();
  return status;
}

}  // namespace cuda_api

/// Two SMs with the limits of an H200, so that every block takes several tiles of a small problem.
inline Result<Device> query_device(int ordinal) {
  Device device;
  device.ordinal = ordinal;
  device.arch = Arch{90};
  const ArchLimits limits = arch_limits(device.arch);
  device.num_sms = 2;
  device.shared_per_block_bytes = limits.block_shared_bytes;
  device.shared_per_sm_bytes = limits.sm_shared_bytes;
  device.shared_reserved_bytes = reserved_shared_bytes;
  device.registers_per_sm = sm_registers;
  device.registers_per_block = sm_registers;
  device.max_threads_per_sm = limits.sm_threads;
  device.max_threads_per_block = 1024;
  device.max_blocks_per_sm = limits.sm_blocks;
  device.max_grid = 0x7FFFFFFF;
  device.l2_bytes = 1;
  device.memory_bytes = uint64_t{1} << 32;
  const char name[] = "fulcrum emulator";
  for (uint32_t at = 0; at < sizeof name; ++at) device.name[at] = name[at];
  return device;
}

class CurrentDevice {
 public:
  explicit CurrentDevice(int) {}
  Status status() const { return success(); }
};

FULCRUM_NAMESPACE_END
