// The device headers that NVRTC is given: rendered into the program, or read from a folder.
//
// Called by jit.hpp; codegen renders arrays of EmbeddedHeader.
// Invariant: both sources give the same names, texts and order, so they share cache entries.
#pragma once

#include <fulcrum/host/file.hpp>
#include <fulcrum/host/hash.hpp>

#include <algorithm>
#include <dirent.h>
#include <string>
#include <utility>
#include <vector>

FULCRUM_NAMESPACE_BEGIN
namespace jit {

/// One header carried in the program; path as an #include names it ("fulcrum/core/macros.h").
struct EmbeddedHeader {
  const char* path;
  const char* text;
};

/// Where the device headers come from: a rendered array, or the folder that holds fulcrum/ (an include path). `files`
/// wins when both are set.
struct Headers {
  const EmbeddedHeader* files = nullptr;
  uint64_t num_files = 0;
  const char* folder = nullptr;
};

/// Headers ready for NVRTC, sorted by name. Points into the rendered array or into its own storage.
struct HeaderSet {
  std::vector<const char*> names;
  std::vector<const char*> texts;
  std::vector<std::pair<std::string, std::string>> storage;
};

namespace detail {

inline constexpr const char* headers_missing_rule =
    "no device headers: {detail}. Give Options.headers the array that codegen renders, or the folder that holds "
    "fulcrum/";

/// Files that device code may include; host headers (.hpp) are none of NVRTC's business.
inline bool is_device_header(const std::string& name) {
  const auto ends_with = [&](const std::string& end) {
    return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  };
  return ends_with(".h") || ends_with(".cuh") || ends_with(".def");
}

/// Reads every device header under `folder`/`name`, recursively.
inline Status read_headers(const std::string& folder, const std::string& name, HeaderSet& out) {
  const std::string path = folder + "/" + name;
  DIR* entries = ::opendir(path.c_str());
  if (entries == nullptr) return make_error(Code::not_found, headers_missing_rule, "", 0, 0, errno_text(errno));
  Status status = success();
  while (status.ok()) {
    const dirent* entry = ::readdir(entries);
    if (entry == nullptr) break;
    const std::string child = name + "/" + entry->d_name;
    struct stat facts {};
    if (entry->d_name[0] == '.' || ::stat((folder + "/" + child).c_str(), &facts) != 0) continue;
    if (S_ISDIR(facts.st_mode)) {
      status = read_headers(folder, child, out);
    } else if (is_device_header(child)) {
      out.storage.emplace_back(child, "");
      status = read_file((folder + "/" + child).c_str(), out.storage.back().second);
    }
  }
  (void)::closedir(entries);
  return status;
}

}  // namespace detail

/// Collects the headers. Error: not_found when there are none; io.
inline Status collect_headers(const Headers& headers, HeaderSet& out) {
  std::vector<EmbeddedHeader> sorted;
  if (headers.num_files > 0) {
    sorted.assign(headers.files, headers.files + headers.num_files);
  } else {
    if (headers.folder == nullptr)
      return make_error(Code::not_found, detail::headers_missing_rule, "", 0, 0, "none were given");
    const Status status = detail::read_headers(headers.folder, "fulcrum", out);
    if (!status.ok()) return status;
    for (const auto& file : out.storage) sorted.push_back(EmbeddedHeader{file.first.c_str(), file.second.c_str()});
  }
  std::sort(sorted.begin(), sorted.end(), [](const EmbeddedHeader& left, const EmbeddedHeader& right) {
    return std::strcmp(left.path, right.path) < 0;
  });
  for (const EmbeddedHeader& header : sorted) {
    if (!detail::is_device_header(header.path)) continue;
    out.names.push_back(header.path);
    out.texts.push_back(header.text);
  }
  return success();
}

}  // namespace jit
FULCRUM_NAMESPACE_END
