// Errors as values: what went wrong, with the numbers and names that turn it into a sentence.
//
// Called by everything in host/ and jit.hpp; engines compare `code` or print message(status).
// Invariant: a Status is trivially copyable and owns nothing. Every pointer in it has static storage (a literal,
// a name from a constexpr table, or a string that the CUDA runtime keeps for ever), so it may cross threads and
// outlive whatever made it.
#pragma once

#include <fulcrum/core/macros.h>
#include <fulcrum/core/types.h>

#include <cstdio>
#include <string>

FULCRUM_NAMESPACE_BEGIN

/// What kind of thing went wrong; the sentence is in message().
enum class Code : uint8_t {
  ok,
  invalid_argument,  // the caller's value is outside its range; nothing was launched
  illegal_config,    // rules.h has a reason against this Config here
  unsupported,       // right call, wrong device, architecture or library version
  no_device,         // no GPU, or no driver
  cuda,              // the CUDA runtime refused a call of ours
  foreign_cuda,      // an error that somebody else's CUDA call left behind
  not_found,         // no such kernel, file or library
  io,                // the file system refused
  parse,             // a file or a text is not what it should be
  compile,           // NVRTC refused the source
};

/// One outcome. `rule` is a sentence in which {subject}, {detail}, {value} and {limit} stand for the fields below;
/// its address is the rule's identity, so two errors of one rule compare equal.
struct Status {
  Code code = Code::ok;
  int32_t cuda = 0;          // cudaError_t of the call, 0 when CUDA was not involved
  const char* rule = "";     // sentence with places to fill
  const char* subject = "";  // the argument, lever, column or call it is about
  const char* detail = "";   // a second name: what it was compared with, or why
  int64_t value = 0;         // what was given (for files: the line number)
  int64_t limit = 0;         // what would have been right

  constexpr bool ok() const { return code == Code::ok; }
};

constexpr Status success() { return Status{}; }

constexpr Status make_error(Code code, const char* rule, const char* subject = "", int64_t value = 0, int64_t limit = 0,
                            const char* detail = "") {
  return Status{code, 0, rule, subject, detail, value, limit};
}

/// A size as the value or limit of an error: what int64_t cannot hold shows as its largest, never as a negative number.
constexpr int64_t error_value(uint64_t value) {
  return value > uint64_t{INT64_MAX} ? INT64_MAX : static_cast<int64_t>(value);
}

constexpr const char* code_name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid argument";
    case Code::illegal_config: return "illegal config";
    case Code::unsupported: return "unsupported";
    case Code::no_device: return "no device";
    case Code::cuda: return "CUDA error";
    case Code::foreign_cuda: return "CUDA error of an earlier call";
    case Code::not_found: return "not found";
    case Code::io: return "file error";
    case Code::parse: return "bad text";
    case Code::compile: return "compile error";
  }
  return "unknown";
}

namespace detail {

/// Appends the field that `place` names; false when it names none, so that other braces stay as they are.
inline bool append_place(std::string& words, const Status& status, const char* place, size_t length) {
  const auto is = [&](const char* name) { return std::string(name).compare(0, std::string::npos, place, length) == 0; };
  if (is("subject")) {
    words += status.subject;
  } else if (is("detail")) {
    words += status.detail;
  } else if (is("value")) {
    words += std::to_string(static_cast<long long>(status.value));
  } else if (is("limit")) {
    words += std::to_string(static_cast<long long>(status.limit));
  } else {
    return false;
  }
  return true;
}

}  // namespace detail

/// The sentence of a status: "code: what, the value, the limit, what to do". "ok" for success.
inline std::string message(const Status& status) {
  if (status.ok()) return "ok";
  std::string words = code_name(status.code);
  words += ": ";
  for (const char* at = status.rule; *at != '\0'; ++at) {
    const char* end = at;
    if (*at == '{') {
      while (*end != '\0' && *end != '}') ++end;
    }
    if (end != at && *end == '}' && detail::append_place(words, status, at + 1, static_cast<size_t>(end - at - 1))) {
      at = end;
      continue;
    }
    words += *at;
  }
  if (status.cuda != 0) words += " (CUDA error " + std::to_string(status.cuda) + ")";
  return words;
}

/// A value or the Status that says why there is none. T is default constructible; value() of a failed Result is
/// that default, never garbage.
template <class T>
class Result {
 public:
  Result(T value) : value_(static_cast<T&&>(value)) {}
  Result(Status status) : status_(status) {}

  bool ok() const { return status_.ok(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  T& value() { return value_; }
  const T& value() const { return value_; }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }

 private:
  T value_{};
  Status status_{};
};

FULCRUM_NAMESPACE_END
