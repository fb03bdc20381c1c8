// Lines of the journal. Invariant: see journal.hpp.
#include "tuner/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace fulcrum::tuner {

Journal::~Journal() {
  if (file_ >= 0) (void)::close(file_);
}

bool Journal::open(const std::string& path) {
  path_ = path;
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) return false;
  char last = '\n';
  const off_t size = ::lseek(file_, 0, SEEK_END);
  if (size > 0) (void)!::pread(file_, &last, 1, size - 1);
  if (last != '\n') (void)!::write(file_, "\n", 1);  // a run died in the middle of its line
  return true;
}

void Journal::write(const char* event, const Fields& fields) {
  if (file_ < 0) return;
  nlohmann::ordered_json line{{"event", event}};
  for (const auto& [key, value] : fields) {
    nlohmann::ordered_json& to = line[key];
    std::visit([&to](const auto& plain) { to = plain; }, value);
  }
  const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  // one call: with O_APPEND no other writer gets in between
  if (::write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size())) return;
  fmt::print(stderr, "the journal {} ends here: {}\n", path_, std::strerror(errno));
  (void)::close(file_);
  file_ = -1;
}

}  // namespace fulcrum::tuner
