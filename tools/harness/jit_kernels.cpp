// fulcrum::jit with the headers that the tools carry, its failures turned into exceptions.
//
// Called by the verbs, the tuner, bench and the tests. Invariant: see jit_kernels.hpp.
#include "harness/jit_kernels.hpp"

#include <fmt/format.h>

#include <fulcrum_embedded_headers.hpp>

#include "harness/device_memory.hpp"
#include "harness/input_error.hpp"

namespace fulcrum::harness {

jit::Options jit_options() {
  jit::Options options;
  options.headers.files = embedded_headers;
  options.headers.num_files = num_embedded_headers;
  return options;
}

CompiledKernel compile_kernel(const Config& config, const KernelKind& kind, Arch arch) {
  const jit::Cubin cubin = jit::compile_cubin(config, kind, arch, jit_options());
  if (!cubin.status.ok()) throw InputError(cubin.explanation);
  CompiledKernel compiled;
  compiled.kernel = require(jit::load(cubin), "loading a kernel: ");
  compiled.info = cubin.info;
  return compiled;
}

Auxiliary compile_helper(const AuxiliarySource& source, Arch arch) {
  std::string explanation;
  const Result<Auxiliary> kernel = jit::compile_auxiliary(source, arch, jit_options(), &explanation);
  if (!explanation.empty()) throw InputError(explanation);
  return require(kernel, "loading a kernel: ");
}

Device current_device() { return require(query_device(require(cuda_api::current_device()))); }

Config read_config(const std::string& text) {
  Config config;
  const ConfigError error = parse_config(text.c_str(), config);
  if (error.what == nullptr) return config;
  throw InputError(fmt::format("config '{}': {} at character {} ('{}')", text, error.what, error.position + 1,
                               text.substr(static_cast<size_t>(error.position), 24)));
}

std::string config_text(const Config& config) {
  char text[config_text_capacity];
  (void)write_config(config, text, config_text_capacity);
  return text;
}

}  // namespace fulcrum::harness
