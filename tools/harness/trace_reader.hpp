// One pass over a routing trace, row by row, with the line number at hand for every complaint.
//
// Called by sample_trace(). Only the current line is in memory.
// Invariant: every row that comes out has exactly the header's columns, ids in -1 .. experts-1 (tokens form) or
// 0 .. experts-1 (counts form), whatever its layer; anything else throws InputError "path:line: ...".
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/trace.hpp"

namespace fulcrum::harness {

struct TraceCount {
  uint32_t layer = 0;
  uint32_t expert = 0;
  uint64_t count = 0;
};

class TraceReader {
 public:
  // Opens the file and reads its header. `experts` bounds the ids; with 0 the bound is 2^16.
  TraceReader(const std::string& path, uint32_t experts);

  TraceForm form() const { return form_; }
  bool has_layer() const { return has_layer_; }
  uint32_t top_k() const { return top_k_; }                    // tokens form: the columns e0, e1, ...
  uint64_t line() const { return line_; }                      // of the row read last, from 1
  uint32_t largest_expert() const { return largest_expert_; }  // so far

  // The next row; false at the end of the file. `layer` is 0 without a layer column. ids: [top_k]
  bool next_tokens(uint32_t& layer, std::vector<int32_t>& ids);
  bool next_count(TraceCount& row);

  [[noreturn]] void fail(const std::string& sentence) const;

 private:
  bool next_line();
  void read_header();
  std::string_view next_field(std::string_view& rest, std::string_view column) const;
  uint64_t read_number(std::string_view& rest, std::string_view column, uint64_t bound) const;
  int32_t read_expert(std::string_view& rest, std::string_view column, bool may_be_none);
  void expect_end(std::string_view rest) const;

  std::string path_;
  std::ifstream file_;
  std::string text_;  // the current line
  uint64_t line_ = 0;
  TraceForm form_ = TraceForm::tokens;
  bool has_layer_ = false;
  uint32_t top_k_ = 0;
  uint32_t experts_ = 0;
  uint32_t largest_expert_ = 0;
  std::vector<std::string> columns_;  // names of the expert columns, for messages
};

}  // namespace fulcrum::harness
