// The programs as kernels of the emulator.
//
// Linked into the emulator's tests. Invariant: every program is listed once.
#include <emulator/host.h>

#include <cstring>

#include "programs.cuh"
#include "programs.hpp"
#include "wgmma_programs.cuh"

namespace fulcrum::programs {
namespace {

using emulator::make_entry;

const emulator::Entry all_programs[] = {
    make_entry<TensorCopyParams, &program_tensor_copy>("tensor_copy"),
    make_entry<BulkCopyParams, &program_bulk_copy>("bulk_copy"),
    make_entry<CpAsyncParams, &program_cp_async_groups>("cp_async_groups"),
    make_entry<PhasesParams, &program_mbarrier_phases>("mbarrier_phases"),
    make_entry<FragmentsParams, &program_fragments>("fragments"),
    make_entry<E4m3Params, &program_e4m3>("e4m3"),
    make_entry<WgmmaParams, &program_wgmma_registers>("wgmma_registers"),
    make_entry<WgmmaParams, &program_wgmma_descriptors>("wgmma_descriptors"),
};

}  // namespace

cuda_api::Function program(const char* name) {
  for (const emulator::Entry& each : all_programs)
    if (std::strcmp(each.name, name) == 0) return {&each};
  return {};
}

}  // namespace fulcrum::programs
