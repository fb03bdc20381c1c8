// Compiles and launches the repack kernels.
//
// Called by ProblemOnDevice, measure_repack() and the device tests. Invariant: see repack_device.hpp.
#include "harness/repack_device.hpp"

#include <fulcrum/pack/repack_entries.h>

#include <map>
#include <mutex>
#include <string>

#include "harness/device_memory.hpp"
#include "harness/input_error.hpp"
#include "harness/jit_kernels.hpp"

namespace fulcrum::harness {

const Auxiliary& repack_kernel(RepackKind kind, RepackDirection direction) {
  static std::mutex mutex;
  static std::map<std::pair<int, uint32_t>, Auxiliary> kernels;  // a cubin is for one architecture
  const std::lock_guard<std::mutex> lock(mutex);
  const Arch arch = current_device().arch;
  const std::pair<int, uint32_t> key{arch.cc, repack_entry_index(kind, direction)};
  const auto found = kernels.find(key);
  if (found != kernels.end()) return found->second;
  const RepackEntry& entry = repack_entry(kind, direction);
  return kernels.emplace(key, compile_helper({entry.name, entry.source}, arch)).first->second;
}

void run_repack(RepackKind kind, RepackDirection direction, const RepackParams& params, cuda_api::Stream stream) {
  if (const char* reason = illegal_repack(kind.format, params)) throw InputError(std::string("repack: ") + reason);
  const Auxiliary& kernel = repack_kernel(kind, direction);
  if (direction == RepackDirection::pack)
    require(cuda_api::memset_async(params.refusal, 0xFF, sizeof no_refusal, stream));
  const uint64_t blocks = repack_blocks(params);
  if (blocks == 0) return;
  RepackParams argument = params;
  void* arguments[] = {&argument};
  require(cuda_api::launch(kernel.function, {static_cast<uint32_t>(blocks), repack_threads, repack_shared_bytes},
                           stream, arguments));
}

}  // namespace fulcrum::harness
