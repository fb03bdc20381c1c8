// What the twin of cuda_api.hpp asks of the machine.
//
// Implemented in tools/emulator/runtime/host.cpp. Invariant: light, because every source that is built for the emulator
// includes it.
#pragma once
#include <fulcrum/core/types.h>

namespace fulcrum::emulator {

// A kernel: what a cuda_api::Function points to. A compiled variant exports one under its name with "_entry" behind.
struct Entry {
  const char* name;
  void (*run)(const void* argument);  // one thread of it
  uint32_t argument_bytes;
};

template <class Argument, void (*kernel)(Argument)>
constexpr Entry make_entry(const char* name) {
  return {name, [](const void* argument) { kernel(*static_cast<const Argument*>(argument)); }, sizeof(Argument)};
}

void* allocate(uint64_t bytes);
bool release(void* memory);
void copy(void* to, const void* from, uint64_t bytes);
void set(void* memory, int byte, uint64_t bytes);

// Runs a grid to its end. Null, or what is wrong with the kernel: words that live as long as the program.
const char* run(const Entry* entry, uint32_t blocks, uint32_t threads, uint32_t shared_bytes, const void* argument);

// Of the order in which everything happens, for the launches that follow.
void set_seed(uint64_t seed);

// A shared library's bytes, loaded; null with words in `error`.
void* load_image(const void* image, const char** error);
void unload_image(void* library);
const Entry* find_entry(void* library, const char* name);

}  // namespace fulcrum::emulator
