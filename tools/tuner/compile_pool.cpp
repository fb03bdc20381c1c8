// The pool: spawn, hand out lines, poll, replace. Invariant: see compile_pool.hpp.
#include "tuner/compile_pool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>

#include "tuner/progress.hpp"

extern char** environ;

namespace fulcrum::tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int poll_ms = 100;  // how late an interrupt or a timeout may be noticed
constexpr size_t no_job = static_cast<size_t>(-1);

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A child in a process group of its own, with a pipe each way.
class Worker {
 public:
  explicit Worker(const std::vector<std::string>& command) {
    int in[2], out[2];  // [0] is read, [1] written
    if (::pipe2(in, O_CLOEXEC) != 0) return;
    if (::pipe2(out, O_CLOEXEC) != 0) {
      ::close(in[0]);
      ::close(in[1]);
      return;
    }
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // a terminal's Ctrl-C is not for workers
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    if (::posix_spawnp(&pid_, arguments[0], &actions, &attributes, arguments.data(), environ) != 0) pid_ = -1;
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }

  ~Worker() {
    if (to_ >= 0) ::close(to_);
    if (from_ >= 0) ::close(from_);
    if (pid_ > 0) (void)end();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool started() const { return pid_ > 0; }
  int from() const { return from_; }
  bool busy() const { return job != no_job; }

  bool send(const std::string& line) const {
    const std::string text = line + "\n";
    return ::write(to_, text.data(), text.size()) == static_cast<ssize_t>(text.size());  // below PIPE_BUF: whole or not
  }

  // Takes what has arrived; false at the end of the pipe.
  bool receive() {
    char bytes[4096];
    const ssize_t count = ::read(from_, bytes, sizeof bytes);
    if (count < 0) return errno == EINTR;
    received.append(bytes, static_cast<size_t>(count));
    return count > 0;
  }

  // Kills the group and says how it ended.
  std::string end() {
    (void)::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = -1;
    if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
    return fmt::format("exit code {}", WEXITSTATUS(status));
  }

  size_t job = no_job;
  Clock::time_point begin{};
  std::string received;

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

class Pool {
 public:
  Pool(const std::vector<CompileJob>& jobs, const PoolOptions& options, double seconds,
       const std::function<bool(size_t, const CompileOutcome&)>& done)
      : jobs_(jobs), options_(options), seconds_(seconds), done_(done) {
    if (options_.command.empty()) options_.command = {"/proc/self/exe", "compile-worker"};
    workers_.resize(std::min(jobs.size(), static_cast<size_t>(std::max(1, options.num_workers))));
  }

  size_t run() {
    while (!stopped()) {
      bool any_busy = false;
      for (std::unique_ptr<Worker>& worker : workers_) {
        if (next_ < jobs_.size() && (worker == nullptr || !worker->busy())) hand_out(worker);
        any_busy = any_busy || (worker != nullptr && worker->busy());
      }
      // a worker that died when it was asked leaves nobody busy, but jobs that the next pass hands out
      if (any_busy)
        wait();
      else if (next_ >= jobs_.size())
        break;
    }
    return finished_;
  }

 private:
  bool stopped() const { return wants_no_more_ || interrupted() || (seconds_ > 0 && seconds_since(begin_) > seconds_); }

  void hand_out(std::unique_ptr<Worker>& worker) {
    if (worker == nullptr) worker = std::make_unique<Worker>(options_.command);
    const size_t job = next_++;
    worker->job = job;
    worker->begin = Clock::now();
    worker->received.clear();
    if (!worker->started()) {
      lose(worker, fmt::format("{}'s worker could not be started", options_.worker_name));
    } else if (!worker->send(write_job(jobs_[job]))) {
      lose(worker, fmt::format("{}'s worker ended before it was asked ({})", options_.worker_name, worker->end()));
    }
  }

  // Waits a little for answers, then looks at each worker.
  void wait() {
    std::vector<pollfd> descriptors;
    for (const std::unique_ptr<Worker>& worker : workers_) {
      if (worker != nullptr && worker->busy()) descriptors.push_back({worker->from(), POLLIN, 0});
    }
    (void)::poll(descriptors.data(), descriptors.size(), poll_ms);
    for (std::unique_ptr<Worker>& worker : workers_) {
      if (worker == nullptr || !worker->busy()) continue;
      const auto found = std::find_if(descriptors.begin(), descriptors.end(),
                                      [&](const pollfd& each) { return each.fd == worker->from(); });
      look_at(worker, found->revents != 0);
    }
  }

  void look_at(std::unique_ptr<Worker>& worker, bool has_news) {
    if (has_news && !worker->receive()) {
      return lose(worker, fmt::format("{} crashed ({})", options_.worker_name, worker->end()));
    }
    const size_t end = worker->received.find('\n');
    if (end != std::string::npos) {
      const std::optional<CompileOutcome> outcome = read_outcome(worker->received.substr(0, end));
      if (!outcome) return lose(worker, fmt::format("{}'s worker answered with something else", options_.worker_name));
      const size_t job = worker->job;
      worker->job = no_job;
      return report(job, *outcome);
    }
    if (seconds_since(worker->begin) > options_.timeout_s) {
      lose(worker, fmt::format("{} took more than {:.0f} s and was stopped", options_.worker_name, options_.timeout_s));
    }
  }

  void lose(std::unique_ptr<Worker>& worker, const std::string& why) {
    const size_t job = worker->job;
    worker.reset();
    CompileOutcome outcome;
    outcome.why = why;
    report(job, outcome);
  }

  void report(size_t job, const CompileOutcome& outcome) {
    ++finished_;
    if (!done_(job, outcome)) wants_no_more_ = true;
  }

  const std::vector<CompileJob>& jobs_;
  PoolOptions options_;
  double seconds_;
  const std::function<bool(size_t, const CompileOutcome&)>& done_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Clock::time_point begin_ = Clock::now();
  size_t next_ = 0;
  size_t finished_ = 0;
  bool wants_no_more_ = false;
};

}  // namespace

size_t compile_all(const std::vector<CompileJob>& jobs, const PoolOptions& options, double seconds,
                   const std::function<bool(size_t, const CompileOutcome&)>& done) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // a worker that died shows as a failed write
  return Pool(jobs, options, seconds, done).run();
}

}  // namespace fulcrum::tuner
