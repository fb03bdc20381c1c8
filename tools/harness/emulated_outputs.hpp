// Outputs of the emulator, kept in a file for a GPU to be held against.
//
// Written by the emulator's check_variant() and compared by the one of the device tests, both on the tiny problems and
// only where FULCRUM_EMULATED names a folder. Invariant: a file holds one variant's values in the order in which its
// problems are run; what a compare() does not find in it is an error, never a value fewer.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "harness/problem_on_device.hpp"

namespace fulcrum::harness {

// FULCRUM_EMULATED, or empty.
std::string emulated_outputs_folder();

// The file of a variant, named as its kernel.
std::string emulated_outputs_path(const std::string& folder, const Config& config, const KernelKind& kind);

class EmulatedOutputsWriter {
 public:
  explicit EmulatedOutputsWriter(const std::string& path);
  // What the last check left in the problem's output.
  void add(ProblemOnDevice& problem, Data data);

 private:
  std::ofstream file_;
  std::string path_;
};

class EmulatedOutputsReader {
 public:
  struct Agreement {
    uint64_t num_compared = 0, num_equal = 0;
    uint32_t largest_ulp = 0;  // steps of the output type between two values
  };

  explicit EmulatedOutputsReader(const std::string& path);
  // The problem's output now against the file's next values. Throws InputError where the file is for other problems.
  Agreement compare(ProblemOnDevice& problem, Data data);

 private:
  std::ifstream file_;
  std::string path_;
};

}  // namespace fulcrum::harness
