// Reads the text form of a Table line by line; table_text.hpp has the form.
//
// Included by table_text.hpp alone.
// Invariant: damage is an error with its line number; a row that this build cannot use is left out with a warning.
#pragma once

#include <fulcrum/host/table_text.hpp>

FULCRUM_NAMESPACE_BEGIN

class TableReader {
 public:
  Result<Table> read(const char* text, uint64_t length) {
    Fnv64 hash;  // of the lines before the present one
    for (uint64_t begin = 0; begin < length;) {
      ++line_;
      uint64_t end = begin;
      while (end < length && text[end] != '\n') ++end;
      if (end == length) return error("the line does not end: the file was cut short");
      if (ended_) return error("there is something after the end line");
      const std::string line(text + begin, end - begin);
      if (!line.empty() && line.back() == '\r') return error("the line ends with CR LF: the file was converted");
      const Status status = line.compare(0, 6, "# end ") == 0 ? read_end(line, hash)
                            : !line.empty() && line[0] == '#' ? read_comment(line)
                            : columns_.empty()                ? read_header(line)
                                                              : read_row(line);
      if (!status.ok()) return status;
      hash.update(text + begin, end + 1 - begin);
      begin = end + 1;
    }
    if (!ended_) return error("the end line is missing: the file was cut short");
    warn_stale();
    return table_;
  }

 private:
  Status error(const char* words, const char* subject = "") const {
    return make_error(Code::parse, detail::table_rule, subject, line_, 0, words);
  }

  /// "# key: value" or "# run/key: value"
  Status read_comment(const std::string& line) {
    const size_t colon = line.find(": ");
    if (line.compare(0, 2, "# ") != 0 || (colon == std::string::npos && line.back() != ':'))
      return error("expected \"# key: value\"");
    const size_t key_end = colon == std::string::npos ? line.size() - 1 : colon;
    const std::string key = line.substr(2, key_end - 2);
    const std::string value = colon == std::string::npos ? "" : line.substr(colon + 2);
    const size_t slash = key.find('/');
    if (slash != std::string::npos) {
      table_.set_provenance(key.substr(0, slash).c_str(), key.substr(slash + 1).c_str(), value.c_str());
    } else if (key == "format") {
      if (value.compare(0, 14, "fulcrum-table ") != 0) return error("this is not a table of fulcrum");
    } else if (key.compare(0, 7, "levers.") == 0) {
      lever_lines_.push_back(Provenance{"", key, " " + value + " "});
    } else if (key != "version") {
      table_.set_provenance("", key.c_str(), value.c_str());
    }
    return success();
  }

  Status read_header(const std::string& line) {
    names_ = detail::split(line, '\t');
    if (names_.back() != "check") return error("the header row must end with the column \"check\"");
    columns_.assign(names_.size(), nullptr);
    for (const detail::Column& column : detail::columns) {
      bool present = false;
      for (size_t place = 0; place < names_.size(); ++place) {
        if (names_[place] != column.name) continue;
        if (present) return error("two columns have the name ", column.name);
        columns_[place] = &column;
        present = true;
      }
      if (!present && column.required) return error("the header row lacks the column ", column.name);
    }
    return success();
  }

  Status read_row(const std::string& line) {
    const size_t last_tab = line.rfind('\t');
    const std::vector<std::string> fields = detail::split(line, '\t');
    if (fields.size() != columns_.size()) return error("the row has another number of columns than the header row");
    if (detail::line_check(line.data(), last_tab) != fields.back())
      return error("the row was edited or damaged: its check does not fit");
    ++num_rows_;
    Row row;
    std::string kind, shape, layout, config;
    for (size_t place = 0; place < fields.size(); ++place) {
      if (columns_[place] == nullptr) continue;
      if (!detail::read_cell(*columns_[place], fields[place], row))
        return error("cannot read the column ", columns_[place]->name);
      const std::string& name = names_[place];
      if (name == "kind") kind = fields[place];
      if (name == "shape") shape = fields[place];
      if (name == "layout") layout = fields[place];
      if (name == "config") config = fields[place];
    }
    std::string reason;
    if (kind != "gemm") {
      reason = "rows of kind \"" + kind + "\" are for a newer version";
    } else if (!parse_shape(shape, row.shape)) {
      reason = "the shape \"" + shape + "\" is for a newer version";
    } else {
      reason = read_config(config, row.config);
    }
    if (!reason.empty()) return leave_out(reason, fields);
    if (layout != detail::layout_text(layout_of(row.config)))
      return error("the layout column does not agree with the config");
    warn_illegal(row);
    row.stale = is_stale(row);
    table_.rows_.push_back(row);
    return success();
  }

