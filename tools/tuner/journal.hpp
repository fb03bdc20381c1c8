// The journal: what a run did, one line of JSON an event, flushed before the next step.
//
// Called by the steps of tune; read by people, and by whoever wants to know how far a run came that died.
// Invariant: a line is written whole and is on its way to the disk before write() returns. A journal that cannot be
// written is reported once and costs nothing else.
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fulcrum::tuner {

class Journal {
 public:
  using Value = std::variant<std::string, double, uint64_t, bool>;
  using Fields = std::vector<std::pair<const char*, Value>>;

  Journal() = default;
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Starts a new file. Returns false when it cannot be made.
  bool open(const std::string& path);

  // {"event": "...", fields ...}; nothing without a file.
  void write(const char* event, const Fields& fields);

 private:
  std::FILE* file_ = nullptr;
};

}  // namespace fulcrum::tuner
