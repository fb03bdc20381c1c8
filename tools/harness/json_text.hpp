// JSON as the verbs print it.
//
// Called by every verb with --json.
// Invariant: never throws over what a text holds: file names, paths and table cells need not be UTF-8, and a byte that
// is not becomes U+FFFD.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace fulcrum::harness {

inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace fulcrum::harness
