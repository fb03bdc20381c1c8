// An engine that uses the headers alone names its kernels itself, each in one line.
#include <fulcrum/entry.cuh>

#include "kernels.hpp"

#define ENGINE_CONFIG "code_word=f16,tile_n=64,tile_m=8,warps_n=2,stages=3,min_blocks=1"
FULCRUM_VARIANT(engine_kernel, ENGINE_CONFIG, f16, false, none)

fulcrum::Registry engine_registry() {
  static const fulcrum::RegisteredKernel kernels[] = {
      {ENGINE_CONFIG, engine_kernel_variant::kind, reinterpret_cast<const void*>(&engine_kernel)}};
  fulcrum::Registry registry;
  registry.kernels = kernels;
  registry.num_kernels = 1;
  return registry;
}
