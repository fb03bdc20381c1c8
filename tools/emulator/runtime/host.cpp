// The functions of host.h: memory and launches, and variants loaded from the bytes of a shared library.
#include <emulator/host.h>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <string>

#include "runtime/machine.hpp"

namespace fulcrum::emulator {
namespace {

// Statuses hold pointers for ever.
const char* keep(const std::string& words) {
  static std::deque<std::string> kept;
  return kept.emplace_back(words).c_str();
}

// Bytes of an ELF image: its section headers stand last.
uint64_t image_bytes(const void* image) {
  Elf64_Ehdr header{};
  std::memcpy(&header, image, sizeof header);
  return header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
}

// The file of each loaded library stays open, because the loader knows a library by its path, and the path is the
// descriptor's number.
std::map<void*, int>& files() {
  static std::map<void*, int> open;
  return open;
}

}  // namespace

void* allocate(uint64_t bytes) { return Machine::instance().memory.allocate(bytes); }
bool release(void* memory) { return Machine::instance().memory.release(memory); }
void copy(void* to, const void* from, uint64_t bytes) { Machine::instance().memory.copy(to, from, bytes); }
void set(void* memory, int byte, uint64_t bytes) { Machine::instance().memory.set(memory, byte, bytes); }
void set_seed(uint64_t seed) { Machine::instance().options.seed = seed; }

const char* run(const Entry* entry, uint32_t blocks, uint32_t threads, uint32_t shared_bytes, const void* argument) {
  const std::string words = Machine::instance().run(*entry, {blocks, threads, shared_bytes}, argument);
  return words.empty() ? nullptr : keep(words);
}

void* load_image(const void* image, const char** error) {
  const int file = ::memfd_create("fulcrum_variant", MFD_CLOEXEC);
  const auto bytes = static_cast<ssize_t>(image_bytes(image));
  void* library = nullptr;
  if (file >= 0 && ::write(file, image, static_cast<size_t>(bytes)) == bytes)
    library = ::dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) {
    files()[library] = file;
    return library;
  }
  *error = keep(file >= 0 ? ::dlerror() : std::strerror(errno));
  if (file >= 0) ::close(file);
  return nullptr;
}

void unload_image(void* library) {
  (void)::dlclose(library);
  ::close(files()[library]);
  files().erase(library);
}

const Entry* find_entry(void* library, const char* name) {
  return static_cast<const Entry*>(::dlsym(library, (std::string(name) + "_entry").c_str()));
}

}  // namespace fulcrum::emulator
