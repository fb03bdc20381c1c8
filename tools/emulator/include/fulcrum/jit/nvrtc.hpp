// The twin of jit/nvrtc.hpp: g++ compiles a variant for the emulator to a shared library; cache, keys and loading stay
// those of jit.hpp.
//
// Found first by sources that are built for the emulator. The headers are read from the checkout: FULCRUM_EMULATOR_PATH
// (two folders joined by ':', twins first), or where this program was built.
// Invariant: `build` changes with any header or with the compiler, so the cache never gives an old variant.
#pragma once

#include <fulcrum/core/shape.h>
#include <fulcrum/host/error.hpp>

#include <string>
#include <vector>

FULCRUM_NAMESPACE_BEGIN
namespace jit {

inline constexpr const char* compiler_name = "g++";

struct NvrtcFile {
  std::string path;  // of the include folders
  std::string build;
};

struct Nvrtc {
  std::string path;
  int major = 0;
  int minor = 0;
};

struct CompileInput {
  std::string source;
  std::string file_name;
  std::vector<std::string> options;
  std::vector<const char*> names;
  std::vector<const char*> texts;
};
struct CompileOutput {
  bool ok = false;
  std::string code;
  std::string log;
};

Result<NvrtcFile> find_nvrtc(const char* places = nullptr);
inline Result<Nvrtc> open_nvrtc(const NvrtcFile& file) { return Nvrtc{file.path, __GNUC__, __GNUC_MINOR__}; }
inline Status check_arch(const Nvrtc&, Arch) { return success(); }
CompileOutput compile_with(const Nvrtc& compiler, const CompileInput& input);

inline std::string first_error(const std::string& log) {
  const size_t word = log.find("error");
  const size_t begin = word == std::string::npos ? 0 : log.rfind('\n', word) + 1;
  return log.substr(begin, log.find('\n', begin) - begin);
}

}  // namespace jit
FULCRUM_NAMESPACE_END
