// The precondition of suites that launch something: a GPU and its driver.
//
// Used by the files of tests/device.
// Invariant: without a GPU a suite is skipped with a reason, it neither passes nor fails.
#pragma once

#include <boost/test/unit_test.hpp>
#include <fulcrum/host/cuda_api.hpp>

struct NeedsGpu {
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    boost::test_tools::assertion_result result(fulcrum::cuda_api::num_devices().ok());
    if (!result) result.message() << "no GPU here";
    return result;
  }
};
