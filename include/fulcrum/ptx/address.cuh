// Addresses of global and shared memory as kernels hold them.
//
// Called by everything on the device. Invariant: an address cannot be dereferenced, so that all access goes through the
// functions of ptx/.
#pragma once
#include <fulcrum/core/types.h>

FULCRUM_NAMESPACE_BEGIN

// An address in device memory; arithmetic counts elements of T, in 64 bits.
template <class T>
struct GlobalAddress {
  T* pointer;

  FULCRUM_DEVICE GlobalAddress operator+(int64_t elements) const { return {pointer + elements}; }
};

template <class T>
FULCRUM_DEVICE GlobalAddress<T> global_address(T* pointer) {
  return {pointer};
}

// The same address seen as another element type.
template <class To, class From>
FULCRUM_DEVICE GlobalAddress<To> address_cast(GlobalAddress<From> address) {
  return {reinterpret_cast<To*>(address.pointer)};
}

// A byte address in the block's shared memory window.
struct SharedAddress {
  uint32_t value;

  FULCRUM_DEVICE SharedAddress operator+(uint32_t bytes) const { return {value + bytes}; }
};

FULCRUM_NAMESPACE_END
