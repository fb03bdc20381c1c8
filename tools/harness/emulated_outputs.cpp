// A file of outputs: for each problem a count and that many 16-bit values; see emulated_outputs.hpp.
#include "harness/emulated_outputs.hpp"

#include <fmt/format.h>
#include <fulcrum/jit.hpp>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "harness/input_error.hpp"

namespace fulcrum::harness {
namespace {

// Values of the rows that the oracle knows, in its order.
std::vector<uint16_t> outputs_of(ProblemOnDevice& problem, Data data) {
  const Expected& expected = problem.expected(data);
  const OutView view = problem.out_view();
  std::vector<uint8_t> bytes(view.rows * view.stride_bytes);
  if (!bytes.empty()) require(cuda_api::copy_async(bytes.data(), view.out(), bytes.size(), problem.stream()));
  require(cuda_api::synchronize(problem.stream()));
  std::vector<uint16_t> values;
  for (const OracleRow& row : expected.host_rows) {
    const uint8_t* from = bytes.data() + row.output_row * view.stride_bytes;
    for (uint32_t column = 0; column < expected.columns; ++column)
      values.push_back(static_cast<uint16_t>(from[2 * column] | from[2 * column + 1] << 8));
  }
  return values;
}

// Neighbouring numbers differ by 1, the two zeros by none.
int32_t ordinal(uint16_t bits) { return (bits & 0x8000) != 0 ? -(bits & 0x7FFF) : bits; }

}  // namespace

std::string emulated_outputs_folder() {
  const char* folder = std::getenv("FULCRUM_EMULATED");
  return folder != nullptr ? folder : "";
}

std::string emulated_outputs_path(const std::string& folder, const Config& config, const KernelKind& kind) {
  return folder + "/" + jit::entry_name(config, kind);
}

EmulatedOutputsWriter::EmulatedOutputsWriter(const std::string& path) : file_(path, std::ios::binary), path_(path) {
  if (!file_) throw InputError(fmt::format("{} cannot be written", path));
}

void EmulatedOutputsWriter::add(ProblemOnDevice& problem, Data data) {
  const std::vector<uint16_t> values = outputs_of(problem, data);
  const uint64_t count = values.size();
  file_.write(reinterpret_cast<const char*>(&count), sizeof count);
  file_.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(count * 2));
  if (!file_.flush()) throw InputError(fmt::format("{} cannot be written", path_));
}

EmulatedOutputsReader::EmulatedOutputsReader(const std::string& path) : file_(path, std::ios::binary), path_(path) {
  if (!file_) throw InputError(fmt::format("{} cannot be read; the emulator's tests write it", path));
}

EmulatedOutputsReader::Agreement EmulatedOutputsReader::compare(ProblemOnDevice& problem, Data data) {
  const std::vector<uint16_t> values = outputs_of(problem, data);
  uint64_t count = 0;
  std::vector<uint16_t> emulated(values.size());
  file_.read(reinterpret_cast<char*>(&count), sizeof count);
  if (file_ && count == values.size())
    file_.read(reinterpret_cast<char*>(emulated.data()), static_cast<std::streamsize>(count * 2));
  if (!file_ || count != values.size()) {
    throw InputError(fmt::format("{} holds {} values where {} has {}; it is of other problems", path_, count,
                                 problem_name(problem.problem()), values.size()));
  }
  Agreement agreement;
  agreement.num_compared = count;
  for (uint64_t i = 0; i < count; ++i) {
    agreement.num_equal += values[i] == emulated[i] ? 1 : 0;
    const int32_t apart = std::abs(ordinal(values[i]) - ordinal(emulated[i]));
    agreement.largest_ulp = std::max(agreement.largest_ulp, static_cast<uint32_t>(apart));
  }
  return agreement;
}

}  // namespace fulcrum::harness
