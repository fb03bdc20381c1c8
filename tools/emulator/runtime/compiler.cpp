// Variants by g++; see the twin of jit/nvrtc.hpp.
#include <fulcrum_embedded_headers.hpp>

#include <fulcrum/host/file.hpp>
#include <fulcrum/host/hash.hpp>
#include <fulcrum/jit/nvrtc.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <utility>

#include "harness/run_program.hpp"

namespace fulcrum::jit {
namespace {

namespace fs = std::filesystem;

// Frames without cleanups need no personality, and a fault unwinds through them all the same.
constexpr const char* flags[] = {"-std=c++20",          "-O1", "-fPIC",    "-shared", "-fno-exceptions", "-fno-rtti",
                                 "-fvisibility=hidden", "-w",  "-nostdlib"};

std::vector<std::string> folders_of(const std::string& path) {
  const size_t colon = path.find(':');
  if (colon == std::string::npos) return {path};
  return {path.substr(0, colon), path.substr(colon + 1)};
}

// Adds every header of a folder to the hash, in order of names.
void add_folder(Fnv128& hash, const std::string& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::string text;
    if (!read_file(file.c_str(), text).ok()) continue;
    hash.add_text(file.lexically_relative(folder).string());
    hash.add_text(text);
  }
}

// Is every header that this program was built with still what the folder has? Host code knows the structures of the old
// ones, which a variant of the new ones would read wrongly.
bool is_as_built(const std::string& folder) {
  for (uint64_t i = 0; i < num_embedded_headers; ++i) {
    std::string text;
    if (!read_file((folder + "/" + embedded_headers[i].path).c_str(), text).ok() || text != embedded_headers[i].text)
      return false;
  }
  return true;
}

// The kernel's name is the last source's file name; its parameter's type is what the compiler deduces.
std::string entry_lines(const std::string& entry) {
  return fmt::format(
      "\n#include <emulator/host.h>\n"
      "template <class A> A fulcrum_argument(void (*)(A));\n"
      "extern \"C\" __attribute__((visibility(\"default\"))) const fulcrum::emulator::Entry {0}_entry =\n"
      "    fulcrum::emulator::make_entry<decltype(fulcrum_argument(&{0})), &{0}>(\"{0}\");\n",
      entry);
}

}  // namespace

Result<NvrtcFile> find_nvrtc(const char*) {
  const char* named = std::getenv("FULCRUM_EMULATOR_PATH");
  NvrtcFile file{named != nullptr ? named : FULCRUM_EMULATOR_PATH, {}};
  Fnv128 hash;
  hash.add_text(fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__));
  for (const char* flag : flags) hash.add_text(flag);
  for (const std::string& folder : folders_of(file.path)) {
    if (!fs::is_directory(folder)) {
      return make_error(Code::not_found,
                        "the emulator compiles variants from the checkout that it was built in, and its headers are "
                        "not there any more; set FULCRUM_EMULATOR_PATH to tools/emulator/include:include of one");
    }
    add_folder(hash, folder);
  }
  if (named == nullptr && !is_as_built(folders_of(file.path).back())) {
    return make_error(Code::unsupported,
                      "headers under include/ have changed since the emulator was built; build it again, as "
                      "tools/fulcrum does by itself");
  }
  file.build = hash.hex();
  return file;
}

CompileOutput compile_with(const Nvrtc& compiler, const CompileInput& input) {
  CompileOutput output;
  char folder[] = "/tmp/fulcrum-emulator-XXXXXX";
  if (::mkdtemp(folder) == nullptr) {
    output.log = "error: no folder for the compiler in /tmp";
    return output;
  }
  const std::string base = std::string(folder) + "/variant";
  const std::string entry = input.file_name.substr(0, input.file_name.rfind('.'));
  Status status = publish_file(base + ".cpp", base + ".tmp", input.source + entry_lines(entry));
  std::vector<std::string> command{compiler_name};
  command.insert(command.end(), std::begin(flags), std::end(flags));
  for (const std::string& include : folders_of(compiler.path)) command.push_back("-I" + include);
  command.insert(command.end(), {base + ".cpp", "-o", base + ".so"});
  harness::ProgramRun run;
  if (status.ok()) run = harness::run_program(command);
  output.log = std::move(run.output);
  output.ok = run.exit_code == 0 && read_file((base + ".so").c_str(), output.code).ok();
  if (!output.ok && output.log.find("error") == std::string::npos) output.log += "error: g++ did not run";
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return output;
}

}  // namespace fulcrum::jit
