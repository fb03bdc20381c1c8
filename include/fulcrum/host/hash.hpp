// FNV-1a in 64 and 128 bits: checksums of files and keys of the compile cache.
//
// Called by table_text.hpp and jit/. Offsets and primes are those of the FNV specification
// (draft-eastlake-fnv, sections 5 and 6). Not cryptographic: it guards against accidents, not against an enemy.
// Invariant: update(a) then update(b) equals update(a followed by b); add_text() also hashes the length, so that
// fields cannot run into each other.
#pragma once

#include <fulcrum/core/types.h>

#include <cstdio>
#include <cstring>
#include <string>

FULCRUM_NAMESPACE_BEGIN

class Fnv64 {
 public:
  void update(const void* data, uint64_t length) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (uint64_t at = 0; at < length; ++at) state_ = (state_ ^ bytes[at]) * 0x00000100000001B3ull;
  }
  uint64_t value() const { return state_; }
  std::string hex() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016lx", static_cast<unsigned long>(state_));
    return text;
  }

 private:
  uint64_t state_ = 0xCBF29CE484222325ull;
};

class Fnv128 {
 public:
  void update(const void* data, uint64_t length) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (uint64_t at = 0; at < length; ++at) state_ = (state_ ^ bytes[at]) * prime;
  }
  /// Hashes a field: its length, then its bytes.
  void add(const void* data, uint64_t length) {
    update(&length, sizeof length);
    update(data, length);
  }
  void add_text(const char* text) { add(text, std::strlen(text)); }
  void add_text(const std::string& text) { add(text.data(), text.size()); }

  /// 32 lower-case hexadecimal digits.
  std::string hex() const {
    char text[33];
    std::snprintf(text, sizeof text, "%016lx%016lx", static_cast<unsigned long>(state_ >> 64),
                  static_cast<unsigned long>(state_));
    return text;
  }

 private:
  __extension__ typedef unsigned __int128 Word;  // nvcc takes no __extension__ before `using`
  static constexpr Word prime = (Word{1} << 88) + 0x13B;
  Word state_ = (Word{0x6C62272E07BB0142ull} << 64) + 0x62B821756295C58Dull;
};

FULCRUM_NAMESPACE_END
