// Emulated loads and stores of global and shared memory.
#pragma once
#include <emulator/device.h>
#include <fulcrum/ptx/address.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

FULCRUM_DEVICE SharedAddress dynamic_shared() { return {emulator::shared_base}; }

namespace emulated {

template <class T>
T load_global(const char* what, GlobalAddress<const T> address, bool constant) {
  T value;
  emulator::load_global(what, address.pointer, &value, sizeof value, constant);
  return value;
}

template <class T>
T load_shared(const char* what, SharedAddress address) {
  T value;
  emulator::load_shared(what, address.value, &value, sizeof value);
  return value;
}

}  // namespace emulated

// Global loads: coherent.

FULCRUM_DEVICE uint8_t ld_global_u8(GlobalAddress<const uint8_t> address) {
  return emulated::load_global(__func__, address, false);
}
FULCRUM_DEVICE uint32_t ld_global_u32(GlobalAddress<const uint32_t> address) {
  return emulated::load_global(__func__, address, false);
}
FULCRUM_DEVICE int32_t ld_global_s32(GlobalAddress<const int32_t> address) {
  return emulated::load_global(__func__, address, false);
}
FULCRUM_DEVICE float ld_global_f32(GlobalAddress<const float> address) {
  return emulated::load_global(__func__, address, false);
}
FULCRUM_DEVICE uint64_t ld_global_u64(GlobalAddress<const uint64_t> address) {
  return emulated::load_global(__func__, address, false);
}
FULCRUM_DEVICE Vec4 ld_global_v4(GlobalAddress<const Vec4> address) {
  return emulated::load_global(__func__, address, false);
}

// Global loads: read-only for the life of the kernel.

FULCRUM_DEVICE uint8_t ld_global_nc_u8(GlobalAddress<const uint8_t> address) {
  return emulated::load_global(__func__, address, true);
}
FULCRUM_DEVICE uint32_t ld_global_nc_u32(GlobalAddress<const uint32_t> address) {
  return emulated::load_global(__func__, address, true);
}
FULCRUM_DEVICE int32_t ld_global_nc_s32(GlobalAddress<const int32_t> address) {
  return emulated::load_global(__func__, address, true);
}
FULCRUM_DEVICE uint64_t ld_global_nc_u64(GlobalAddress<const uint64_t> address) {
  return emulated::load_global(__func__, address, true);
}
FULCRUM_DEVICE float ld_global_nc_f32(GlobalAddress<const float> address) {
  return emulated::load_global(__func__, address, true);
}
FULCRUM_DEVICE Vec4 ld_global_nc_v4(GlobalAddress<const Vec4> address) {
  return emulated::load_global(__func__, address, true);
}
FULCRUM_DEVICE Vec4 ld_global_nc_no_allocate_v4(GlobalAddress<const Vec4> address) {
  return emulated::load_global(__func__, address, true);
}

// Global stores.

FULCRUM_DEVICE void st_global_u8(GlobalAddress<uint8_t> address, uint8_t value) {
  emulator::store_global(__func__, address.pointer, &value, sizeof value);
}
FULCRUM_DEVICE void st_global_u16(GlobalAddress<uint16_t> address, uint16_t value) {
  emulator::store_global(__func__, address.pointer, &value, sizeof value);
}
FULCRUM_DEVICE void st_global_u32(GlobalAddress<uint32_t> address, uint32_t value) {
  emulator::store_global(__func__, address.pointer, &value, sizeof value);
}
FULCRUM_DEVICE void st_global_s32(GlobalAddress<int32_t> address, int32_t value) {
  emulator::store_global(__func__, address.pointer, &value, sizeof value);
}
FULCRUM_DEVICE void st_global_f32(GlobalAddress<float> address, float value) {
  emulator::store_global(__func__, address.pointer, &value, sizeof value);
}
FULCRUM_DEVICE void st_global_v4(GlobalAddress<Vec4> address, Vec4 v) {
  emulator::store_global(__func__, address.pointer, &v, sizeof v);
}

// Shared memory.

FULCRUM_DEVICE uint8_t ld_shared_u8(SharedAddress address) { return emulated::load_shared<uint8_t>(__func__, address); }
FULCRUM_DEVICE uint16_t ld_shared_u16(SharedAddress address) {
  return emulated::load_shared<uint16_t>(__func__, address);
}
FULCRUM_DEVICE uint32_t ld_shared_u32(SharedAddress address) {
  return emulated::load_shared<uint32_t>(__func__, address);
}
FULCRUM_DEVICE int32_t ld_shared_s32(SharedAddress address) {
  return emulated::load_shared<int32_t>(__func__, address);
}
FULCRUM_DEVICE Vec2 ld_shared_v2(SharedAddress address) { return emulated::load_shared<Vec2>(__func__, address); }
FULCRUM_DEVICE Vec4 ld_shared_v4(SharedAddress address) { return emulated::load_shared<Vec4>(__func__, address); }

FULCRUM_DEVICE void st_shared_u8(SharedAddress address, uint8_t value) {
  emulator::store_shared(__func__, address.value, &value, sizeof value);
}
FULCRUM_DEVICE void st_shared_u16(SharedAddress address, uint16_t value) {
  emulator::store_shared(__func__, address.value, &value, sizeof value);
}
FULCRUM_DEVICE void st_shared_u32(SharedAddress address, uint32_t value) {
  emulator::store_shared(__func__, address.value, &value, sizeof value);
}
FULCRUM_DEVICE void st_shared_s32(SharedAddress address, int32_t value) {
  emulator::store_shared(__func__, address.value, &value, sizeof value);
}
FULCRUM_DEVICE void st_shared_v2(SharedAddress address, Vec2 v) {
  emulator::store_shared(__func__, address.value, &v, sizeof v);
}
FULCRUM_DEVICE void st_shared_v4(SharedAddress address, Vec4 v) {
  emulator::store_shared(__func__, address.value, &v, sizeof v);
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
