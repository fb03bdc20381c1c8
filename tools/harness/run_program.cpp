// Spawn, read to the end, wait. Invariant: see run_program.hpp.
#include "harness/run_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

extern char** environ;

namespace fulcrum::harness {
namespace {

// Reads until the last writer has closed the pipe.
std::string read_all(int from) {
  std::string text;
  char bytes[4096];
  for (;;) {
    const ssize_t count = ::read(from, bytes, sizeof bytes);
    if (count > 0) text.append(bytes, static_cast<size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

ProgramRun run_program(const std::vector<std::string>& command) {
  ProgramRun run;
  int ends[2];  // [0] is read, [1] written
  if (::pipe2(ends, O_CLOEXEC) != 0) return run;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  (void)posix_spawn_file_actions_init(&actions);
  (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = -1;
  const bool started = ::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ) == 0;
  (void)posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  run.output = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (started && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (started && WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
  return run;
}

}  // namespace fulcrum::harness
