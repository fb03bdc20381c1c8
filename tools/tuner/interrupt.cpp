// The flag behind interrupted(). Invariant: see interrupt.hpp.
#include "tuner/interrupt.hpp"

#include <csignal>

namespace fulcrum::tuner {
namespace {

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

}  // namespace fulcrum::tuner
