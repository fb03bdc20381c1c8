// Recorded routings: both forms, sampling of batches, warm-up rows, and every complaint with its line number.
// The files of tests/data/routing were recorded by others from real models.
//
// Run by ctest as unit.trace; needs no GPU.
#include "temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "harness/input_error.hpp"
#include "harness/routing.hpp"
#include "harness/routing_stats.hpp"

using namespace fulcrum::harness;

namespace {

std::string data(const char* name) { return std::string(FULCRUM_TEST_DATA "/routing/") + name; }

// A trace that lives as long as the test.
class TraceFile {
 public:
  explicit TraceFile(const std::string& text) {
    char name[] = "/tmp/fulcrum_trace_XXXXXX";
    close(mkstemp(name));
    path_ = name;
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TraceFile() { unlink(path_.c_str()); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Routing sample(const std::string& spec, RoutingSize size, TraceReport* report = nullptr) {
  return make_routing(parse_routing_spec("trace:" + spec), size, report);
}

// The sentence for a trace with this text, without the path.
std::string error_of(const std::string& text, RoutingSize size = {2, 8, 2}, const std::string& options = "") {
  const TraceFile file(text);
  try {
    sample(file.path() + options, size);
  } catch (const InputError& error) {
    std::string sentence = error.what();
    const size_t at = sentence.find(file.path());
    return at == sentence.npos ? sentence : sentence.replace(at, file.path().size(), "F");
  }
  return "no error";
}

std::string repeat(const std::string& line, int times) {
  std::string text;
  while (times-- > 0) text += line;
  return text;
}

bool starts(const std::string& text, const std::string& start) { return text.compare(0, start.size(), start) == 0; }

std::string rows(uint32_t count, uint32_t first = 0) {
  std::string text;
  for (uint32_t i = first; i < first + count; ++i) {
    text += std::to_string(i) + "," + std::to_string(i % 8) + "," + std::to_string((i + 1 + i / 8) % 8) + "\n";
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(trace)

BOOST_AUTO_TEST_CASE(complaints_have_line_numbers) {
  const std::string head = "token,e0,e1\n";
  BOOST_TEST(starts(error_of(head + "0,1,2\n1,3,8\n"), "F:3: column e1 has expert id 8, which is not in 0 .. 7"));
  BOOST_TEST(starts(error_of(head + "0,1,2\n1,-2,3\n"), "F:3: column e0 has expert id -2"));
  BOOST_TEST(starts(error_of(head + "0,1,2\n\n1,3,4\n"), "F:3: blank line"));
  BOOST_TEST(starts(error_of(head + "0,1,2\n\n"), "F:3: blank line"));
  BOOST_TEST(starts(error_of(head + "0,1,2\r\n"), "F:2: the line ends with CR LF"));
  BOOST_TEST(starts(error_of("token,e0,e1\r\n0,1,2\r\n"), "F:1: the line ends with CR LF"));
  BOOST_TEST(starts(error_of(head + "0,1\n"), "F:2: the row ends before column e1"));
  BOOST_TEST(starts(error_of(head + "0,1,2,3\n"), "F:2: the row has more columns"));
  BOOST_TEST(starts(error_of(head + "0,1,x\n"), "F:2: column e1 is 'x'"));
  BOOST_TEST(starts(error_of(head + "0,1,\n"), "F:2: column e1 is ''"));
  BOOST_TEST(starts(error_of(head + "0,1, 2\n"), "F:2: column e1 is ' 2'"));
  BOOST_TEST(starts(error_of(head + "a,1,2\n"), "F:2: column token is 'a'"));
  BOOST_TEST(starts(error_of("token,e0,e2\n"), "F:1: the columns are 'token,e0,e2'"));
  BOOST_TEST(starts(error_of("token\n"), "F:1: the columns are 'token'"));
  BOOST_TEST(starts(error_of("layer,expert\n"), "F:1: the columns are"));
  BOOST_TEST(starts(error_of(""), "F:1: the file is empty"));
  BOOST_TEST(starts(error_of("token,e0\n0,1\n"), "F:1: the trace has 1 experts a token, but top_k is 2"));
}

BOOST_AUTO_TEST_CASE(files_that_are_no_traces) {
  const std::string head = "token,e0,e1\n";
  BOOST_TEST(starts(error_of(repeat("x", 5000)), "F:1: the line has more than 4095 characters"));
  BOOST_TEST(starts(error_of(head + "0,1,2\n" + repeat("0", 4096) + "\n"), "F:3: the line has more than 4095"));
  BOOST_TEST(starts(error_of(repeat("x", 4095) + "\n"), "F:1: the columns are 'xxx"));
  BOOST_TEST(starts(error_of(std::string("\x7f"
                                         "ELF\x1b[2J\0y\n",
                                         11)),
                    "F:1: the columns are '?ELF?[2J?y'"));
  BOOST_TEST(starts(error_of(head + "0,1,\x1b\n"), "F:2: column e1 is '?', not an expert id"));
  BOOST_TEST(error_of(head + "0,1,2\n1,3,4") == "no error");  // the last line need not end
  const std::string folder = "/tmp";
  BOOST_CHECK_EXCEPTION(sample(folder, {2, 8, 2}), InputError, [](const InputError& error) {
    return std::string(error.what()).find("is it a folder?") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(complaints_about_counts) {
  const std::string head = "layer,expert,count\n";
  BOOST_TEST(starts(error_of(head + "0,0,5\n0,1,5\n0,8,1\n"), "F:4: column expert has expert id 8"));
  BOOST_TEST(starts(error_of(head + "0,-1,5\n"), "F:2: column expert has expert id -1"));
  BOOST_TEST(starts(error_of(head + "0,0,5\n0,0,6\n"), "F:3: expert 0 of layer 0 has a count already"));
  BOOST_TEST(starts(error_of(head + "0,0,-5\n"), "F:2: column count is '-5'"));
  BOOST_TEST(starts(error_of(head + "0,0,5\n0,1,0\n"), "layer 0 of F has fewer than top_k = 2 experts"));
  BOOST_TEST(starts(error_of(head + "0,0,5\n", {2, 8, 0}), "F holds counts"));
  BOOST_TEST(starts(error_of(head), "F has no rows"));
}

BOOST_AUTO_TEST_CASE(complaints_about_layers) {
  const std::string text = "token,layer,e0,e1\n0,3,1,2\n0,9,1,2\n";
  BOOST_TEST(error_of(text, {2, 8, 2}, ":layer=5") == "layer 5 has no rows in F, which has layers 3 to 9");
  BOOST_TEST(starts(error_of("token,e0,e1\n0,1,2\n", {2, 8, 2}, ":layer=0"), "F has no layer column"));
  BOOST_CHECK_THROW(sample("/nonexistent.csv", {2, 8, 2}), InputError);
}

BOOST_AUTO_TEST_CASE(warm_up_rows_are_found_and_left_out) {
  // The second warm-up names one set in two orders.
  const TraceFile file("token,e0,e1\n" + repeat("0,3,5\n", 40) + rows(60) + repeat("0,1,2\n0,2,1\n", 10) + rows(1));
  TraceReport report;
  const Routing routing = sample(file.path(), {61, 8, 2}, &report);
  BOOST_TEST(report.warm_up_rows == 60u);
  BOOST_TEST(report.warm_up_line == 2u);
  BOOST_TEST(report.rows == 61u);
  BOOST_TEST(!report.repeated);
  BOOST_TEST(routing.ids[0] == 0);  // the only run of 61 rows begins with the first real row
  BOOST_TEST(starts(error_of("token,e0,e1\n" + repeat("0,4,5\n", 16)),
                    "all 16 rows of F from line 2 on name the same experts"));
}

BOOST_AUTO_TEST_CASE(short_repeats_are_no_warm_up) {
  const TraceFile file("token,e0,e1\n" + rows(5) + repeat("0,3,5\n", 15) + rows(5));
  TraceReport report;
  sample(file.path(), {25, 8, 2}, &report);
  BOOST_TEST(report.warm_up_rows == 0u);
  BOOST_TEST(report.rows == 25u);
}

BOOST_AUTO_TEST_CASE(batches_are_contiguous_and_all_places_are_drawn) {
  const TraceFile file("token,e0,e1\n" + rows(20));
  std::map<int, int> places;
  for (const Routing& routing : make_routings(parse_routing_spec("trace:" + file.path()), {5, 8, 2}, 3200)) {
    int place = -1;
    for (int first = 0; first <= 15 && place < 0; ++first) {
      bool fits = true;
      for (int i = 0; i < 5; ++i) {
        const int row = first + i;
        fits = fits && routing.ids[2 * i] == row % 8 && routing.ids[2 * i + 1] == (row + 1 + row / 8) % 8;
      }
      if (fits) place = first;
    }
    BOOST_REQUIRE(place >= 0);
    ++places[place];
  }
  // 16 places, 200 each expected, standard deviation 13.7.
  BOOST_TEST(places.size() == 16u);
  for (const auto& [place, times] : places) BOOST_TEST(std::abs(times - 200) < 5 * 14);
}

BOOST_AUTO_TEST_CASE(runs_split_a_batch) {
  const TraceFile file("token,e0,e1\n" + rows(400));
  const Routing routing = sample(file.path() + ":runs=4:seed=2", {10, 8, 2});
  BOOST_TEST(routing.ids.size() == 20u);
  const Routing more_runs_than_tokens = sample(file.path() + ":runs=16", {10, 8, 2});
  BOOST_TEST(more_runs_than_tokens.ids.size() == 20u);
  BOOST_TEST(sample(file.path() + ":runs=4", {0, 8, 2}).ids.empty());
}

BOOST_AUTO_TEST_CASE(a_short_recording_goes_round) {
  const TraceFile file("token,e0,e1\n0,0,1\n1,2,3\n2,4,5\n");
  TraceReport report;
  const Routing routing = sample(file.path(), {7, 8, 2}, &report);
  BOOST_TEST(report.repeated);
  for (size_t i = 0; i + 2 < routing.ids.size(); i += 2) {
    BOOST_TEST(routing.ids[i + 2] == (routing.ids[i] + 2) % 6);
  }
}

BOOST_AUTO_TEST_CASE(ids_may_be_none) {
  const TraceFile file("token,e0,e1\n0,1,-1\n1,-1,-1\n");
  const Routing routing = sample(file.path(), {2, 8, 2});
  BOOST_TEST(routing_stats(routing).local_pairs == 1u);
  const size_t padded = routing.ids[0] == 1 ? 1 : 3;
  BOOST_TEST(routing.weights[padded] == 0.0f);
  BOOST_TEST(routing.weights[padded - 1] == 1.0f);
}

BOOST_AUTO_TEST_CASE(a_recording_that_names_no_expert_is_refused) {
  const std::string head = "token,e0,e1\n";
  const std::string words = "name no expert (every id is -1): nothing to sample";
  BOOST_TEST(error_of(head + repeat("0,-1,-1\n", 3)) == "all 3 rows of F " + words);
  BOOST_TEST(error_of(head + repeat("0,-1,-1\n", 40)) == "all 40 rows of F " + words);  // no warm-up either
  const std::string layers = "token,layer,e0,e1\n0,3,1,2\n0,9,-1,-1\n";
  BOOST_TEST(error_of(layers, {2, 8, 2}, ":layer=9") == "all 1 rows of layer 9 of F " + words);
  BOOST_TEST(error_of(layers, {2, 8, 2}, ":layer=3") == "no error");
}

// 64 MiB through a pipe, which can neither be read twice nor be in memory; what is kept is the batch.
BOOST_AUTO_TEST_CASE(a_large_recording_is_streamed) {
  constexpr uint64_t num_bytes = uint64_t{64} << 20;
  const TemporaryFolder folder;
  const std::string path = folder / "pipe.csv";
  BOOST_REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const std::string block = rows(4000);
  uint64_t num_rows = 0;
  std::thread writer([&] {
    std::ofstream pipe(path, std::ios::binary);
    pipe << "token,e0,e1\n";
    for (uint64_t written = 0; written < num_bytes; written += block.size(), num_rows += 4000) pipe << block;
  });
  const auto peak_kib = [] {
    rusage usage{};
    (void)::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = peak_kib();
  TraceReport report;
  sample(path, {512, 8, 2}, &report);
  writer.join();
  BOOST_TEST(report.rows == num_rows);
  BOOST_TEST(peak_kib() - before < long{16} << 10);
}

BOOST_AUTO_TEST_CASE(recorded_tokens_of_one_layer) {
  TraceReport report;
  const Routing routing = sample(data("deepseek-v4-flash_tokens.csv") + ":layer=22", {790, 256, 6}, &report);
  BOOST_TEST(report.rows == 790u);
  BOOST_TEST(report.warm_up_rows == 0u);
  BOOST_TEST(!report.repeated);
  // The same layer's counts were recorded with it.
  std::ifstream counts(data("deepseek-v4-flash_counts.csv"));
  const RoutingStats stats = routing_stats(routing);
  std::string line;
  int seen = 0;
  while (std::getline(counts, line)) {
    if (!starts(line, "22,")) continue;
    const size_t comma = line.rfind(',');
    const auto expert = static_cast<size_t>(std::stoi(line.substr(3, comma - 3)));
    BOOST_REQUIRE_EQUAL(stats.rows[expert], static_cast<uint64_t>(std::stoi(line.substr(comma + 1))));
    ++seen;
  }
  BOOST_TEST(seen == 256);
}

BOOST_AUTO_TEST_CASE(recordings_bring_their_sizes) {
  const Routing tokens = sample(data("gpt-oss-20b_tokens_mmlu_pro.csv"), {64, 0, 0});
  BOOST_TEST(tokens.experts == 32u);
  BOOST_TEST(tokens.top_k == 4u);
  BOOST_TEST(starts(tokens.name, "trace:") == true);
  BOOST_TEST(tokens.name.find(":layer=0") != std::string::npos);
  const Routing law = sample(data("deepseek-v2-lite_tokens_law_layer13.csv") + ":runs=16", {4096, 0, 0});
  BOOST_TEST(law.experts == 64u);
  BOOST_TEST(law.top_k == 6u);
  BOOST_CHECK_THROW(sample(data("deepseek-v2-lite_tokens_law_layer13.csv"), {16, 288, 8}), InputError);
}

BOOST_AUTO_TEST_CASE(counts_are_sampled_with_distinct_ids) {
  const std::string path = data("olmoe-1b-7b_counts_c4.csv");
  TraceReport report;
  const Routing routing = sample(path + ":layer=7:seed=1", {20000, 0, 8}, &report);
  BOOST_TEST(report.rows == 64u);
  BOOST_TEST(routing.experts == 64u);
  std::ifstream file(path);
  std::string line;
  double total = 0;
  std::map<size_t, double> counts;
  while (std::getline(file, line)) {
    if (!starts(line, "7,")) continue;
    const size_t comma = line.rfind(',');
    total += counts[static_cast<size_t>(std::stoi(line.substr(2)))] = std::stod(line.substr(comma + 1));
  }
  for (size_t begin = 0; begin < routing.ids.size(); begin += 8) {
    BOOST_REQUIRE_EQUAL(std::set<int32_t>(&routing.ids[begin], &routing.ids[begin] + 8).size(), 8u);
  }
  const RoutingStats stats = routing_stats(routing);
  for (const auto& [expert, count] : counts) {
    const double share = 8 * count / total;  // of the tokens; none is near 1 in this layer
    const double deviation = std::sqrt(20000 * share * (1 - share));
    BOOST_TEST(std::abs(static_cast<double>(stats.rows[expert]) - 20000 * share) < 5 * deviation + 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
