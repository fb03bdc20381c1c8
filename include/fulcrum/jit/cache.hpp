// The cache of compiled code on disk: one file per key, and one lock per key while it is made.
//
// Called by jit.hpp. Many threads and processes may share one folder.
//   <folder>/<key>.cubin  magic, key, sizes of code and log (8 bytes each), code, log, 32 digits of their hash
//   <folder>/<key>.lock   held with flock() by whoever compiles; the kernel drops it when the holder dies
//   <folder>/<key>.tmp    being written by the holder of the lock; a dead holder's is overwritten by the next
// Invariant: a file that is cut short, edited or stored under another key is never returned; it reads as absent.
#pragma once

#include <fulcrum/host/file.hpp>
#include <fulcrum/host/hash.hpp>

#include <cstdlib>
#include <string>

FULCRUM_NAMESPACE_BEGIN
namespace jit {

struct CacheEntry {
  std::string code;
  std::string log;
};

/// The folder to use: `named`, FULCRUM_CACHE_DIR, XDG_CACHE_HOME/fulcrum or ~/.cache/fulcrum. "" is no cache; a
/// variable of the environment that is empty counts as not set.
inline std::string cache_folder(const char* named = nullptr) {
  if (named != nullptr) return named;
  const char* own = std::getenv("FULCRUM_CACHE_DIR");
  if (own != nullptr && *own != '\0') return own;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && *xdg == '/') return std::string(xdg) + "/fulcrum";  // the XDG standard ignores relative paths
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/fulcrum" : "";
}

namespace detail {

inline constexpr char cache_magic[] = "fulcrum-cubin-1\n";  // 16 bytes before the final zero
inline constexpr size_t key_digits = 32;
inline constexpr size_t cache_head_bytes = 16 + key_digits + 16;

inline std::string pack_entry(const std::string& key, const CacheEntry& entry) {
  std::string file = cache_magic + key;
  const uint64_t sizes[2] = {entry.code.size(), entry.log.size()};
  file.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
  file += entry.code;
  file += entry.log;
  Fnv128 hash;
  hash.update(file.data(), file.size());
  return file + hash.hex();
}

inline bool unpack_entry(const std::string& key, const std::string& file, CacheEntry& entry) {
  if (file.size() < cache_head_bytes + key_digits || file.compare(0, 16, cache_magic) != 0) return false;
  if (file.compare(16, key_digits, key) != 0) return false;
  uint64_t sizes[2];
  std::memcpy(sizes, file.data() + 16 + key_digits, sizeof sizes);
  const uint64_t body = file.size() - cache_head_bytes - key_digits;
  if (sizes[0] > body || sizes[1] != body - sizes[0]) return false;
  Fnv128 hash;
  hash.update(file.data(), file.size() - key_digits);
  if (file.compare(file.size() - key_digits, key_digits, hash.hex()) != 0) return false;
  entry.code.assign(file, cache_head_bytes, sizes[0]);
  entry.log.assign(file, cache_head_bytes + sizes[0], sizes[1]);
  return true;
}

}  // namespace detail

/// Reads the entry of `key`; false when there is none or it is damaged.
inline bool read_entry(const std::string& folder, const std::string& key, CacheEntry& entry) {
  std::string file;
  return read_file((folder + "/" + key + ".cubin").c_str(), file).ok() && detail::unpack_entry(key, file, entry);
}

/// Publishes an entry; the caller holds the key's lock. Error: io.
inline Status write_entry(const std::string& folder, const std::string& key, const CacheEntry& entry) {
  const std::string base = folder + "/" + key;
  return publish_file(base + ".cubin", base + ".tmp", detail::pack_entry(key, entry));
}

}  // namespace jit
FULCRUM_NAMESPACE_END
