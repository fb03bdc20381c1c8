// The journal: what a run did, one line of JSON an event, flushed before the next step.
//
// Called by the steps of tune; read by people, and by whoever wants to know how far a run came that died.
// Invariant: a line is written whole, at the end of the file, and is on its way to the disk before write() returns;
// runs that share a journal do not break each other's lines, and a line that a dead run left unfinished breaks no
// other. A journal that cannot be written is reported once and costs nothing else.
#pragma once

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

  // Goes on at the end of the file. Returns false when it cannot be written.
  bool open(const std::string& path);

  // {"event": "...", fields ...}; nothing without a file. The first line that cannot be written is said on stderr, and
  // ends the journal.
  void write(const char* event, const Fields& fields);

 private:
  int file_ = -1;
  std::string path_;
};

}  // namespace fulcrum::tuner
