// Finds NVRTC, tells one build of it from another without loading it, and compiles one source.
//
// Called by jit.hpp. The library is opened with dlopen, so that programs start, and everything compiled in works, on
// machines without it.
// Invariant: finding and identifying cost no dlopen (10 to 13 ms for its 110 MB), so a warm start from the cache pays
// for neither; the library stays loaded once it was opened.
#pragma once

#include <fulcrum/core/shape.h>
#include <fulcrum/host/file.hpp>
#include <fulcrum/host/hash.hpp>

#include <cstdlib>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string>
#include <vector>

FULCRUM_NAMESPACE_BEGIN
namespace jit {

inline constexpr const char* compiler_name = "NVRTC";

inline constexpr const char* nvrtc_missing_rule =
    "NVRTC (libnvrtc.so.13) was not found; kernels that are compiled in still work. Install the CUDA toolkit 13.0 or "
    "newer (Debian package cuda-nvrtc-13-0, or pip install nvidia-cuda-nvrtc), or set FULCRUM_NVRTC to the file or its "
    "folder";
inline constexpr const char* nvrtc_broken_rule = "NVRTC was found but cannot be used: {subject} is missing from it";
inline constexpr const char* nvrtc_old_rule =
    "NVRTC {value}.{limit} is too old for {subject}, which needs {detail} or newer; install a newer CUDA toolkit or "
    "set FULCRUM_NVRTC to its libnvrtc.so";

/// A library file and the build that it is: the GNU build id, which the linker makes from the content.
struct NvrtcFile {
  std::string path;
  std::string build;
};

/// First NVRTC that compiles for the architecture (release notes of CUDA 11.0 to 12.9).
constexpr const char* nvrtc_needed(Arch arch) {
  switch (arch.cc) {
    case 80: return "11.0";
    case 86: return "11.1";
    case 89: return "11.8";
    case 90: return "12.0";
    case 100:
    case 120: return "12.8";
    default: return "12.9";
  }
}

namespace detail {

/// Hexadecimal NT_GNU_BUILD_ID of a shared library, read from its first page of headers; "" when it has none.
inline std::string build_id(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Elf64_Ehdr header{};
  if (!file.valid() || ::pread(file.get(), &header, sizeof header, 0) != sizeof header) return "";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) return "";
  for (unsigned index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr segment{};
    const off_t at = static_cast<off_t>(header.e_phoff + index * sizeof segment);
    if (::pread(file.get(), &segment, sizeof segment, at) != sizeof segment) return "";
    char notes[1024];  // a note segment of a library holds a build id (36 bytes) and an ABI tag (32 bytes)
    const size_t bytes = segment.p_filesz < sizeof notes ? segment.p_filesz : sizeof notes;
    if (segment.p_type != PT_NOTE ||
        ::pread(file.get(), notes, bytes, static_cast<off_t>(segment.p_offset)) != static_cast<ssize_t>(bytes))
      continue;
    for (size_t place = 0; place + sizeof(Elf64_Nhdr) <= bytes;) {
      Elf64_Nhdr note;
      std::memcpy(&note, notes + place, sizeof note);
      const size_t body = place + sizeof note + round_up<size_t>(note.n_namesz, 4);
      if (body > bytes || note.n_descsz > bytes - body) break;
      if (note.n_type == NT_GNU_BUILD_ID) {
        std::string text;
        char digits[3];
        for (size_t byte = 0; byte < note.n_descsz; ++byte) {
          std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(notes[body + byte]));
          text += digits;
        }
        return text;
      }
      place = body + round_up<size_t>(note.n_descsz, 4);
    }
  }
  return "";
}

/// What tells this file from another NVRTC: its build id, or the hash of all its bytes where it has none.
inline std::string build_of(const std::string& path) {
  const std::string id = build_id(path);
  if (!id.empty()) return id;
  std::string content;
  if (!read_file(path.c_str(), content).ok()) return "";
  Fnv128 hash;
  hash.update(content.data(), content.size());
  return hash.hex();
}

inline bool is_file(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

/// The libraries that a place (a file, a folder, or several joined by ':') offers, best first.
inline void add_candidates(const char* places, std::vector<std::string>& out) {
  if (places == nullptr) return;
  const std::string all = places;
  for (size_t begin = 0; begin <= all.size();) {
    const size_t end = all.find(':', begin) == std::string::npos ? all.size() : all.find(':', begin);
    const std::string place = all.substr(begin, end - begin);
    begin = end + 1;
    if (place.empty()) continue;
    out.push_back(place);
    out.push_back(place + "/libnvrtc.so.13");
    out.push_back(place + "/libnvrtc.so");
  }
}

inline void add_folder_of(const char* variable, std::vector<std::string>& out) {
  const char* root = std::getenv(variable);
  if (root != nullptr && *root != '\0') add_candidates((std::string(root) + "/lib64:" + root + "/lib").c_str(), out);
}

}  // namespace detail

