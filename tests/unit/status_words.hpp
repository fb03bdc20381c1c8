// What tests of refusals share: pointers that are never followed, and a check of an error's code and words.
//
// Used by test_plan.cpp and test_weights.cpp.
// Invariant: a failed check prints the whole message.
#pragma once

#include <boost/test/unit_test.hpp>
#include <fulcrum/host/error.hpp>

#include <cstdint>
#include <string>

/// A pointer that is never followed.
template <class T>
T* at(uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

inline void check_words(const fulcrum::Status& status, fulcrum::Code code, const std::string& words) {
  BOOST_TEST((status.code == code), message(status));
  BOOST_TEST(message(status).find(words) != std::string::npos, message(status));
}
