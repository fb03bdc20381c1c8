// What long work owes its user: a progress bar with counts and time left (a plain line now and then where stderr is no
// terminal), and an end when it is asked for one.
//
// Called by everything in the tuner that may take more than two seconds; shorter work shows nothing.
// Invariant: never writes to stdout, and leaves the cursor at the start of an empty line. The first SIGINT or SIGTERM
// only sets a flag, so that what is known can be written; a second one ends the program at once, as it would without
// this.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fulcrum::tuner {

void watch_interrupts();  // once, before the first question
bool interrupted();

class Progress {
 public:
  // `seconds` bounds the whole work where there is a budget; 0: the time left follows from the counts alone.
  Progress(std::string title, uint64_t total, double seconds = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of the total; `note` is a few words on what is being done.
  void update(uint64_t done, const std::string& note = "");
  void clear();  // before something else is printed
  void grow(uint64_t more) { total_ += more; }
  double seconds() const;  // since the start

 private:
  void draw(uint64_t done, const std::string& note, double now);
  double seconds_left(uint64_t done, double now) const;

  std::string title_;
  uint64_t total_;
  double budget_;
  bool terminal_;
  bool drawn_ = false;
  double last_ = 0;  // when something was drawn
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace fulcrum::tuner
