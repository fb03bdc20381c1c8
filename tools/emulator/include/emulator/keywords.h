// The CUDA keywords that stand before and inside a kernel's declaration, which mean nothing to a host compiler.
//
// Included by device.h, so before any kernel. Invariant: nothing else of CUDA is defined here; a kernel that names a
// CUDA built-in does not compile for the emulator.
#pragma once

#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __block_size__(...)
