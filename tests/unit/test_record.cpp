// The record of benchmarks: what is written is read back, and a file of another kind is left alone.
//
// Run by ctest as unit.record; needs no GPU.
#include <boost/test/unit_test.hpp>

#include <fstream>

#include "harness/expectation_file.hpp"
#include "harness/input_error.hpp"
#include "harness/problem.hpp"
#include "harness/record.hpp"
#include "harness/timer.hpp"
#include "temporary_folder.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

Record example() {
  Record record;
  record.workload = "decode";
  record.case_name = "K3";
  record.routing = "decode";
  record.item = "gate_up";
  record.config = "tile_n=128,stages=4";
  record.dtype = "bf16";
  record.median_us = 118.25;
  record.floor_us = 101.5;
  record.ratio = 0.858351;
  record.samples = 40;
  record.machine = "00ff-13.0.88";
  record.date = "2026-11-30T12:00:00Z";
  return record;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(record)

BOOST_AUTO_TEST_CASE(the_header_has_the_columns_in_their_order) {
  BOOST_TEST(record_header() ==
             "workload\tcase\trouting\titem\tconfig\tdtype\tmedian_us\tbest_us\tci_us\tfloor_us\tratio\ttflops\tgbps\t"
             "read_roof_gbps\tmatrix_roof_tflops\trel_error\tsamples\tmachine\tdate");
}

BOOST_AUTO_TEST_CASE(a_line_is_read_back_and_what_was_not_measured_stays_empty) {
  const std::string line = record_line(example());
  BOOST_TEST(line ==
             "decode\tK3\tdecode\tgate_up\ttile_n=128,stages=4\tbf16\t118.25\t\t\t101.5\t0.858351\t\t\t\t\t\t40\t"
             "00ff-13.0.88\t2026-11-30T12:00:00Z");
  const Record read = parse_record(line, "here");
  BOOST_TEST(record_line(read) == line);
  BOOST_TEST(!read.best_us.has_value());
  BOOST_TEST(read.samples.value() == 40u);
}

BOOST_AUTO_TEST_CASE(appending_makes_the_file_once_and_then_grows_it) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/h200.tsv";
  BOOST_TEST(read_records(path).empty());
  append_records(path, {example()});
  append_records(path, {example(), example()});
  BOOST_TEST(read_records(path).size() == 3);
  BOOST_TEST(read_text(path).find(record_header(), 1) == std::string::npos);
}

BOOST_AUTO_TEST_CASE(bad_lines_are_named_with_their_number) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/h200.tsv";
  std::ofstream(path) << record_header() << "\n" << record_line(example()) << "\nshort\tline\n";
  BOOST_CHECK_EXCEPTION(read_records(path), InputError, [&](const InputError& error) {
    return std::string(error.what()) == path + ":3: a record has 19 columns, this line 2";
  });
  std::string line = record_line(example());
  line.replace(line.find("118.25"), 6, "118.x5");
  BOOST_CHECK_EXCEPTION(parse_record(line, "a:2"), InputError, [](const InputError& error) {
    return std::string(error.what()) == "a:2: '118.x5' is not a number, and column median_us holds one";
  });
}

BOOST_AUTO_TEST_CASE(a_last_line_without_its_end_is_not_glued_to_the_next) {
  const TemporaryFolder folder;
  const std::string path = folder / "r.tsv";
  write_text(path, record_header() + "\n" + record_line(example()));
  append_records(path, {example()});
  BOOST_TEST(read_records(path).size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_file_of_another_kind_is_not_touched) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/table.tsv";
  std::ofstream(path) << "run\tshape\n";
  BOOST_CHECK_THROW(append_records(path, {example()}), InputError);
  BOOST_TEST(read_text(path) == "run\tshape\n");
  Record bad = example();
  bad.item = "two\tgemms";
  BOOST_CHECK_THROW(record_line(bad), InputError);
}

