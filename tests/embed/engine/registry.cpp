// The registry that fulcrum_add_kernels rendered, with the helper kernels an engine without NVRTC needs, and the
// headers that one with NVRTC would compile from.
#include <engine_moe_kernels.hpp>
#include <fulcrum_embedded_headers.hpp>

#include <fulcrum/host/routing.hpp>

#include "kernels.hpp"

fulcrum::Registry engine_registry() {
  const fulcrum::Registry registry = engine_moe_kernels();
  const bool complete = fulcrum::find_auxiliary(registry, fulcrum::routing_sources[0].name).ok() &&
                        fulcrum::find_auxiliary(registry, "fulcrum_pack_modelopt_f16_natural").ok() &&
                        fulcrum::num_embedded_headers > 0;
  return complete ? registry : fulcrum::Registry{};
}
