// Runs the tool as a user would, for tests of what it prints, writes and returns.
//
// Used by test_cli.cpp and device/test_tune.cpp.
// Invariant: a run's cache, output and errors are in the test's own folder.
#pragma once

#include "temporary_folder.hpp"

#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

// The tool lies beside the tests.
inline std::string tool() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string self(path, length > 0 ? size_t(length) : 0);
  return self.substr(0, self.rfind('/')) + "/fulcrum";
}

struct Outcome {
  int code = -1;
  std::string out, err;
};

// `environment` comes after the cache in the test's folder, and may name another.
inline Outcome fulcrum_cli(const TemporaryFolder& folder, const std::string& arguments,
                           const std::string& environment = "") {
  const std::string command = "FULCRUM_CACHE_DIR='" + folder.path() + "/cache' " + environment + " '" + tool() + "' " +
                              arguments + " >'" + (folder / "out") + "' 2>'" + (folder / "err") + "' </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(folder / "out"), read_text(folder / "err")};
}
