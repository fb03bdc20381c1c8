// Kernels compiled at run time with the headers that the tools carry.
//
// Called by verify, probe, bench, check_variant and the tuner's workers.
// Invariant: a failure is an exception with the compiler's first error and the Config in its words.
#pragma once

#include <fulcrum/jit.hpp>

#include <string>

namespace fulcrum::harness {

// The carried headers, and NVRTC and the cache where the environment says.
jit::Options jit_options();

// A kernel, loaded on the current device, with what its machine code says about itself.
struct CompiledKernel {
  Kernel kernel;
  jit::CubinInfo info;
};

// Compiles (or takes from the cache) and loads. Throws InputError when it does not compile, DeviceError when it does
// not load.
CompiledKernel compile_kernel(const Config& config, const KernelKind& kind, Arch arch);

// The same for a helper kernel, of packing or routing.
Auxiliary compile_helper(const AuxiliarySource& source, Arch arch);

// The device that the tools use: the current one. Throws DeviceError (code no_device) when there is none.
Device current_device();

// Reads a Config; throws InputError with the position and what is wrong.
Config read_config(const std::string& text);
std::string config_text(const Config& config);

}  // namespace fulcrum::harness
