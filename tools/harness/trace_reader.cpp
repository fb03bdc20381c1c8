// The rows of a routing trace, field by field.
//
// Called by sample_trace(). Invariant: see trace_reader.hpp.
#include "harness/trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/input_error.hpp"

namespace fulcrum::harness {
namespace {

// 32 ids, a layer and a token take less than 500 characters. A file without line ends must not fill the memory.
constexpr size_t line_capacity = 4096;

}  // namespace

TraceReader::TraceReader(const std::string& path, uint32_t experts) : path_(path), file_(path), experts_(experts) {
  if (!file_) throw InputError(fmt::format("cannot open the trace {}", path));
  read_header();
}

void TraceReader::fail(const std::string& sentence) const {
  throw InputError(fmt::format("{}:{}: {}", path_, line_, sentence));
}

bool TraceReader::next_line() {
  char line[line_capacity];
  file_.getline(line, sizeof line);
  if (file_.bad()) fail("the file cannot be read from here on; is it a folder?");
  if (file_.fail() && file_.gcount() == 0) return false;
  ++line_;
  if (file_.fail())
    fail(fmt::format("the line has more than {} characters; a trace has none so long", line_capacity - 1));
  const auto length = static_cast<size_t>(file_.gcount());
  text_.assign(line, file_.eof() ? length : length - 1);  // gcount() has the line end
  if (text_.empty()) fail("blank line; remove it");
  if (text_.back() == '\r') fail("the line ends with CR LF; convert the file to LF line ends");
  return true;
}

void TraceReader::read_header() {
  if (!next_line()) {
    line_ = 1;
    fail("the file is empty; its first line must name the columns");
  }
  if (text_ == "layer,expert,count") {
    form_ = TraceForm::counts;
    has_layer_ = true;
    return;
  }
  std::string wanted = "token";
  if (text_.starts_with("token,layer")) {
    has_layer_ = true;
    wanted += ",layer";
  }
  while (wanted.size() < text_.size() && text_.starts_with(wanted) && top_k_ < 32) {
    columns_.push_back(fmt::format("e{}", top_k_++));
    wanted += "," + columns_.back();
  }
  if (top_k_ == 0 || wanted != text_) {
    fail(fmt::format("the columns are '{}'; a trace has token[,layer],e0,e1,... (at most e31) or layer,expert,count",
                     printable(text_)));
  }
}

std::string_view TraceReader::next_field(std::string_view& rest, std::string_view column) const {
  if (rest.data() == nullptr) fail(fmt::format("the row ends before column {}", column));
  const size_t comma = rest.find(',');
  const std::string_view field = rest.substr(0, comma);
  rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);  // null: nothing follows
  return field;
}

uint64_t TraceReader::read_number(std::string_view& rest, std::string_view column, uint64_t bound) const {
  const std::string_view field = next_field(rest, column);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (error != std::errc{} || end != field.data() + field.size() || number >= bound) {
    fail(fmt::format("column {} is '{}', not a whole number below {}", column, printable(field), bound));
  }
  return number;
}

int32_t TraceReader::read_expert(std::string_view& rest, std::string_view column, bool may_be_none) {
  const std::string_view field = next_field(rest, column);
  int32_t id = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), id);
  if (error != std::errc{} || end != field.data() + field.size()) {
    fail(fmt::format("column {} is '{}', not an expert id", column, printable(field)));
  }
  // Without a bound from the caller: 2^16 ids, far more than any model has, so that a wrong column is still noticed.
  const int32_t bound = static_cast<int32_t>(experts_ == 0 ? 65536 : experts_);
  if (id < (may_be_none ? -1 : 0) || id >= bound) {
    fail(fmt::format("column {} has expert id {}, which is not in 0 .. {}", column, id, bound - 1));
  }
  if (id >= 0) largest_expert_ = std::max(largest_expert_, static_cast<uint32_t>(id));
  return id;
}

void TraceReader::expect_end(std::string_view rest) const {
  if (rest.data() != nullptr) fail("the row has more columns than the header");
}

bool TraceReader::next_tokens(uint32_t& layer, std::vector<int32_t>& ids) {
  if (!next_line()) return false;
  std::string_view rest = text_;
  read_number(rest, "token", UINT64_MAX);
  layer = has_layer_ ? static_cast<uint32_t>(read_number(rest, "layer", UINT32_MAX)) : 0;
  ids.resize(top_k_);
  for (uint32_t choice = 0; choice < top_k_; ++choice) ids[choice] = read_expert(rest, columns_[choice], true);
  expect_end(rest);
  return true;
}

bool TraceReader::next_count(TraceCount& row) {
  if (!next_line()) return false;
  std::string_view rest = text_;
  row.layer = static_cast<uint32_t>(read_number(rest, "layer", UINT32_MAX));
  row.expert = static_cast<uint32_t>(read_expert(rest, "expert", false));
  row.count = read_number(rest, "count", uint64_t{1} << 48);  // what apportion() takes
  expect_end(rest);
  return true;
}

}  // namespace fulcrum::harness
