// Where the engine's kernels come from: rendered from the table by fulcrum_add_kernels, or its own .cu (own_kernel.cu).
#pragma once
#include <fulcrum/host/kernel.hpp>

fulcrum::Registry engine_registry();
