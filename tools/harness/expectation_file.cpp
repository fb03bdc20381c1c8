// Reads and rewrites the file of compile expectations, and counts what a compiler's log warns of.
//
// Called by check_compiles(). Invariant: see expectation_file.hpp.
#include "harness/expectation_file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "harness/input_error.hpp"

namespace fulcrum::harness {
namespace {

constexpr const char* header = "kernel\tarch\tregisters\tspill_store_bytes\tspill_load_bytes\twarnings";

// An exclusive lock on a folder for a scope; waits for whoever holds it.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ < 0 || flock(descriptor_, LOCK_EX) != 0)
      throw InputError(path + " cannot be locked; the folder must exist and be readable");
  }
  ~FolderLock() { (void)close(descriptor_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace

bool read_expectations(const std::string& path, Expectations& expectations) {
  std::ifstream file(path);
  if (!file) return false;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (number == 1 && line == header) continue;
    std::istringstream words(line);
    CompileKey key;
    CompileOutcome outcome;
    words >> key.first >> key.second >> outcome.registers >> outcome.spill_store_bytes >> outcome.spill_load_bytes >>
        outcome.warnings;
    if (number == 1 || !words)
      throw InputError(fmt::format("{}:{}: this is not a line of compile expectations", path, number));
    expectations[key] = outcome;
  }
  return true;
}

void write_expectation(const std::string& path, const CompileKey& key, const CompileOutcome& outcome) {
  const std::string folder = path.substr(0, path.find_last_of('/'));
  (void)mkdir(folder.c_str(), 0755);  // may exist
  const FolderLock lock(folder);
  Expectations expectations;
  (void)read_expectations(path, expectations);
  expectations[key] = outcome;
  const std::string fresh = path + ".new";
  std::ofstream file(fresh);
  file << header << '\n';
  for (const auto& [each, value] : expectations) {
    file << each.first << '\t' << each.second << '\t' << value.registers << '\t' << value.spill_store_bytes << '\t'
         << value.spill_load_bytes << '\t' << value.warnings << '\n';
  }
  file.close();
  if (!file || std::rename(fresh.c_str(), path.c_str()) != 0)
    throw InputError(path + " cannot be written; its folder must be writable");
}

uint32_t count_warnings(const std::string& log) {
  uint32_t count = 0;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const bool warns = line.find("warning") != std::string::npos || line.find("Warning") != std::string::npos ||
                       line.find("wgmma serialized") != std::string::npos;
    if (warns) ++count;
  }
  return count;
}

std::string outcome_text(const CompileOutcome& outcome) {
  return fmt::format("{} registers, {} bytes of spill stores, {} of spill loads, {} warnings", outcome.registers,
                     outcome.spill_store_bytes, outcome.spill_load_bytes, outcome.warnings);
}

}  // namespace fulcrum::harness
