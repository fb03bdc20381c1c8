// Drawing of the progress bar, and the flag behind interrupted(). Invariant: see progress.hpp.
#include "tuner/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

namespace fulcrum::tuner {
namespace {

constexpr double quiet_s = 2;       // shorter work shows nothing
constexpr double terminal_s = 0.1;  // between two frames
constexpr double plain_s = 10;      // between two lines in a log
constexpr int bar_cells = 24;

volatile std::sig_atomic_t is_interrupted = 0;

extern "C" void note_interrupt(int) { is_interrupted = 1; }

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the next one meets the default action
  (void)sigaction(SIGINT, &action, nullptr);
  (void)sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return is_interrupted != 0; }

Progress::Progress(std::string title, uint64_t total, double seconds)
    : title_(std::move(title)),
      total_(total),
      budget_(seconds),
      terminal_(::isatty(STDERR_FILENO) == 1),
      begin_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (drawn_ && terminal_) fmt::print(stderr, "\r\x1b[K");
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

double Progress::seconds_left(uint64_t done, double now) const {
  const double by_count =
      done == 0 ? budget_ : now * static_cast<double>(total_ - std::min(done, total_)) / static_cast<double>(done);
  return budget_ > 0 ? std::max(0.0, std::min(by_count, budget_ - now)) : by_count;
}

void Progress::update(uint64_t done, const std::string& note) {
  const double now = seconds();
  if (now < quiet_s || now - last_ < (terminal_ ? terminal_s : plain_s)) return;
  last_ = now;
  draw(std::min(done, total_), note, now);
}

void Progress::draw(uint64_t done, const std::string& note, double now) {
  drawn_ = true;
  const std::string left = fmt::format("{:.0f} s left", seconds_left(done, now));
  if (!terminal_) {
    fmt::print(stderr, "{}: {}/{}, {}{}{}\n", title_, done, total_, left, note.empty() ? "" : ", ", note);
    return;
  }
  const int full = total_ == 0 ? 0 : static_cast<int>(done * bar_cells / total_);
  fmt::print(stderr, "\r\x1b[K{} [{}{}] {}/{}  {}  {:.60}", title_, std::string(size_t(full), '#'),
             std::string(size_t(bar_cells - full), '.'), done, total_, left, note);
  (void)std::fflush(stderr);
}

}  // namespace fulcrum::tuner
