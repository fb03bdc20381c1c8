// fulcrum_emulator: the worker that runs variants on the emulator, a line of JSON each way.
//
// Started by `fulcrum verify --emulate` and by `fulcrum tune` without a GPU, from the folder of the command line tool.
// Invariant: `ok` means that every tiny problem gave what the oracle says, exact data bit for bit; else `why` says what
// did not. With the argument `check` it runs nothing: exit code 0, or 1 and a sentence about what keeps it from
// working.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>

#include "harness/jit_kernels.hpp"
#include "harness/variant_check.hpp"
#include "tuner/compile_job.hpp"

int main(int argc, char** argv) {
  using namespace fulcrum;
  if (argc > 1 && std::string_view(argv[1]) == "check") {
    try {
      harness::check_emulator_settings();
      return 0;
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
      return 1;
    }
  }
  return tuner::answer_jobs([](const tuner::CompileJob& job) {
    const auto begin = std::chrono::steady_clock::now();
    tuner::CompileOutcome outcome;
    try {
      harness::check_variant(harness::config_text(job.config).c_str(), job.kind);
      outcome.ok = true;
    } catch (const std::exception& error) {
      outcome.why = error.what();
    }
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return outcome;
  });
}
