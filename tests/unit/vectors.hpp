// The published vectors of tests/data/vectors, as JSON.
//
// Used by test_nvfp4.cpp and test_pack.cpp.
// Invariant: a file that is not there fails the test with its name.
#pragma once

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

inline nlohmann::json read_vectors(const std::string& name) {
  std::ifstream file(FULCRUM_TEST_DATA "/vectors/" + name);
  BOOST_REQUIRE_MESSAGE(file.good(), "cannot read " << name);
  return nlohmann::json::parse(file);
}