  Status read_end(const std::string& line, const Fnv64& hash) {
    ended_ = true;
    const std::vector<std::string> words = detail::split(line, ' ');  // "#", "end", rows, hash
    if (words.size() != 4) return error("expected \"# end <rows> <hash>\"");
    if (words[2] != std::to_string(num_rows_))
      return error("the number of rows is not the one written: lines were added or lost");
    if (words[3] != hash.hex()) return error("the lines above do not match the hash: the file was edited");
    return success();
  }

  Status leave_out(const std::string& reason, const std::vector<std::string>& fields) {
    table_.warn("a row is left out: " + reason);
    const auto without_check = static_cast<std::ptrdiff_t>(fields.size()) - 1;
    table_.foreign_rows_.push_back(
        {{names_.begin(), names_.begin() + without_check}, {fields.begin(), fields.begin() + without_check}});
    return success();
  }

  /// May a lever that this build does not know be dropped? The file says what kind it has; Tune and Run may.
  bool may_ignore(const std::string& lever) const {
    for (const Provenance& line : lever_lines_) {
      const bool harmless = line.key == "levers.tune" || line.key == "levers.run";
      if (harmless && line.value.find(" " + lever + " ") != std::string::npos) return true;
    }
    return false;
  }

  /// Why the row must be left out; nothing when it can be used.
  std::string read_config(const std::string& text, Config& config) {
    std::string known;
    for (const std::string& part : detail::split(text, ',')) {
      const std::string name = part.substr(0, part.find('='));
      bool found = false;
      for (const LeverInfo& lever : lever_infos) found = found || name == lever.name;
      if (!found && !may_ignore(name)) {
        return "its lever \"" + name + "\" may change packed bytes or results, and this version does not know it";
      }
      if (!found) {
        table_.warn("the lever \"" + name + "\" is not known to this version and is ignored");
        continue;
      }
      known += (known.empty() ? "" : ",") + part;
    }
    const ConfigError problem = parse_config(known.c_str(), config);
    if (problem.what == nullptr) return "";
    return std::string(problem.what) + " in \"" + known.substr(static_cast<size_t>(problem.position)) + "\"";
  }

  /// choose() passes over a row that is illegal on its own device; a newer version may have other rules, so it stays.
  void warn_illegal(const Row& row) {
    DeviceKey device;
    if (!table_.run_device(row.run, device)) return;
    const char* reason = illegal_reason(row.config, Arch{device.cc}, row.shape);
    if (reason != nullptr) table_.warn(std::string("a row is never used: ") + reason);
  }

  bool is_stale(const Row& row) const {
    const std::string key = std::string(key_revision_prefix) + value_name(row.config.family);
    const char* revision = table_.find_provenance(row.run.c_str(), key.c_str());
    return revision == nullptr || std::to_string(family_revision(row.config.family)) != revision;
  }

  void warn_stale() {
    size_t count = 0;
    for (const Row& row : table_.rows_) count += row.stale ? 1 : 0;
    if (count == 0) return;
    table_.warn(std::to_string(count) + " of " + std::to_string(table_.rows_.size()) +
                " rows are stale: their kernels have changed since; run `fulcrum tune` again");
  }

  Table table_;
  int64_t line_ = 0;
  uint64_t num_rows_ = 0;
  bool ended_ = false;
  std::vector<std::string> names_;
  std::vector<const detail::Column*> columns_;  // null for columns that this build does not know
  std::vector<Provenance> lever_lines_;         // value with a space at both ends
};

inline Result<Table> Table::parse(const char* text, uint64_t length) { return TableReader().read(text, length); }

FULCRUM_NAMESPACE_END
