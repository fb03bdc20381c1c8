// The text form of a Table: tab-separated, readable by a spreadsheet, and strict about its own integrity.
//
// Included by table.hpp alone. Invariant: a file that was cut short or edited is refused with a line number; what a
// newer version added is ignored, warned about, or costs its row, by what it may change.
#pragma once

#include <fulcrum/host/file.hpp>
#include <fulcrum/host/hash.hpp>
#include <fulcrum/host/table.hpp>

#include <cmath>
#include <cstdio>

FULCRUM_NAMESPACE_BEGIN

// The lines of a file:
//   # format: fulcrum-table 1          lines about the file; levers.<kind> lists the levers its writer knew, so that an
//   # levers.tune: family tile_n ...   older build can tell what a lever it does not know may change
//   # <run>/<key>: <value>             provenance of a run
//   run <tab> kind <tab> ... <tab> check    one header row, then the rows; check: hash of the line up to it
//   # end <rows> <hash>                hash of every byte before this line
namespace detail {

inline constexpr const char* table_rule = "line {value}: {detail}{subject}. Restore the file, or write the table again";

inline std::string config_text(const Config& config) {
  char text[config_text_capacity];
  (void)write_config(config, text, config_text_capacity);
  return text;
}

inline std::string layout_text(Layout layout) {
  return std::string("code_word=") + value_name(layout.code_word) + ",k_order=" + value_name(layout.k_order);
}

/// Thousandths, without the locale's decimal comma. What a column cannot hold (negative, NaN, 9e15 and more) becomes 0,
/// which says "not measured": a table that was written can always be read.
inline std::string decimal_text(double value) {
  const bool fits = value >= 0 && value < 9e15;
  const long long thousandths = fits ? std::llround(value * 1000) : 0;
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03lld", thousandths / 1000, thousandths % 1000);
  return text;
}

inline bool read_count(const std::string& text, uint64_t& value) {
  if (text.empty()) return false;
  value = 0;
  for (const char letter : text) {
    if (letter < '0' || letter > '9') return false;
    const uint64_t digit = static_cast<uint64_t>(letter - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  return true;
}

inline bool read_count(const std::string& text, uint32_t& value) {
  uint64_t wide = 0;
  if (!read_count(text, wide) || wide > 0xFFFFFFFFu) return false;
  value = static_cast<uint32_t>(wide);
  return true;
}

inline bool read_decimal(const std::string& text, double& value) {
  const size_t point = text.find('.');
  uint64_t whole = 0;
  uint64_t part = 0;
  if (!read_count(text.substr(0, point), whole)) return false;
  value = static_cast<double>(whole);
  if (point == std::string::npos) return true;
  const std::string digits = text.substr(point + 1);
  if (!read_count(digits, part)) return false;
  value += static_cast<double>(part) / std::pow(10.0, static_cast<double>(digits.size()));
  return true;
}

inline bool read_tokens(const std::string& text, Row& row) {
  const size_t dash = text.find('-');
  if (!read_count(text.substr(0, dash), row.tokens_first)) return false;
  if (dash == std::string::npos) {
    row.tokens_last = row.tokens_first;
    return true;
  }
  return read_count(text.substr(dash + 1), row.tokens_last) && row.tokens_first <= row.tokens_last;
}

inline std::string one_line(std::string text) {
  for (char& letter : text) {
    if (letter == '\t' || letter == '\n' || letter == '\r') letter = ' ';
  }
  return text;
}

/// A column: its name, and the member of Row that it holds; a column without one is read and written by name.
struct Column {
  const char* name;
  bool required;
  std::string Row::*text = nullptr;
  double Row::*decimal = nullptr;
  uint32_t Row::*count = nullptr;
  uint64_t Row::*wide = nullptr;
};

constexpr Column text_column(const char* name, std::string Row::*member) {
  return {name, true, member, nullptr, nullptr, nullptr};
}
constexpr Column decimal_column(const char* name, double Row::*member, bool required = false) {
  return {name, required, nullptr, member, nullptr, nullptr};
}
constexpr Column count_column(const char* name, uint32_t Row::*member) {
  return {name, false, nullptr, nullptr, member, nullptr};
}
constexpr Column wide_column(const char* name, uint64_t Row::*member) {
  return {name, false, nullptr, nullptr, nullptr, member};
}

// In the order of the file.
inline constexpr Column columns[] = {
    text_column("run", &Row::run),
    {"kind", true},
    {"shape", true},
    {"layout", true},
    {"tokens", true},
    text_column("routing", &Row::routing),
    {"config", true},
    decimal_column("median_us", &Row::median_us, true),
    decimal_column("ci_low_us", &Row::ci_low_us),
    decimal_column("ci_high_us", &Row::ci_high_us),
    wide_column("samples", &Row::samples),
    decimal_column("tflops", &Row::tflops),
    decimal_column("gbps", &Row::gbps),
    decimal_column("roof_percent", &Row::roof_percent),
    count_column("registers", &Row::registers),
    count_column("shared_bytes", &Row::shared_bytes),
    count_column("blocks_per_sm", &Row::blocks_per_sm),
    decimal_column("default_us", &Row::default_us),
    text_column("chosen", &Row::chosen),
    {"source", true},
};

inline std::string tokens_text(const Row& row) {
  const std::string first = std::to_string(row.tokens_first);
  return row.tokens_first == row.tokens_last ? first : first + "-" + std::to_string(row.tokens_last);
}

inline std::string write_cell(const Column& column, const Row& row) {
  if (column.text != nullptr) return one_line(row.*column.text);
  if (column.decimal != nullptr) return decimal_text(row.*column.decimal);
  if (column.count != nullptr) return std::to_string(row.*column.count);
  if (column.wide != nullptr) return std::to_string(row.*column.wide);
  const std::string name = column.name;
  if (name == "kind") return "gemm";
  if (name == "shape") return shape_text(row.shape);
  if (name == "layout") return layout_text(layout_of(row.config));
  if (name == "tokens") return tokens_text(row);
  if (name == "config") return config_text(row.config);
  return row.source == Source::modelled ? "modelled" : "measured";
}

/// False when the text is not of the column's form; an empty cell of a column that may be missing is as if it were.
/// kind, shape, layout and config are left to TableReader: what they hold may be right and yet of no use to this build.
inline bool read_cell(const Column& column, const std::string& text, Row& row) {
  if (text.empty() && !column.required) return true;
  if (column.text != nullptr) row.*column.text = text;
  if (column.decimal != nullptr) return read_decimal(text, row.*column.decimal);
  if (column.count != nullptr) return read_count(text, row.*column.count);
  if (column.wide != nullptr) return read_count(text, row.*column.wide);
  const std::string name = column.name;
  if (name == "tokens") return read_tokens(text, row);
  if (name != "source") return true;
  row.source = text == "modelled" ? Source::modelled : Source::measured;
  return text == "modelled" || text == "measured";
}

inline std::string foreign_cell(const ForeignRow& row, const std::string& name) {
  for (size_t place = 0; place < row.names.size(); ++place) {
    if (row.names[place] == name) return row.cells[place];
  }
  return "";
}

inline std::string line_check(const char* line, size_t length) {
  Fnv64 hash;
  hash.update(line, length);
  return hash.hex().substr(8);  // 32 bits find an edit in one line
}

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == separator) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

template <class E>
bool read_name(const std::string& text, E& value) {
  const ValueNames names = value_names(E{});
  for (int32_t index = 0; index < names.count; ++index) {
    if (text != names.names[index]) continue;
    value = static_cast<E>(index);
    return true;
  }
  return false;
}

inline const char* lever_kind_key(LeverKind kind) {
  switch (kind) {
    case LeverKind::layout: return "levers.layout";
    case LeverKind::math: return "levers.math";
    case LeverKind::tune: return "levers.tune";
    default: return "levers.run";
  }
}

}  // namespace detail

inline std::string shape_text(const Shape& shape) {
  return std::string("projection=") + value_name(shape.projection) + ",n=" + std::to_string(shape.n) +
         ",k=" + std::to_string(shape.k) + ",experts=" + std::to_string(shape.experts) +
         ",local_experts=" + std::to_string(shape.local_experts) + ",top_k=" + std::to_string(shape.top_k) +
         ",dtype=" + value_name(shape.dtype) + ",activation=" + value_name(shape.activation);
}

inline bool parse_shape(const std::string& text, Shape& shape) {
  int num_read = 0;
  for (const std::string& part : detail::split(text, ',')) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    const bool good = name == "projection"      ? detail::read_name(value, shape.projection)
                      : name == "n"             ? detail::read_count(value, shape.n)
                      : name == "k"             ? detail::read_count(value, shape.k)
                      : name == "experts"       ? detail::read_count(value, shape.experts)
                      : name == "local_experts" ? detail::read_count(value, shape.local_experts)
                      : name == "top_k"         ? detail::read_count(value, shape.top_k)
                      : name == "dtype"         ? detail::read_name(value, shape.dtype)
                      : name == "activation"    ? detail::read_name(value, shape.activation)
                                                : false;
    if (!good) return false;
    ++num_read;
  }
  return num_read == 8;
}

