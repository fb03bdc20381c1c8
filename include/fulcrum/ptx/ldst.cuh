// Loads and stores of global and shared memory, one function per PTX instruction and width.
//
// Called by everything on the device: the only way kernels touch memory.
// Invariant: addresses are the types of ptx/address.cuh, which cannot be dereferenced, so no access goes past these
// functions.
#pragma once
#include <fulcrum/ptx/address.cuh>

FULCRUM_NAMESPACE_BEGIN

namespace ptx {

// First byte of the block's dynamic shared memory, 1024-byte aligned by the launch.
FULCRUM_DEVICE SharedAddress dynamic_shared() {
  extern __shared__ __align__(1024) uint8_t fulcrum_dynamic_shared[];
  return {uint32_t(__cvta_generic_to_shared(fulcrum_dynamic_shared))};
}

// Global loads: coherent.

FULCRUM_DEVICE uint8_t ld_global_u8(GlobalAddress<const uint8_t> address) {
  uint32_t value;
  asm volatile("ld.global.u8 %0, [%1];" : "=r"(value) : "l"(address.pointer));
  return uint8_t(value);
}

FULCRUM_DEVICE uint32_t ld_global_u32(GlobalAddress<const uint32_t> address) {
  uint32_t value;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(address.pointer));
  return value;
}

FULCRUM_DEVICE int32_t ld_global_s32(GlobalAddress<const int32_t> address) {
  int32_t value;
  asm volatile("ld.global.s32 %0, [%1];" : "=r"(value) : "l"(address.pointer));
  return value;
}

FULCRUM_DEVICE float ld_global_f32(GlobalAddress<const float> address) {
  float value;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(address.pointer));
  return value;
}

FULCRUM_DEVICE uint64_t ld_global_u64(GlobalAddress<const uint64_t> address) {
  uint64_t value;
  asm volatile("ld.global.u64 %0, [%1];" : "=l"(value) : "l"(address.pointer));
  return value;
}

FULCRUM_DEVICE Vec4 ld_global_v4(GlobalAddress<const Vec4> address) {
  Vec4 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address.pointer));
  return v;
}

// Global loads: read-only for the life of the kernel.

FULCRUM_DEVICE uint8_t ld_global_nc_u8(GlobalAddress<const uint8_t> address) {
  uint32_t value;
  asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(value) : "l"(address.pointer));
  return uint8_t(value);
}

FULCRUM_DEVICE uint32_t ld_global_nc_u32(GlobalAddress<const uint32_t> address) {
  uint32_t value;
  asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(address.pointer));
  return value;
}

FULCRUM_DEVICE int32_t ld_global_nc_s32(GlobalAddress<const int32_t> address) {
  int32_t value;
  asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(value) : "l"(address.pointer));
  return value;
}

FULCRUM_DEVICE uint64_t ld_global_nc_u64(GlobalAddress<const uint64_t> address) {
  uint64_t value;
  asm volatile("ld.global.nc.u64 %0, [%1];" : "=l"(value) : "l"(address.pointer));
  return value;
}

FULCRUM_DEVICE float ld_global_nc_f32(GlobalAddress<const float> address) {
  float value;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(address.pointer));
  return value;
}

FULCRUM_DEVICE Vec4 ld_global_nc_v4(GlobalAddress<const Vec4> address) {
  Vec4 v;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address.pointer));
  return v;
}

// Read once: leaves no line in L1.
FULCRUM_DEVICE Vec4 ld_global_nc_no_allocate_v4(GlobalAddress<const Vec4> address) {
  Vec4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address.pointer));
  return v;
}

// Global stores.

FULCRUM_DEVICE void st_global_u8(GlobalAddress<uint8_t> address, uint8_t value) {
  asm volatile("st.global.u8 [%0], %1;" ::"l"(address.pointer), "r"(uint32_t(value)) : "memory");
}

FULCRUM_DEVICE void st_global_u16(GlobalAddress<uint16_t> address, uint16_t value) {
  asm volatile("st.global.u16 [%0], %1;" ::"l"(address.pointer), "h"(value) : "memory");
}

FULCRUM_DEVICE void st_global_u32(GlobalAddress<uint32_t> address, uint32_t value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(address.pointer), "r"(value) : "memory");
}

FULCRUM_DEVICE void st_global_s32(GlobalAddress<int32_t> address, int32_t value) {
  asm volatile("st.global.s32 [%0], %1;" ::"l"(address.pointer), "r"(value) : "memory");
}

FULCRUM_DEVICE void st_global_f32(GlobalAddress<float> address, float value) {
  asm volatile("st.global.f32 [%0], %1;" ::"l"(address.pointer), "f"(value) : "memory");
}

FULCRUM_DEVICE void st_global_v4(GlobalAddress<Vec4> address, Vec4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address.pointer), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// Shared memory.

FULCRUM_DEVICE uint8_t ld_shared_u8(SharedAddress address) {
  uint32_t value;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(address.value));
  return uint8_t(value);
}

FULCRUM_DEVICE uint16_t ld_shared_u16(SharedAddress address) {
  uint16_t value;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(address.value));
  return value;
}

FULCRUM_DEVICE uint32_t ld_shared_u32(SharedAddress address) {
  uint32_t value;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address.value));
  return value;
}

FULCRUM_DEVICE int32_t ld_shared_s32(SharedAddress address) {
  int32_t value;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(value) : "r"(address.value));
  return value;
}

FULCRUM_DEVICE Vec2 ld_shared_v2(SharedAddress address) {
  Vec2 v;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address.value));
  return v;
}

FULCRUM_DEVICE Vec4 ld_shared_v4(SharedAddress address) {
  Vec4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address.value));
  return v;
}

FULCRUM_DEVICE void st_shared_u8(SharedAddress address, uint8_t value) {
  asm volatile("st.shared.u8 [%0], %1;" ::"r"(address.value), "r"(uint32_t(value)) : "memory");
}

FULCRUM_DEVICE void st_shared_u16(SharedAddress address, uint16_t value) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(address.value), "h"(value) : "memory");
}

FULCRUM_DEVICE void st_shared_u32(SharedAddress address, uint32_t value) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address.value), "r"(value) : "memory");
}

FULCRUM_DEVICE void st_shared_s32(SharedAddress address, int32_t value) {
  asm volatile("st.shared.s32 [%0], %1;" ::"r"(address.value), "r"(value) : "memory");
}

FULCRUM_DEVICE void st_shared_v2(SharedAddress address, Vec2 v) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address.value), "r"(v.x), "r"(v.y) : "memory");
}

FULCRUM_DEVICE void st_shared_v4(SharedAddress address, Vec4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address.value), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

}  // namespace ptx

FULCRUM_NAMESPACE_END
