// The twin of jit/cubin.hpp: a variant for the emulator is a shared library, which says nothing of registers.
//
// Found first by sources that are built for the emulator.
#pragma once

#include <fulcrum/host/hash.hpp>

#include <string>

FULCRUM_NAMESPACE_BEGIN
namespace jit {

struct CubinInfo {
  bool valid = false;
  uint32_t registers = 0;
  uint32_t stack_bytes = 0;
  uint32_t spill_store_bytes = 0;
  uint32_t spill_load_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint64_t code_bytes = 0;
  std::string ptxas;
  std::string machine;
};

inline CubinInfo inspect_cubin(const std::string& code, const std::string&) {
  CubinInfo info;
  info.valid = code.size() > 64;
  info.code_bytes = code.size();
  return info;
}

inline void add_spills(const std::string&, const std::string&, CubinInfo&) {}

}  // namespace jit
FULCRUM_NAMESPACE_END