/// Columns of rows that were left out which this build does not write itself.
inline std::vector<std::string> Table::foreign_columns() const {
  std::vector<std::string> names;
  for (const ForeignRow& row : foreign_rows_) {
    for (const std::string& name : row.names) {
      bool known = false;
      for (const detail::Column& column : detail::columns) known = known || name == column.name;
      for (const std::string& other : names) known = known || name == other;
      if (!known) names.push_back(name);
    }
  }
  return names;
}

inline std::string Table::to_text() const {
  std::string text = "# format: fulcrum-table 1\n# version: " FULCRUM_VERSION_TEXT "\n";
  for (const LeverKind kind : {LeverKind::layout, LeverKind::math, LeverKind::tune, LeverKind::run}) {
    text += std::string("# ") + detail::lever_kind_key(kind) + ":";
    for (const LeverInfo& lever : lever_infos) {
      if (lever.kind == kind) text += std::string(" ") + lever.name;
    }
    text += "\n";
  }
  for (const Provenance& line : provenance_) {
    text += "# " + (line.run.empty() ? line.key : line.run + "/" + line.key) + ": " + line.value + "\n";
  }
  const std::vector<std::string> extra = foreign_columns();
  for (const detail::Column& column : detail::columns) text += std::string(column.name) + "\t";
  for (const std::string& name : extra) text += name + "\t";
  text += "check\n";
  const auto add_line = [&text](const std::string& line) {  // every cell of it ends with a tab
    text += line + detail::line_check(line.data(), line.size() - 1) + "\n";
  };
  for (const Row& row : rows_) {
    std::string line;
    for (const detail::Column& column : detail::columns) line += detail::write_cell(column, row) + "\t";
    add_line(line + std::string(extra.size(), '\t'));
  }
  for (const ForeignRow& row : foreign_rows_) {
    std::string line;
    for (const detail::Column& column : detail::columns) line += detail::foreign_cell(row, column.name) + "\t";
    for (const std::string& name : extra) line += detail::foreign_cell(row, name) + "\t";
    add_line(line);
  }
  Fnv64 hash;
  hash.update(text.data(), text.size());
  return text + "# end " + std::to_string(rows_.size() + foreign_rows_.size()) + " " + hash.hex() + "\n";
}

inline Status Table::write(const char* path) const {
  const std::string target = resolve_links(path);  // a rename would take the place of a link
  return publish_file(target, target + ".tmp." + std::to_string(::getpid()), to_text());
}

inline Result<Table> Table::load(const char* path) {
  std::string text;
  const Status status = read_file(path, text);
  if (!status.ok()) return status;
  return parse(text.data(), text.size());
}

FULCRUM_NAMESPACE_END

#include <fulcrum/host/table_reader.hpp>
