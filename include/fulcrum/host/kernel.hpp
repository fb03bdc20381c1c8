// A Config made runnable, and the two ways of finding one that is already in the program.
//
// Called by engines (find_kernel with the registry that fulcrum_add_kernels renders) and by jit.hpp, which makes the
// same Kernel from a cubin. plan.hpp turns a Kernel into a Plan.
// Invariant: a Kernel is a plain value; its code stays loaded until unload_kernel() or the end of the process.
#pragma once

#include <fulcrum/core/config.h>
#include <fulcrum/core/rules.h>
#include <fulcrum/host/cuda_api.hpp>

FULCRUM_NAMESPACE_BEGIN

/// A GEMM kernel of one Config for one KernelKind. registers and spill_bytes are 0 until they are known: from the
/// cubin (JIT) at once, for compiled-in kernels when make_plan() loads them.
struct Kernel {
  Config config{};
  KernelKind kind{};
  Arch arch{0};  // what the code was compiled for; cc 0: compiled in, the loader picks
  cuda_api::Function function{};
  cuda_api::Library library{};  // empty for compiled-in kernels
  uint32_t threads = 0;
  uint32_t shared_bytes = 0;  // dynamic, as rules.h counts it
  uint32_t registers = 0;
  uint32_t spill_bytes = 0;  // local memory of a thread
};

/// A helper kernel (repack, routing) that takes one parameter struct by value.
struct Auxiliary {
  const char* name = "";  // its extern "C" entry
  Arch arch{0};
  cuda_api::Function function{};
  cuda_api::Library library{};
};

/// The source of a helper kernel: one #include and one extern "C" entry, compiled by jit::compile_auxiliary.
struct AuxiliarySource {
  const char* name;
  const char* source;
};

/// One line of a registry that codegen renders into the program.
struct RegisteredKernel {
  const char* config_text;  // canonical text of write_config, Run levers at their defaults
  KernelKind kind;
  const void* function;  // address of the __global__ entry
};
struct RegisteredAuxiliary {
  const char* name;
  const void* function;
};
struct Registry {
  const RegisteredKernel* kernels = nullptr;
  uint64_t num_kernels = 0;
  const RegisteredAuxiliary* auxiliaries = nullptr;
  uint64_t num_auxiliaries = 0;
};

/// A Kernel without code: the fields that follow from (config, kind) alone.
inline Kernel describe_kernel(const Config& config, const KernelKind& kind, Arch arch) {
  Kernel kernel;
  kernel.config = config;
  kernel.kind = kind;
  kernel.arch = arch;
  kernel.threads = block_threads(config);
  kernel.shared_bytes = shared_memory(config).total_bytes;
  return kernel;
}

/// The compiled-in kernel of (config, kind). Run levers do not take part: they compile to the same code.
/// Error: not_found. Thread-safe.
inline Result<Kernel> find_kernel(const Registry& registry, const Config& config, const KernelKind& kind) {
  const Config wanted = without_run_levers(config);
  for (uint64_t index = 0; index < registry.num_kernels; ++index) {
    const RegisteredKernel& candidate = registry.kernels[index];
    Config compiled{};
    if (!(candidate.kind == kind) || parse_config(candidate.config_text, compiled).what != nullptr) continue;
    if (!(compiled == wanted)) continue;
    Kernel kernel = describe_kernel(config, kind, Arch{0});
    kernel.function.address = candidate.function;
    return kernel;
  }
  return make_error(Code::not_found,
                    "this Config is not among the {limit} kernels compiled in; add it to the table given to "
                    "fulcrum_add_kernels, or compile it with jit::compile",
                    "config", 0, static_cast<int64_t>(registry.num_kernels));
}

/// The compiled-in helper kernel called `name`. Error: not_found. Thread-safe.
inline Result<Auxiliary> find_auxiliary(const Registry& registry, const char* name) {
  for (uint64_t index = 0; index < registry.num_auxiliaries; ++index) {
    const RegisteredAuxiliary& candidate = registry.auxiliaries[index];
    if (std::string(candidate.name) != name) continue;
    Auxiliary auxiliary;
    auxiliary.name = candidate.name;
    auxiliary.function.address = candidate.function;
    return auxiliary;
  }
  return make_error(Code::not_found,
                    "helper kernel {subject} is not compiled in; compile it with jit::compile_auxiliary", name);
}

/// Frees the code of a kernel that jit::load made; no Plan of it may be used afterwards. Not for compiled-in kernels.
inline Status unload_kernel(Kernel& kernel) {
  if (kernel.library.handle == nullptr) return success();
  const Status status = cuda_api::unload_library(kernel.library);
  kernel.library = {};
  kernel.function = {};
  return status;
}

FULCRUM_NAMESPACE_END
