// The programs as kernels of sm_90a.
//
// Linked into the device tests. Invariant: every program is listed once.
#include "programs.cuh"
#include "programs.hpp"
#include "wgmma_programs.cuh"

#include <cstring>

namespace fulcrum::programs {
namespace {

struct Program {
  const char* name;
  const void* kernel;
};

const Program all_programs[] = {
    {"tensor_copy", reinterpret_cast<const void*>(program_tensor_copy)},
    {"bulk_copy", reinterpret_cast<const void*>(program_bulk_copy)},
    {"cp_async_groups", reinterpret_cast<const void*>(program_cp_async_groups)},
    {"mbarrier_phases", reinterpret_cast<const void*>(program_mbarrier_phases)},
    {"fragments", reinterpret_cast<const void*>(program_fragments)},
    {"e4m3", reinterpret_cast<const void*>(program_e4m3)},
    {"wgmma_registers", reinterpret_cast<const void*>(program_wgmma_registers)},
    {"wgmma_descriptors", reinterpret_cast<const void*>(program_wgmma_descriptors)},
};

}  // namespace

cuda_api::Function program(const char* name) {
  for (const Program& each : all_programs)
    if (std::strcmp(each.name, name) == 0) return {each.kernel};
  return {};
}

}  // namespace fulcrum::programs
