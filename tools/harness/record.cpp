// Lines of the record of benchmarks, written and read.
//
// Called by bench. Invariant: see record.hpp; one table of fields serves header, writing and reading.
#include "harness/record.hpp"

#include <fmt/format.h>
#include <fulcrum/host/file.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <tuple>
#include <variant>

#include <unistd.h>

#include "harness/input_error.hpp"

namespace fulcrum::harness {
namespace {

using Member = std::variant<std::string Record::*, std::optional<double> Record::*, std::optional<uint64_t> Record::*>;

struct Field {
  const char* name;
  Member member;
};

const Field fields[] = {
    {"workload", &Record::workload},
    {"case", &Record::case_name},
    {"routing", &Record::routing},
    {"item", &Record::item},
    {"config", &Record::config},
    {"dtype", &Record::dtype},
    {"median_us", &Record::median_us},
    {"best_us", &Record::best_us},
    {"ci_us", &Record::ci_us},
    {"floor_us", &Record::floor_us},
    {"ratio", &Record::ratio},
    {"tflops", &Record::tflops},
    {"gbps", &Record::gbps},
    {"read_roof_gbps", &Record::read_roof_gbps},
    {"matrix_roof_tflops", &Record::matrix_roof_tflops},
    {"rel_error", &Record::rel_error},
    {"samples", &Record::samples},
    {"machine", &Record::machine},
    {"date", &Record::date},
};
constexpr size_t num_fields = std::size(fields);

struct WriteField {
  const Record& record;
  std::string operator()(std::string Record::*member) const {
    const std::string& text = record.*member;
    if (text.find_first_of("\t\n\r") != std::string::npos)
      throw InputError(fmt::format("a record's text may not hold tabs or line ends: '{}'", text));
    return text;
  }
  std::string operator()(std::optional<double> Record::*member) const {
    // six significant digits: a tenth of the smallest difference that a timing can show
    return record.*member ? fmt::format("{:.6g}", *(record.*member)) : std::string();
  }
  std::string operator()(std::optional<uint64_t> Record::*member) const {
    return record.*member ? std::to_string(*(record.*member)) : std::string();
  }
};

// False when the text is not what the field holds.
struct ReadField {
  Record& record;
  const std::string& text;

  bool operator()(std::string Record::*member) const {
    record.*member = text;
    return true;
  }
  template <class Number>
  bool operator()(std::optional<Number> Record::*member) const {
    if (text.empty()) return true;
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return false;
    record.*member = value;
    return true;
  }
};

std::vector<std::string> split_tabs(const std::string& line) {
  std::vector<std::string> parts{""};
  for (const char letter : line) {
    if (letter == '\t') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

}  // namespace

std::string record_header() {
  std::string header;
  for (const Field& field : fields) header += fmt::format("{}{}", header.empty() ? "" : "\t", field.name);
  return header;
}

std::string record_line(const Record& record) {
  std::string line;
  for (const Field& field : fields) {
    if (&field != &fields[0]) line += '\t';
    line += std::visit(WriteField{record}, field.member);
  }
  return line;
}

Record parse_record(const std::string& line, const std::string& where) {
  const std::vector<std::string> parts = split_tabs(line);
  if (parts.size() != num_fields)
    throw InputError(fmt::format("{}: a record has {} columns, this line {}", where, num_fields, parts.size()));
  Record record;
  for (size_t i = 0; i < num_fields; ++i) {
    if (!std::visit(ReadField{record, parts[i]}, fields[i].member))
      throw InputError(
          fmt::format("{}: '{}' is not a number, and column {} holds one", where, printable(parts[i]), fields[i].name));
  }
  return record;
}

std::vector<Record> read_records(const std::string& path) {
  std::string text;
  std::vector<Record> records;
  const Status status = read_file(path.c_str(), text);
  if (!status.ok() && ::access(path.c_str(), F_OK) == 0) throw InputError(fmt::format("{}: {}", path, message(status)));
  std::istringstream file(text);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string where = fmt::format("{}:{}", path, number);
    if (number > 1) {
      records.push_back(parse_record(line, where));
    } else if (line != record_header()) {
      throw InputError(fmt::format("{}: this is not the header of a record of benchmarks; it begins with '{}'", where,
                                   printable(line.substr(0, 40))));
    }
  }
  return records;
}

bool is_recorded(const std::vector<Record>& history, const Record& key) {
  const auto identity = [](const Record& record) {
    return std::tie(record.workload, record.case_name, record.routing, record.item, record.dtype, record.config);
  };
  return std::any_of(history.begin(), history.end(),
                     [&](const Record& record) { return identity(record) == identity(key); });
}

void append_records(const std::string& path, const std::vector<Record>& records) {
  (void)read_records(path);  // refuses a file of another kind before anything is added to it
  std::string existing;
  (void)read_file(path.c_str(), existing);
  std::string text = existing.empty() ? record_header() + "\n" : std::string();
  if (!existing.empty() && existing.back() != '\n') text = "\n";  // an editor left the last line open
  for (const Record& record : records) text += record_line(record) + "\n";
  std::ofstream file(path, std::ios::app);
  file << text << std::flush;
  if (!file) throw InputError(fmt::format("{} cannot be written; its folder must exist and be writable", path));
}

std::string gpu_file_name(const std::string& gpu) {
  constexpr const char* maker = "NVIDIA ";
  std::string name;
  for (const char letter : gpu.rfind(maker, 0) == 0 ? gpu.substr(std::char_traits<char>::length(maker)) : gpu) {
    const auto byte = static_cast<unsigned char>(letter);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '_';
  }
  return name;
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  (void)gmtime_r(&now, &parts);
  char text[32];
  (void)std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace fulcrum::harness
