// Device memory that frees itself, and the one way in which tools turn a Status of the GPU into an exception.
//
// Used by everything in the harness that touches a GPU. Verbs print what() of a DeviceError and exit with 3 when there
// is no GPU, else with 1.
// Invariant: a DeviceBuffer owns exactly one allocation of size() elements, or none.
#pragma once

#include <fulcrum/host/cuda_api.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fulcrum::harness {

struct DeviceError : std::runtime_error {
  explicit DeviceError(const Status& status, const std::string& words)
      : std::runtime_error(words + message(status)), code(status.code) {}
  Code code;
};

// Throws when `status` is an error; `words` say what was being done and end in ": " or are empty.
inline void require(const Status& status, const std::string& words = "") {
  if (!status.ok()) throw DeviceError(status, words);
}

template <class T>
T require(Result<T> result, const std::string& words = "") {
  require(result.status(), words);
  return std::move(result.value());
}

template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(uint64_t size) : size_(size) {
    if (size > 0) data_ = static_cast<T*>(require(cuda_api::allocate(size * sizeof(T))));
  }
  DeviceBuffer(const std::vector<T>& values, cuda_api::Stream stream) : DeviceBuffer(values.size()) {
    if (size_ == 0) return;
    require(cuda_api::copy_async(data_, values.data(), bytes(), stream));
    require(cuda_api::synchronize(stream));  // `values` may go when this returns
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) (void)cuda_api::release(data_);
  }

  T* data() const { return data_; }
  uint64_t size() const { return size_; }
  uint64_t bytes() const { return size_ * sizeof(T); }

  // All elements, once the stream has come this far.
  std::vector<T> download(cuda_api::Stream stream) const {
    std::vector<T> values(size_);
    if (size_ == 0) return values;
    require(cuda_api::copy_async(values.data(), data_, bytes(), stream));
    require(cuda_api::synchronize(stream));
    return values;
  }

 private:
  T* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace fulcrum::harness
