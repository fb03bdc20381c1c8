// Runs one test case of this very executable in other processes, for tests of what processes share.
//
// Used by test_jit.cpp. A child is a fresh program, not a fork, so no library state is inherited.
// Invariant: every child is waited for before the caller goes on.
#pragma once

#include <csignal>
#include <cstdlib>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/// Starts the test case `name` ("suite/case") with `variables` ("NAME=value") added to the environment.
inline pid_t spawn_case(const std::string& name, const std::vector<std::string>& variables) {
  std::vector<std::string> words = {"/proc/self/exe", "--run_test=" + name, "--log_level=nothing", "--report_level=no"};
  std::vector<std::string> environment = variables;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  std::vector<char*> arguments;
  std::vector<char*> entries;
  for (std::string& word : words) arguments.push_back(word.data());
  for (std::string& entry : environment) entries.push_back(entry.data());
  arguments.push_back(nullptr);
  entries.push_back(nullptr);
  pid_t child = -1;
  return posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), entries.data()) == 0 ? child : -1;
}

/// Waits; the exit code, or minus the signal that ended it.
inline int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