BOOST_AUTO_TEST_CASE(files_are_named_after_the_gpu) {
  BOOST_TEST(gpu_file_name("NVIDIA H200") == "h200");
  BOOST_TEST(gpu_file_name("NVIDIA GeForce RTX 4090") == "geforce_rtx_4090");
}

BOOST_AUTO_TEST_CASE(medians_and_their_intervals) {
  BOOST_TEST(median_of({}) == 0);
  BOOST_TEST(median_of({3, 1, 2}) == 2);
  BOOST_TEST(median_of({4, 1, 2, 3}) == 2.5);
  std::vector<double> samples;
  for (int i = 0; i < 100; ++i) samples.push_back(i);
  // positions 50 -+ 9.8: 40 and 60
  BOOST_TEST(median_ci(samples) == 10);
}

BOOST_AUTO_TEST_CASE(floors_are_the_larger_of_bytes_and_work) {
  const std::vector<Problem> problems = workload_problems("prefill", {"512", "4096"});
  BOOST_REQUIRE_EQUAL(problems.size(), 4u);
  double floors[2] = {};
  for (size_t i = 0; i < 4; ++i) floors[i / 2] += floor_us(problem_size(problems[i]), 4650, 793);
  // 274 us at 512 tokens, all bytes, and 650 at 4096, all work, at the top of both roofs
  BOOST_TEST(floors[0] == 274, boost::test_tools::tolerance(0.01));
  BOOST_TEST(floors[1] == 650, boost::test_tools::tolerance(0.01));
}

BOOST_AUTO_TEST_CASE(workloads_have_their_shapes_and_refuse_other_names) {
  const std::vector<Problem> decode = workload_problems("decode", {});
  BOOST_REQUIRE_EQUAL(decode.size(), 10u);
  BOOST_TEST(decode[0].shape.n == 1280u);
  BOOST_TEST(decode[0].shape.k == 2560u);
  BOOST_TEST(problem_size(decode[0]).active == 80u);
  BOOST_TEST(problem_name(decode[9]) == "decode K7 down (bf16, routing decode)");
  BOOST_TEST(probe_problems(2048).size() == 3u);
  const std::vector<Problem> growth = growth_problems();
  BOOST_REQUIRE(growth.size() == 2 * (18 + 11));  // powers of two to 131,072 tokens and 1,024 experts
  BOOST_TEST(growth[34].case_name == "tokens 131072");
  BOOST_TEST(growth[34].routing.num_pairs() == 1048576u);
  BOOST_TEST(growth[36].shape.top_k == 1u);
  BOOST_TEST(growth[57].case_name == "experts 1024");
  BOOST_TEST(growth[57].shape.local_experts == 1024u);
  BOOST_TEST(growth[57].shape.top_k == 8u);
  BOOST_CHECK_THROW(workload_problems("decode", {"K9"}), InputError);
  BOOST_CHECK_THROW(workload_problems("training", {}), InputError);
}

BOOST_AUTO_TEST_CASE(compile_expectations_are_kept_sorted_and_replaced) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/expect/13.0.88.tsv";
  Expectations expectations;
  BOOST_TEST(!read_expectations(path, expectations));
  write_expectation(path, {"b", "sm_90a"}, {128, 0, 0, 0});
  write_expectation(path, {"a", "sm_80"}, {64, 16, 32, 1});
  write_expectation(path, {"b", "sm_90a"}, {120, 0, 0, 0});
  BOOST_TEST(read_expectations(path, expectations));
  BOOST_TEST(expectations.size() == 2);
  BOOST_TEST((expectations.at({"b", "sm_90a"}) == CompileOutcome{120, 0, 0, 0}));
  BOOST_TEST(read_text(path).find("a\tsm_80\t64\t16\t32\t1\nb\t") != std::string::npos);
  BOOST_TEST(count_warnings("x.cu(3): warning #177-D\nptxas info : Used 40 registers\n") == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
