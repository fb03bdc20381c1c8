// Entry points: FULCRUM_VARIANT(name, "config text", dtype, gate_up, activation) defines one kernel `name` in a .cu of
// an engine, of codegen/ or of the JIT. The Config is parsed and checked while compiling; an illegal one does not
// compile.
#pragma once
#include <fulcrum/family/mma_sync.cuh>

FULCRUM_NAMESPACE_BEGIN

constexpr bool is_config_text(const char* text) {
  Config config;
  return parse_config(text, config).what == nullptr;
}

// The Config of a text as device code sees it.
constexpr Config config_of(const char* text) {
  Config config;
  parse_config(text, config);
  return without_run_levers(config);
}

template <class V>
FULCRUM_DEVICE void entry(const Params& params) {
#if defined(__CUDA_ARCH__)
  static_assert(illegal_reason(V::config, Arch{__CUDA_ARCH__ / 10}, V::kind) == nullptr,
                "this Config is illegal here: `fulcrum space --config` says why");
#endif
  static_assert(V::config.family == Family::mma_sync);
  MmaSync<V>::run(params);
}

FULCRUM_NAMESPACE_END

// The block size is part of the kernel where the architecture lets it be declared beside a register bound.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define FULCRUM_BLOCK_SIZE(threads)
#else
#define FULCRUM_BLOCK_SIZE(threads) __block_size__((threads, 1, 1))
#endif

// Registers are bounded by __maxnreg__ alone (launch bounds would override it): register_limit() derives the bound
// from the cap, or from the blocks that shall fit an SM.
#define FULCRUM_VARIANT(name, config_text, dtype_value, gate_up_value, activation_value)          \
  static_assert(::fulcrum::is_config_text(config_text), "not a Config: " config_text);            \
  struct name##_variant {                                                                         \
    static constexpr ::fulcrum::Config config = ::fulcrum::config_of(config_text);                \
    static constexpr ::fulcrum::KernelKind kind{::fulcrum::DType::dtype_value, gate_up_value,     \
                                                ::fulcrum::Activation::activation_value};         \
  };                                                                                              \
  extern "C" __global__ void FULCRUM_BLOCK_SIZE(::fulcrum::block_threads(name##_variant::config)) \
      __maxnreg__(::fulcrum::register_limit(name##_variant::config))                              \
          name(const __grid_constant__ ::fulcrum::Params params) {                                \
    ::fulcrum::entry<name##_variant>(params);                                                     \
  }
