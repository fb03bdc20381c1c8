// Tables: the text form and its strictness, what newer and older versions may write, and how rows are matched.
//
// Run by ctest as unit.host_table; needs no GPU.
#include "temporary_folder.hpp"

#include <boost/test/unit_test.hpp>
#include <fulcrum/host/table.hpp>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <functional>

using namespace fulcrum;

namespace {

Device h200() {
  Device device;
  device.arch.cc = 90;
  device.num_sms = 132;
  device.shared_per_sm_bytes = 233472;
  std::snprintf(device.name, sizeof device.name, "NVIDIA H200");
  return device;
}

const Shape gate_up{1280, 4096, 288, 288, 0, 8, DType::f16, Projection::gate_up, Activation::silu};
const Shape down{4096, 640, 288, 288, 0, 8, DType::f16, Projection::down, Activation::none};
const Layout natural = layout_of(default_config(kernel_kind(gate_up), Arch{80}));

Row make_row(const Shape& shape, uint64_t first, uint64_t last, double median_us, int32_t tile_n = 128) {
  Row row;
  row.run = "r1";
  row.shape = shape;
  row.tokens_first = first;
  row.tokens_last = last;
  row.routing = "probe";
  row.config = default_config(kernel_kind(shape), Arch{80});
  row.config.tile_n = tile_n;
  row.median_us = median_us;
  row.chosen = "gain";
  return row;
}

Table small_table() {
  Table table;
  table.describe_run("r1", h200());
  table.set_provenance("r1", "date", "2026-11-30");
  table.add(make_row(gate_up, 512, 512, 310.125, 64));
  table.add(make_row(gate_up, 2048, 4096, 450.5, 128));
  table.add(make_row(down, 512, 512, 200.25, 256));
  return table;
}

Result<Table> parse(const std::string& text) { return Table::parse(text.data(), text.size()); }

/// The text with its checks made right again, after `edit` changed its lines (rows and header without the check
/// column).
std::string resigned(const std::string& text, const std::function<std::string(const std::string&)>& edit) {
  std::string out;
  int num_rows = -1;  // the header row is the first
  for (const std::string& line : detail::split(text, '\n')) {
    if (line.empty() || line.compare(0, 6, "# end ") == 0) continue;
    if (line[0] == '#') {
      out += edit(line) + "\n";
      continue;
    }
    const std::string body = edit(line.substr(0, line.rfind('\t')));
    out += body + "\t" + (num_rows++ < 0 ? "check" : detail::line_check(body.data(), body.size())) + "\n";
  }
  Fnv64 hash;
  hash.update(out.data(), out.size());
  return out + "# end " + std::to_string(num_rows) + " " + hash.hex() + "\n";
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_table)

BOOST_AUTO_TEST_CASE(text_round_trip) {
  const std::string text = small_table().to_text();
  const Result<Table> read = parse(text);
  BOOST_REQUIRE_MESSAGE(read.ok(), message(read.status()));
  BOOST_TEST(read->to_text() == text);
  BOOST_TEST(read->warnings().empty());
  BOOST_TEST(read->rows().size() == 3u);
  BOOST_TEST(read->rows()[1].tokens_last == 4096u);
  BOOST_TEST(read->rows()[0].median_us == 310.125);
  BOOST_TEST(read->find_provenance("r1", "date") == std::string("2026-11-30"));
}

BOOST_AUTO_TEST_CASE(decimals_do_not_follow_the_locale) {
  const char* locale = std::setlocale(LC_ALL, "de_DE.UTF-8");  // absent on many machines: then this checks nothing new
  BOOST_TEST(detail::decimal_text(1234.5) == "1234.500");
  double value = 0;
  BOOST_TEST((detail::read_decimal("0.125", value) && value == 0.125));
  BOOST_TEST(!detail::read_decimal("1,5", value));
  BOOST_TEST(!detail::read_decimal("", value));
  BOOST_TEST(!detail::read_decimal("1.", value));
  BOOST_TEST(!detail::read_decimal("nan", value));
  if (locale != nullptr) std::setlocale(LC_ALL, "C");
}

BOOST_AUTO_TEST_CASE(whatever_is_written_can_be_read) {
  for (const double value : {double(NAN), double(INFINITY), -double(INFINITY), -0.5, 9e15, 1e30}) {
    BOOST_TEST(detail::decimal_text(value) == "0.000");
  }
  BOOST_TEST(detail::decimal_text(8e15) == "8000000000000000.000");
  uint64_t count = 0;
  BOOST_TEST((detail::read_count("18446744073709551615", count) && count == UINT64_MAX));
  BOOST_TEST(!detail::read_count("18446744073709551616", count));
  BOOST_TEST(!detail::read_count("100000000000000000000", count));
  Table table = small_table();
  Row row = make_row(gate_up, 1, UINT64_MAX, NAN, 64);
  row.tflops = INFINITY;
  row.samples = UINT64_MAX;
  table.add(row);
  const Result<Table> read = parse(table.to_text());
  BOOST_REQUIRE_MESSAGE(read.ok(), message(read.status()));
  BOOST_TEST(read->rows().back().tokens_last == UINT64_MAX);
  BOOST_TEST(read->rows().back().median_us == 0);
}

BOOST_AUTO_TEST_CASE(file_is_published_whole) {
  const TemporaryFolder folder;
  const std::string path = folder / "best.tsv";
  BOOST_TEST(small_table().write(path.c_str()).ok());
  BOOST_TEST(small_table().write(path.c_str()).ok());
  BOOST_TEST(folder.count("") == 1);  // no temporary file is left
  BOOST_TEST(Table::load(path.c_str()).ok());
  BOOST_TEST((Table::load((folder / "absent.tsv").c_str()).status().code == Code::io));
  BOOST_TEST((small_table().write((folder / "no/such/folder.tsv").c_str()).code == Code::io));
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  const std::string text = small_table().to_text();
  for (size_t length = 0; length < text.size(); ++length) {
    const Result<Table> read = parse(text.substr(0, length));
    BOOST_REQUIRE_MESSAGE(!read.ok(), "accepted after " << length << " of " << text.size() << " bytes");
    BOOST_REQUIRE((read.status().code == Code::parse));
  }
}

BOOST_AUTO_TEST_CASE(every_edit_is_refused_and_rows_by_line) {
  const std::string text = small_table().to_text();
  int64_t line = 1;
  const int64_t num_lines = static_cast<int64_t>(std::count(text.begin(), text.end(), '\n'));
  for (size_t at = 0; at < text.size(); ++at) {
    std::string edited = text;
    edited[at] = static_cast<char>(edited[at] ^ 1);
    const Result<Table> read = parse(edited);
    BOOST_REQUIRE_MESSAGE(!read.ok(), "accepted with byte " << at << " changed");
    const bool in_row = line > num_lines - 4 && line < num_lines && text[at] != '\n';
    if (in_row) BOOST_REQUIRE_EQUAL(read.status().value, line);
    line += text[at] == '\n' ? 1 : 0;
  }
}

BOOST_AUTO_TEST_CASE(lost_and_added_lines_are_refused) {
  const std::string text = small_table().to_text();
  const size_t last_row = text.rfind("r1\tgemm");
  const size_t end_line = text.rfind("# end");
  BOOST_TEST(!parse(text.substr(0, last_row) + text.substr(end_line)).ok());
  BOOST_TEST(!parse(text + "# more: here\n").ok());
  const Result<Table> converted = parse(replaced(text, "\n", "\r\n"));
  BOOST_TEST(message(converted.status()).find("line 1: the line ends with CR LF") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(missing_and_doubled_columns_are_named) {
  const std::string text = small_table().to_text();
  const Result<Table> lacks =
      parse(resigned(text, [](const std::string& line) { return replaced(line, "median_us", "median_ms"); }));
  BOOST_TEST(message(lacks.status()).find("lacks the column median_us") != std::string::npos);
  const Result<Table> doubled =
      parse(resigned(text, [](const std::string& line) { return replaced(line, "ci_low_us", "median_us"); }));
  BOOST_TEST(message(doubled.status()).find("two columns have the name median_us") != std::string::npos);
  const Result<Table> bad =
      parse(resigned(text, [](const std::string& line) { return replaced(line, "310.125", "3l0.125"); }));
  BOOST_TEST(message(bad.status()).find("line 15: cannot read the column median_us") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_newer_version_may_add_columns) {
  const Result<Table> read = parse(resigned(small_table().to_text(), [](const std::string& line) {
    return line[0] == '#' ? line : line + (line.compare(0, 3, "run") == 0 ? "\twatts" : "\t700");
  }));
  BOOST_REQUIRE_MESSAGE(read.ok(), message(read.status()));
  BOOST_TEST(read->rows().size() == 3u);
  BOOST_TEST(read->warnings().empty());
}

BOOST_AUTO_TEST_CASE(unknown_levers_by_kind) {
  // a table of a version that has one more lever of each kind; its first row names one of them
  const auto with_lever = [](const std::string& lever) {
    return parse(resigned(small_table().to_text(), [&](const std::string& line) {
      if (line.compare(0, 14, "# levers.tune:") == 0) return line + " snake";
      if (line.compare(0, 13, "# levers.run:") == 0) return line + " dependent";
      if (line.compare(0, 16, "# levers.layout:") == 0) return line + " swizzle";
      if (line.compare(0, 14, "# levers.math:") == 0) return line + " accumulate";
      return line.find("310.125") != std::string::npos ? replaced(line, ",tile_n=", "," + lever + "=2,tile_n=") : line;
    }));
  };
  for (const char* harmless : {"snake", "dependent"}) {
    const Result<Table> read = with_lever(harmless);
    BOOST_REQUIRE_MESSAGE(read.ok(), message(read.status()));
    BOOST_TEST(read->rows().size() == 3u);
    BOOST_REQUIRE(read->warnings().size() == 1u);
    BOOST_TEST(read->warnings()[0].find(harmless) != std::string::npos);
  }
  for (const char* harmful : {"swizzle", "accumulate", "unlisted"}) {
    const Result<Table> read = with_lever(harmful);
    BOOST_REQUIRE_MESSAGE(read.ok(), message(read.status()));
    BOOST_TEST(read->rows().size() == 2u);
    BOOST_REQUIRE(read->warnings().size() == 1u);
    BOOST_TEST(read->warnings()[0].find(harmful) != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(missing_levers_take_their_absent_value) {
  const Result<Table> read = parse(
      resigned(small_table().to_text(), [](const std::string& line) { return replaced(line, ",min_blocks=2", ""); }));
  BOOST_REQUIRE_MESSAGE(read.ok(), message(read.status()));
  BOOST_TEST(read->rows()[0].config.min_blocks == 1);
}

BOOST_AUTO_TEST_CASE(unknown_values_and_kinds_cost_their_row) {
  const std::string text = small_table().to_text();
  for (const auto& [what, with] : {std::pair("copy=cp_async", "copy=tma"), std::pair("gemm", "layer"),
                                   std::pair("activation=silu", "activation=gelu")}) {
    const std::string from = what;
    const std::string to = with;
    bool done = false;
    const Result<Table> read = parse(resigned(text, [&](const std::string& line) {
      if (done || line[0] == '#' || line.compare(0, 3, "run") == 0) return line;
      done = true;
      return replaced(line, from, to);
    }));
    BOOST_REQUIRE_MESSAGE(read.ok(), message(read.status()));
    BOOST_TEST(read->rows().size() == 2u, from);
    BOOST_TEST(read->warnings().size() == 1u, from);
  }
}

BOOST_AUTO_TEST_CASE(rows_that_cannot_be_used_are_written_again) {
  // of a version with a kind of row, a lever and a column that this one does not know
  const std::string text = resigned(small_table().to_text(), [](const std::string& line) {
    if (line[0] == '#') return line;
    if (line.compare(0, 4, "run\t") == 0) return line + "\twatts";
    const std::string row = line.find("310.125") != std::string::npos ? replaced(line, "gemm", "layer")
                            : line.find("450.500") != std::string::npos
                                ? replaced(line, ",tile_n=", ",swizzle=2,tile_n=")
                                : line;
    return row + "\t700";
  });
  const Result<Table> read = parse(text);
  BOOST_REQUIRE_MESSAGE(read.ok(), message(read.status()));
  BOOST_TEST(read->rows().size() == 1u);
  BOOST_TEST(read->warnings().size() == 2u);
  Table whole = *read;
  Table fresh;
  fresh.describe_run("r2", h200());
  Row row = make_row(down, 512, 512, 100, 64);  // in place of the row that can be used
  row.run = "r2";
  fresh.add(row);
  whole.merge(fresh);
  const std::string again = whole.to_text();
  const Result<Table> back = parse(again);
  BOOST_REQUIRE_MESSAGE(back.ok(), message(back.status()));
  BOOST_TEST(back->rows().size() == 1u);
  BOOST_TEST(back->warnings() == read->warnings(), boost::test_tools::per_element());
  for (const char* part : {"r1\tlayer\t", ",swizzle=2,tile_n=", "\tsource\twatts\tcheck\n", "\tmeasured\t700\t"})
    BOOST_TEST(again.find(part) != std::string::npos, part);
  BOOST_TEST(back->to_text() == again);
  Table other;  // they come along when tables are merged, under the name that their run then has
  other.describe_run("r1", h200());
  other.merge(*back);
  BOOST_TEST(other.to_text().find("r1-2\tlayer\t") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(rows_that_are_illegal_on_their_device_are_named_and_never_chosen) {
  const Result<Table> read = parse(resigned(small_table().to_text(), [](const std::string& line) {
    return line.find("tile_n=64") != std::string::npos ? replaced(line, "stages=4", "stages=17") : line;
  }));
  BOOST_REQUIRE_MESSAGE(read.ok(), message(read.status()));
  BOOST_TEST(read->rows().size() == 3u);
  BOOST_REQUIRE(read->warnings().size() == 1u);
  BOOST_TEST(read->warnings()[0] == "a row is never used: stages is 2 to 16");
  const Choice choice = read->choose(device_key(h200()), gate_up, natural, 512);
  BOOST_TEST((choice.match == Match::nearest_tokens && choice.config.tile_n == 128));
}

BOOST_AUTO_TEST_CASE(rows_of_another_revision_are_stale) {
  const Result<Table> read = parse(resigned(small_table().to_text(), [](const std::string& line) {
    return line.find("revision.mma_sync") != std::string::npos ? std::string("# r1/revision.mma_sync: 0") : line;
  }));
  BOOST_REQUIRE_MESSAGE(read.ok(), message(read.status()));
  BOOST_TEST(read->choose(device_key(h200()), gate_up, natural, 512).stale);
  BOOST_TEST(read->warnings().size() == 1u);
}

BOOST_AUTO_TEST_CASE(choose_by_tokens) {
  const Table table = small_table();
  const DeviceKey device = device_key(h200());
  const auto pick = [&](uint64_t tokens) { return table.choose(device, gate_up, natural, tokens); };
  BOOST_TEST((pick(512).match == Match::exact && pick(512).config.tile_n == 64));
  BOOST_TEST((pick(3000).match == Match::exact && pick(3000).config.tile_n == 128));
  // the log mean of 512 and 2048 is 1024
  BOOST_TEST((pick(1023).match == Match::nearest_tokens && pick(1023).config.tile_n == 64));
  BOOST_TEST((pick(1025).match == Match::nearest_tokens && pick(1025).config.tile_n == 128));
  BOOST_TEST((pick(0).config.tile_n == 64));
  BOOST_TEST((pick(1ull << 62).config.tile_n == 128));
}

BOOST_AUTO_TEST_CASE(choose_matches_shape_and_layout_exactly) {
  const Table table = small_table();
  const DeviceKey device = device_key(h200());
  Shape other = gate_up;
  other.n = 1296;
  BOOST_TEST((table.choose(device, other, natural, 512).match == Match::default_config));
  other = gate_up;
  other.first_expert = 144;  // the rank does not change the kernel's time
  other.experts = 576;
  BOOST_TEST((table.choose(device, other, natural, 512).match == Match::default_config));
  const Layout plain{CodeWord::plain, KOrder::permuted};
  const Choice choice = table.choose(device, gate_up, plain, 512);
  BOOST_TEST((choice.match == Match::default_config && choice.row == nullptr && layout_of(choice.config) == plain));
  BOOST_TEST(illegal_reason(choice.config, Arch{90}, gate_up) == nullptr);
}

BOOST_AUTO_TEST_CASE(choose_on_another_device) {
  const Table table = small_table();
  Device sibling = h200();
  sibling.num_sms = 114;
  BOOST_TEST((table.choose(device_key(sibling), gate_up, natural, 512).match == Match::other_device));
  std::snprintf(sibling.name, sizeof sibling.name, "another name");
  sibling.num_sms = 132;
  BOOST_TEST((table.choose(device_key(sibling), gate_up, natural, 512).match == Match::exact));
  for (const int cc : {80, 100}) {  // each has a default of its own
    sibling.arch.cc = cc;
    const Choice choice = table.choose(device_key(sibling), gate_up, natural, 512);
    BOOST_TEST((choice.match == Match::default_config));
    BOOST_TEST((choice.config == default_config(kernel_kind(gate_up), Arch{cc})));
  }
}

BOOST_AUTO_TEST_CASE(choose_prefers_this_device_measured_rows_and_the_routing) {
  Table table = small_table();
  Device sibling = h200();
  sibling.num_sms = 114;
  table.describe_run("r2", sibling);
  Row near = make_row(gate_up, 600, 600, 1, 256);
  near.run = "r2";
  table.add(near);
  Row modelled = make_row(gate_up, 600, 600, 1, 256);
  modelled.source = Source::modelled;
  table.add(modelled);
  const DeviceKey device = device_key(h200());
  BOOST_TEST(table.choose(device, gate_up, natural, 600).config.tile_n == 64);
  Row receipt = make_row(gate_up, 512, 512, 1, 192);
  receipt.routing = "receipt";
  table.add(receipt);
  BOOST_TEST(table.choose(device, gate_up, natural, 512, "receipt").config.tile_n == 192);
  BOOST_TEST(!table.choose(device, gate_up, natural, 512, "receipt").other_routing);
  BOOST_TEST(table.choose(device, gate_up, natural, 512, "trace").other_routing);
  BOOST_TEST(!table.choose(device, gate_up, natural, 512).other_routing);
}

BOOST_AUTO_TEST_CASE(one_layout_for_all_token_counts) {
  Table table = small_table();
  const DeviceKey device = device_key(h200());
  BOOST_TEST((table.layout(device, gate_up) == natural));
  Row permuted = make_row(gate_up, 512, 512, 200, 64);  // two thirds of the time at 512, never measured at 2048
  permuted.config.k_order = KOrder::permuted;
  table.add(permuted);
  Row slow = make_row(gate_up, 2048, 4096, 460, 64);
  slow.config.k_order = KOrder::permuted;
  BOOST_TEST((table.layout(device, gate_up) == natural));
  table.add(slow);
  BOOST_TEST((table.layout(device, gate_up).k_order == KOrder::permuted));
  Shape absent = gate_up;
  absent.dtype = DType::bf16;
  BOOST_TEST((table.layout(device, absent).code_word == CodeWord::bf16));
}

// Nobody repacks for a row of weights read in place, however fast it was; whoever reads in place asks for it.
BOOST_AUTO_TEST_CASE(rows_of_weights_read_in_place_are_asked_for) {
  constexpr Layout in_place{CodeWord::block36, KOrder::natural};
  Table table = small_table();
  const DeviceKey device = device_key(h200());
  Choice choice = table.choose(device, gate_up, in_place, 512);
  BOOST_TEST((choice.match == Match::default_config));
  BOOST_TEST((choice.config == default_config(kernel_kind(gate_up), Arch{90}, in_place)));
  BOOST_TEST(illegal_reason(choice.config, Arch{90}, gate_up) == nullptr);
  for (const uint64_t tokens : {512u, 2048u, 4096u}) {
    Row row = make_row(gate_up, tokens, tokens, 1, 64);
    row.config = default_config(kernel_kind(gate_up), Arch{90}, in_place);
    row.config.tile_n = 256;
    table.add(row);
  }
  BOOST_TEST((table.layout(device, gate_up) == natural));
  choice = table.choose(device, gate_up, in_place, 512);
  BOOST_TEST((choice.match == Match::exact && choice.config.tile_n == 256));
}

BOOST_AUTO_TEST_CASE(merge_replaces_what_was_measured_again) {
  Table table = small_table();
  Table newer;
  newer.describe_run("r1", h200());
  newer.set_provenance("r1", "date", "2026-12-01");
  newer.add(make_row(gate_up, 512, 512, 300, 256));
  table.merge(newer);
  BOOST_TEST(table.rows().size() == 3u);
  const Choice choice = table.choose(device_key(h200()), gate_up, natural, 512);
  BOOST_TEST(choice.config.tile_n == 256);
  BOOST_TEST(choice.row->run == "r1-2");  // the old run keeps its name and its provenance
  BOOST_TEST(table.find_provenance("r1", "date") == std::string("2026-11-30"));
  BOOST_TEST(table.find_provenance("r1-2", "date") == std::string("2026-12-01"));
  BOOST_TEST(parse(table.to_text()).ok());
}

BOOST_AUTO_TEST_SUITE_END()
