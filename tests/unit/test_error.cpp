// Status, Result and message(): values that carry their own words; and the CUDA wrappers on a machine without a GPU.
//
// Run by ctest as unit.host_error; needs no GPU.
#include <boost/test/unit_test.hpp>
#include <fulcrum/host/cuda_api.hpp>

#include <string>
#include <type_traits>

using namespace fulcrum;

BOOST_AUTO_TEST_SUITE(host_error)

static_assert(std::is_trivially_copyable_v<Status>);

BOOST_AUTO_TEST_CASE(success_is_ok) {
  BOOST_TEST(success().ok());
  BOOST_TEST(message(success()) == "ok");
}

BOOST_AUTO_TEST_CASE(message_fills_every_place) {
  const Status status = make_error(Code::invalid_argument, "{subject} is {value}, at most {limit} ({detail})", "tokens",
                                   -3, 1LL << 40, "why");
  BOOST_TEST(message(status) == "invalid argument: tokens is -3, at most 1099511627776 (why)");
}

BOOST_AUTO_TEST_CASE(message_keeps_other_braces) {
  BOOST_TEST(message(make_error(Code::io, "a {b} {value")) == "file error: a {b} {value");
  BOOST_TEST(message(make_error(Code::io, "{}{{value}}", "", 7)) == "file error: {}{7}");
}

BOOST_AUTO_TEST_CASE(message_names_the_cuda_code) {
  Status status = make_error(Code::cuda, "{subject} failed", "cudaMalloc");
  status.cuda = 2;
  BOOST_TEST(message(status) == "CUDA error: cudaMalloc failed (CUDA error 2)");
}

BOOST_AUTO_TEST_CASE(result_holds_a_value_or_a_status) {
  const Result<int> good = 5;
  const Result<int> bad = make_error(Code::not_found, "nothing there");
  BOOST_TEST((good.ok() && *good == 5));
  BOOST_TEST((!bad.ok() && bad.value() == 0));
  BOOST_TEST((bad.status().code == Code::not_found));
}

BOOST_AUTO_TEST_CASE(without_a_gpu_the_words_say_so) {
  const Result<int> count = cuda_api::num_devices();
  if (count.ok()) return;  // a GPU is here
  BOOST_TEST((count.status().code == Code::no_device));
  BOOST_TEST(message(count.status()).find("no usable GPU") != std::string::npos);
  // our own failed call must not look like somebody else's error later
  BOOST_TEST((cuda_api::foreign_error().code != Code::foreign_cuda));
  BOOST_TEST((query_device(0).status().code == Code::no_device));
}

BOOST_AUTO_TEST_CASE(foreign_errors_are_told_from_our_own) {
  const Status theirs = cuda_api::error_status(cudaErrorIllegalAddress, Code::foreign_cuda, cuda_api::foreign_rule, "");
  BOOST_TEST((theirs.code == Code::foreign_cuda && theirs.cuda == cudaErrorIllegalAddress));
  BOOST_TEST(message(theirs).find("not one of fulcrum's") != std::string::npos);
  BOOST_TEST(message(theirs).find("illegal memory access") != std::string::npos);
  const Status ours = cuda_api::check(cudaErrorInvalidValue, "cudaMemsetAsync");
  BOOST_TEST(message(ours) == "CUDA error: cudaMemsetAsync failed: invalid argument (CUDA error 1)");
}

BOOST_AUTO_TEST_SUITE_END()
