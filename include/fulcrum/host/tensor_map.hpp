// encode_tensor_map(): a description of a matrix becomes the tensor map that kernels take.
//
// Called by launch() for every operand that comes by tensor copies. Invariant: allocates nothing and touches no device;
// a description that the driver would refuse is answered with words that say why.
// Thread-safe.
#pragma once

#include <fulcrum/host/cuda_api.hpp>

FULCRUM_NAMESPACE_BEGIN

namespace tensor_map_rules {

inline constexpr const char* illegal = "{subject} cannot be made: {detail}";

}  // namespace tensor_map_rules

/// The map is a value; it stays good for as long as the tensor's memory does. Errors: invalid_argument for what
/// illegal_tensor_map() names, unsupported for a driver without tensor maps, cuda for anything else that it refuses.
inline Result<TensorMap> encode_tensor_map(const TensorMap2d& tensor) {
  if (const char* reason = illegal_tensor_map(tensor))
    return make_error(Code::invalid_argument, tensor_map_rules::illegal, "the tensor map", 0, 0, reason);
  Result<TensorMap> map{success()};  // filled in place
  const Status status = cuda_api::encode_tensor_map(tensor, *map);
  if (!status.ok()) return status;
  return map;
}

FULCRUM_NAMESPACE_END
