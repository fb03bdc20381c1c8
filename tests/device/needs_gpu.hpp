// The precondition of suites that launch something: a GPU and its driver, or the emulated device.
//
// Used by the files of tests/device, of which several are built for the emulator too.
// Invariant: without a GPU a suite is skipped with a reason, it neither passes nor fails.
#pragma once

#include <boost/test/unit_test.hpp>
#include <fulcrum/host/cuda_api.hpp>

// Some suites take smaller problems on the emulator, which executes one thread after the other.
#ifdef FULCRUM_TESTS_ON_EMULATOR
inline constexpr bool on_emulator = true;
#else
inline constexpr bool on_emulator = false;
#endif

inline boost::test_tools::assertion_result needs_gpu(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(fulcrum::cuda_api::num_devices().ok());
  if (!result) result.message() << "no GPU here";
  return result;
}

// Of cases that would take minutes on the emulator.
inline boost::test_tools::assertion_result not_emulated(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(!on_emulator);
  if (!result) result.message() << "too large for the emulator";
  return result;
}
