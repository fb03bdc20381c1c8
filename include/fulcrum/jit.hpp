// Opt-in: compiles a Config with NVRTC at run time, through a content-addressed cache on disk.
//
// Called by engines that carry the headers (embedded, or a folder), by the tuner and by verify. The parts are in jit/:
// headers, nvrtc (finding and driving the library), cache (files), cubin (what machine code says about itself).
// Invariant: what a cubin depends on - header text, source, options, NVRTC build, architecture, environment - is its
// key, so a cached cubin is the one a fresh compile would give. Every function here is thread-safe and may run in
// many processes on one cache.
#pragma once

#include <fulcrum/host/kernel.hpp>
#include <fulcrum/jit/cache.hpp>
#include <fulcrum/jit/cubin.hpp>
#include <fulcrum/jit/headers.hpp>
#include <fulcrum/jit/nvrtc.hpp>

#include <ctime>
#include <string>

FULCRUM_NAMESPACE_BEGIN
namespace jit {

struct Options {
  Headers headers{};
  const char* nvrtc_path = nullptr;    // libnvrtc.so or its folder, several joined by ':'; null: see find_nvrtc()
  const char* cache_folder = nullptr;  // null: see cache_folder(); "": no cache
};

/// The outcome of one compile. On failure `status` says what, and `explanation` says it in full, with the compiler's
/// first error and the Config; `log` is all that NVRTC printed.
struct Cubin {
  Status status{};
  std::string explanation;
  std::string warning;  // not empty when the cache cannot be used: print it once
  std::string entry;    // extern "C" name of the kernel
  std::string source;
  std::string code;  // the ELF image
  std::string log;
  CubinInfo info{};  // registers, spills, shared memory, machine-code hash, ptxas version
  Config config{};   // of compile_cubin only, with its Run levers as they were asked for
  KernelKind kind{};
  Arch arch{0};
  bool from_cache = false;
  double compile_seconds = 0;  // loading NVRTC included; 0 from the cache
  double load_seconds = 0;     // everything else: headers, key, files, checksum, waiting for another process's compile
};

/// The entry name of a variant: "fulcrum_f16_gate_up_silu_mma_sync_n64_..."; Run levers do not take part.
inline std::string entry_name(const Config& config, const KernelKind& kind) {
  char id[config_text_capacity];
  (void)write_id(config, id, static_cast<int32_t>(sizeof id));
  std::string name = std::string("fulcrum_") + value_name(kind.dtype);
  if (kind.gate_up) name += "_gate_up";
  if (kind.activation != Activation::none) name += std::string("_") + value_name(kind.activation);
  return name + "_" + id;
}

/// The source text of a variant: what codegen's .cu files say too.
inline std::string variant_source(const Config& config, const KernelKind& kind) {
  char text[config_text_capacity];
  (void)write_config(without_run_levers(config), text, static_cast<int32_t>(sizeof text));
  return "#include <fulcrum/entry.cuh>\nFULCRUM_VARIANT(" + entry_name(config, kind) + ", \"" + text + "\", " +
         value_name(kind.dtype) + ", " + (kind.gate_up ? "true" : "false") + ", " + value_name(kind.activation) + ")\n";
}

namespace detail {

inline double now_seconds() {
  timespec time{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// NVRTC reads more options from these, so their values are part of the key.
inline constexpr const char* option_variables[] = {"NVRTC_APPEND_FLAGS", "NVRTC_PREPEND_FLAGS"};

inline std::vector<std::string> compile_options(Arch arch) {
  // Functions without a space are constexpr ones that device code calls in constant expressions only; NVRTC has no host
  // to put them on. -v puts registers and spills of the entry into the log. NVRTC's own cache would keep every cubin a
  // second time.
  return {std::string("--gpu-architecture=") + arch_name(arch), "--std=c++17", "--device-as-default-execution-space",
          "--ptxas-options=-v", "--no-cache"};
}

inline std::string cache_key(const std::string& source, const std::vector<std::string>& options,
                             const HeaderSet& headers, const NvrtcFile& nvrtc) {
  Fnv128 hash;
  hash.add_text(source);
  hash.add_text(nvrtc.build);
  for (const std::string& option : options) hash.add_text(option);
  for (const char* variable : option_variables) {
    const char* value = std::getenv(variable);
    hash.add_text(value != nullptr ? value : "");
  }
  for (size_t index = 0; index < headers.names.size(); ++index) {
    hash.add_text(headers.names[index]);
    hash.add_text(headers.texts[index]);
  }
  return hash.hex();
}

inline void fail(Cubin& cubin, const Status& status) {
  cubin.status = status;
  cubin.explanation = message(status);
}

inline void accept(Cubin& cubin, CacheEntry&& entry, bool from_cache) {
  cubin.code = static_cast<std::string&&>(entry.code);
  cubin.log = static_cast<std::string&&>(entry.log);
  cubin.from_cache = from_cache;
  cubin.info = inspect_cubin(cubin.code, cubin.entry);
  add_spills(cubin.log, cubin.entry, cubin.info);
  if (!cubin.info.valid) {
    fail(cubin, make_error(Code::compile,
                           "NVRTC gave code without the kernel it was asked for; its source must define an "
                           "extern \"C\" __global__ function of that name"));
  }
}

/// Runs NVRTC and fills `cubin`, adding its time.
inline void compile_fresh(Cubin& cubin, const std::vector<std::string>& options, const HeaderSet& headers,
                          const NvrtcFile& file) {
  const double begin = now_seconds();
  const Result<Nvrtc> nvrtc = open_nvrtc(file);
  Status status = nvrtc.ok() ? check_arch(*nvrtc, cubin.arch) : nvrtc.status();
  if (!status.ok()) return fail(cubin, status);
  CompileInput input;
  input.source = cubin.source;
  input.file_name = cubin.entry + ".cu";
  input.options = options;
  input.names = headers.names;
  input.texts = headers.texts;
  CompileOutput output = compile_with(*nvrtc, input);
  cubin.compile_seconds = now_seconds() - begin;
  if (output.ok)
    return accept(cubin, CacheEntry{static_cast<std::string&&>(output.code), static_cast<std::string&&>(output.log)},
                  false);
  cubin.log = static_cast<std::string&&>(output.log);
  fail(cubin, make_error(Code::compile, "{subject} {value}.{limit} refused the source; the log has its reasons",
                         compiler_name, nvrtc->major, nvrtc->minor));
  cubin.explanation += "\nfirst error: " + first_error(cubin.log);
}

/// The cache, then NVRTC under the key's lock.
inline void find_or_compile(Cubin& cubin, const Options& options) {
  HeaderSet headers;
  Status status = options.headers.num_files > 0 || options.headers.folder != nullptr
                      ? collect_headers(options.headers, headers)
                      : success();
  if (!status.ok()) return fail(cubin, status);
  const Result<NvrtcFile> nvrtc = find_nvrtc(options.nvrtc_path);
  if (!nvrtc.ok()) return fail(cubin, nvrtc.status());
  const std::vector<std::string> arguments = compile_options(cubin.arch);
  const std::string folder = cache_folder(options.cache_folder);
  if (folder.empty()) return compile_fresh(cubin, arguments, headers, *nvrtc);

  const std::string key = cache_key(cubin.source, arguments, headers, *nvrtc);
  CacheEntry entry;
  if (read_entry(folder, key, entry)) return accept(cubin, static_cast<CacheEntry&&>(entry), true);
  (void)make_folders(folder);
  const FileLock lock(folder + "/" + key + ".lock");
  // While this one waited, the lock's former holder may have published the very entry.
  if (lock.status().ok() && read_entry(folder, key, entry))
    return accept(cubin, static_cast<CacheEntry&&>(entry), true);
  compile_fresh(cubin, arguments, headers, *nvrtc);
  if (!cubin.status.ok()) return;
  status = lock.status().ok() ? write_entry(folder, key, CacheEntry{cubin.code, cubin.log}) : lock.status();
  if (!status.ok())
    cubin.warning = "the cache of compiled kernels in " + folder +
                    " cannot be used, so every start compiles again: " + message(status);
}

}  // namespace detail

/// Compiles any source that defines the extern "C" kernel `entry`, or takes it from the cache; `options.headers` may be
/// empty when it includes nothing. Needs no GPU. Errors: not_found (NVRTC, headers); unsupported (NVRTC too old for
/// `arch`, both versions); compile.
inline Cubin compile_source(const std::string& source, const std::string& entry, Arch arch,
                            const Options& options = {}) {
  const double begin = detail::now_seconds();
  Cubin cubin;
  cubin.source = source;
  cubin.entry = entry;
  cubin.arch = arch;
  if (arch_name(arch) == nullptr) {
    detail::fail(cubin, make_error(Code::unsupported, "compute capability {value} is not one that fulcrum compiles for",
                                   "arch", arch.cc));
    return cubin;
  }
  detail::find_or_compile(cubin, options);
  cubin.load_seconds = detail::now_seconds() - begin - cubin.compile_seconds;
  return cubin;
}

/// Compiles the GEMM kernel of (config, kind) for `arch`, or takes it from the cache. Error: illegal_config with the
/// rule that refuses it; else as compile_source.
inline Cubin compile_cubin(const Config& config, const KernelKind& kind, Arch arch, const Options& options = {}) {
  Cubin cubin;
  const char* reason = illegal_reason(config, arch, kind);
  if (reason != nullptr) {
    detail::fail(cubin, make_error(Code::illegal_config, "{detail}", "config", 0, 0, reason));
  } else if (options.headers.num_files == 0 && options.headers.folder == nullptr) {
    detail::fail(cubin, make_error(Code::not_found, detail::headers_missing_rule, "", 0, 0, "none were given"));
  } else {
    cubin = compile_source(variant_source(config, kind), entry_name(config, kind), arch, options);
  }
  cubin.config = config;
  cubin.kind = kind;
  cubin.arch = arch;
  if (!cubin.status.ok()) {
    char text[config_text_capacity];
    (void)write_config(config, text, static_cast<int32_t>(sizeof text));
    cubin.explanation += std::string("\nconfig: ") + text;
  }
  return cubin;
}

/// Makes a compiled GEMM kernel launchable. Errors: the cubin's own; no_device; cuda.
inline Result<Kernel> load(const Cubin& cubin) {
  if (!cubin.status.ok()) return cubin.status;
  Kernel kernel = describe_kernel(cubin.config, cubin.kind, cubin.arch);
  const Result<cuda_api::Library> library = cuda_api::load_library(cubin.code.data());
  if (!library.ok()) return library.status();
  const Result<cuda_api::Function> function = cuda_api::find_function(*library, cubin.entry.c_str());
  if (!function.ok()) {
    (void)cuda_api::unload_library(*library);
    return function.status();
  }
  kernel.library = *library;
  kernel.function = *function;
  kernel.registers = cubin.info.registers;
  kernel.spill_bytes = cubin.info.stack_bytes;
  return kernel;
}

/// compile_cubin and load in one. `explanation`, when given, receives the words of a failure.
inline Result<Kernel> compile(const Config& config, const KernelKind& kind, Arch arch, const Options& options = {},
                              std::string* explanation = nullptr) {
  const Cubin cubin = compile_cubin(config, kind, arch, options);
  if (explanation != nullptr) *explanation = cubin.explanation;
  return load(cubin);
}

/// A helper kernel, compiled and loaded; the sources are in host/weights.hpp and host/routing.hpp.
inline Result<Auxiliary> compile_auxiliary(const AuxiliarySource& source, Arch arch, const Options& options = {},
                                           std::string* explanation = nullptr) {
  if (source.name[0] == 0) {
    return make_error(Code::invalid_argument,
                      "there is no such helper kernel: weights that are read in place are not "
                      "repacked");
  }
  const Cubin cubin = compile_source(source.source, source.name, arch, options);
  if (explanation != nullptr) *explanation = cubin.explanation;
  if (!cubin.status.ok()) return cubin.status;
  const Result<cuda_api::Library> library = cuda_api::load_library(cubin.code.data());
  if (!library.ok()) return library.status();
  const Result<cuda_api::Function> function = cuda_api::find_function(*library, source.name);
  if (!function.ok()) {
    (void)cuda_api::unload_library(*library);
    return function.status();
  }
  return Auxiliary{source.name, arch, *function, *library};
}

}  // namespace jit
FULCRUM_NAMESPACE_END