/// Finds libnvrtc. `places` (files or folders, ':' between them) or FULCRUM_NVRTC, when set, are the only places looked
/// at; else the loader's LD_LIBRARY_PATH, CUDA_HOME, CUDA_PATH, /usr/local/cuda, the system's folders, and last
/// whatever the loader itself finds. Error: not_found with what to install.
inline Result<NvrtcFile> find_nvrtc(const char* places = nullptr) {
  std::vector<std::string> candidates;
  const char* named = places != nullptr ? places : std::getenv("FULCRUM_NVRTC");
  if (named != nullptr && *named != '\0') {
    detail::add_candidates(named, candidates);
  } else {
    named = nullptr;
    detail::add_candidates(std::getenv("LD_LIBRARY_PATH"), candidates);
    detail::add_folder_of("CUDA_HOME", candidates);
    detail::add_folder_of("CUDA_PATH", candidates);
    detail::add_candidates("/usr/local/cuda/lib64:/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64",
                           candidates);
  }
  for (const std::string& path : candidates) {
    if (!detail::is_file(path)) continue;
    NvrtcFile file{path, detail::build_of(path)};
    if (!file.build.empty()) return file;
  }
  void* library = named == nullptr ? ::dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL) : nullptr;
  struct link_map* map = nullptr;
  if (library == nullptr || ::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
    return make_error(Code::not_found, nvrtc_missing_rule);
  return NvrtcFile{map->l_name, detail::build_of(map->l_name)};
}

/// The loaded library. Functions have the signatures of nvrtc.h, results as int (0 is success).
struct Nvrtc {
  int (*version)(int*, int*) = nullptr;
  int (*num_archs)(int*) = nullptr;
  int (*archs)(int*) = nullptr;
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(void**) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*log_bytes)(void*, size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*cubin_bytes)(void*, size_t*) = nullptr;
  int (*cubin)(void*, char*) = nullptr;
  const char* (*words)(int) = nullptr;
  int major = 0;
  int minor = 0;
};

namespace detail {

template <class F>
bool bind(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace detail

/// Loads the library. Error: not_found for a file that is not NVRTC.
inline Result<Nvrtc> open_nvrtc(const NvrtcFile& file) {
  void* library = ::dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return make_error(Code::not_found, nvrtc_missing_rule);
  Nvrtc api;
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto& function) {
    if (!detail::bind(library, name, function)) missing = name;
  };
  need("nvrtcVersion", api.version);
  need("nvrtcGetNumSupportedArchs", api.num_archs);
  need("nvrtcGetSupportedArchs", api.archs);
  need("nvrtcCreateProgram", api.create);
  need("nvrtcDestroyProgram", api.destroy);
  need("nvrtcCompileProgram", api.compile);
  need("nvrtcGetProgramLogSize", api.log_bytes);
  need("nvrtcGetProgramLog", api.log);
  need("nvrtcGetCUBINSize", api.cubin_bytes);
  need("nvrtcGetCUBIN", api.cubin);
  need("nvrtcGetErrorString", api.words);
  if (missing != nullptr) return make_error(Code::not_found, nvrtc_broken_rule, missing);
  (void)api.version(&api.major, &api.minor);
  // NVRTC opens its builtins by bare name at the first compile, and the library of NVIDIA's wheels has no run path that
  // leads to its own folder. Opened here by path, they are there under that name.
  const std::string version = std::to_string(api.major) + "." + std::to_string(api.minor);
  const std::string folder = file.path.substr(0, file.path.rfind('/') + 1);
  (void)::dlopen((folder + "libnvrtc-builtins.so." + version).c_str(), RTLD_NOW | RTLD_LOCAL);
  return api;
}

/// Can this NVRTC compile for `arch`? Error: unsupported, with both versions.
inline Status check_arch(const Nvrtc& api, Arch arch) {
  int count = 0;
  if (api.num_archs(&count) == 0 && count > 0) {
    std::vector<int> archs(static_cast<size_t>(count));
    if (api.archs(archs.data()) == 0) {
      for (const int known : archs) {
        if (known == arch.cc) return success();
      }
    }
  }
  return make_error(Code::unsupported, nvrtc_old_rule, arch_name(arch), api.major, api.minor, nvrtc_needed(arch));
}

/// One source in, machine code and log out. `names` and `texts` are headers as #include spells them.
struct CompileInput {
  std::string source;
  std::string file_name;  // as error messages show it
  std::vector<std::string> options;
  std::vector<const char*> names;
  std::vector<const char*> texts;
};
struct CompileOutput {
  bool ok = false;
  std::string code;
  std::string log;
};

inline CompileOutput compile_with(const Nvrtc& api, const CompileInput& input) {
  CompileOutput output;
  void* program = nullptr;
  int result = api.create(&program, input.source.c_str(), input.file_name.c_str(), static_cast<int>(input.names.size()),
                          input.texts.data(), input.names.data());
  if (result != 0) {
    output.log = std::string("error: NVRTC could not start: ") + api.words(result);
    return output;
  }
  std::vector<const char*> options;
  for (const std::string& option : input.options) options.push_back(option.c_str());
  result = api.compile(program, static_cast<int>(options.size()), options.data());
  size_t bytes = 0;
  if (api.log_bytes(program, &bytes) == 0 && bytes > 1) {
    output.log.resize(bytes);
    (void)api.log(program, &output.log[0]);
    output.log.resize(bytes - 1);  // without its final zero
  }
  if (result == 0) result = api.cubin_bytes(program, &bytes);
  if (result == 0) {
    output.code.resize(bytes);
    result = api.cubin(program, &output.code[0]);
  }
  if (result != 0 && output.log.find("error") == std::string::npos)
    output.log += std::string("error: ") + api.words(result);
  output.ok = result == 0 && !output.code.empty();
  (void)api.destroy(&program);
  return output;
}

/// The first line of a log that reports an error, or its first line.
inline std::string first_error(const std::string& log) {
  const size_t word = log.find("error");
  const size_t begin = word == std::string::npos ? 0 : log.rfind('\n', word) + 1;  // npos + 1 is 0
  return log.substr(begin, log.find('\n', begin) - begin);
}

}  // namespace jit
FULCRUM_NAMESPACE_END
