// How the test reaches the programs: by name, as functions that can be launched.
//
// programs.cu defines it for a GPU; the emulator has a definition of its own.
#pragma once

#include <fulcrum/host/cuda_api.hpp>

#include "programs.h"

namespace fulcrum::programs {

// The kernel program_<name>, of one struct of programs.h; an empty Function when there is none.
cuda_api::Function program(const char* name);

}  // namespace fulcrum::programs
