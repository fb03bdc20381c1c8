// Lines of the journal. Invariant: see journal.hpp.
#include "tuner/journal.hpp"

#include <nlohmann/json.hpp>

namespace fulcrum::tuner {

Journal::~Journal() {
  if (file_ != nullptr) (void)std::fclose(file_);
}

bool Journal::open(const std::string& path) {
  file_ = std::fopen(path.c_str(), "we");
  return file_ != nullptr;
}

void Journal::write(const char* event, const Fields& fields) {
  if (file_ == nullptr) return;
  nlohmann::ordered_json line{{"event", event}};
  for (const auto& [key, value] : fields) {
    nlohmann::ordered_json& to = line[key];
    std::visit([&to](const auto& plain) { to = plain; }, value);
  }
  const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  (void)std::fwrite(text.data(), 1, text.size(), file_);
  (void)std::fflush(file_);
}

}  // namespace fulcrum::tuner
