// What a run leaves on the disk: its table beside what others wrote there, and the lines of its journal.
//
// Run by ctest as unit.tuner_results and unit.tuner_journal; needs no GPU.
#include "temporary_folder.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "harness/input_error.hpp"
#include "tuner/steps.hpp"

using namespace fulcrum;
using namespace fulcrum::tuner;

namespace {

// A run with the result of one cell, as it stands before write_table().
void finish_cell(TuneRun& run, const std::string& path, const std::string& id, uint32_t tokens) {
  run.options.out = path;
  run.run_id = id;
  run.target = named_target(Arch{80});
  CellRequest request;
  OwnShape& own = request.own.emplace();
  own.n = own.k = 64;
  own.experts = 8;
  own.top_k = 2;
  own.tokens = {tokens};
  run.cells = make_cells(request);
  CellResult result;
  result.config = run.cells[0].base();
  result.median_us = {10, 9, 11};
  run.cells[0].result = result;
}

size_t num_rows(const std::string& path) {
  const Result<Table> table = Table::load(path.c_str());
  BOOST_REQUIRE_MESSAGE(table.ok(), message(table.status()));
  return table->rows().size();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tuner_results)

BOOST_AUTO_TEST_CASE(runs_that_write_one_table_at_once_lose_nothing) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.tsv";
  constexpr uint32_t num_runs = 8;
  std::vector<std::thread> threads;
  for (uint32_t number = 0; number < num_runs; ++number) {
    threads.emplace_back([&, number] {
      TuneRun run;
      finish_cell(run, path, "run" + std::to_string(number), 16 + number);
      for (int again = 0; again < 5; ++again) write_table(run);  // a run writes after every shape
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(num_rows(path) == num_runs);
  const Result<Table> table = Table::load(path.c_str());
  for (const Row& row : table->rows()) BOOST_TEST(table->find_provenance(row.run.c_str(), "date") != nullptr);
  BOOST_TEST(folder.count("") == 1);  // neither a lock nor a temporary file is left
}

BOOST_AUTO_TEST_CASE(what_another_run_wrote_in_the_meantime_stays) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.tsv";
  TuneRun first, second;
  finish_cell(first, path, "first", 16);
  finish_cell(second, path, "second", 32);
  write_table(first);
  write_table(second);
  write_table(first);
  BOOST_TEST(num_rows(path) == 2u);
  TuneRun third;
  finish_cell(third, path, "third", 16);  // the first run's cell, tuned again
  write_table(third);
  BOOST_TEST(num_rows(path) == 2u);
}

BOOST_AUTO_TEST_CASE(rows_of_unknown_gpus_and_other_runs_stay) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.tsv";
  TuneRun run;
  finish_cell(run, path, "mine", 16);
  Table earlier;
  Row row;
  row.run = "of nobody";  // no provenance: the GPU is not known
  row.shape = run.cells[0].problem.shape;
  row.tokens_first = row.tokens_last = 16;
  row.routing = run.cells[0].problem.routing.name;
  row.config = run.cells[0].base();
  earlier.add(row);
  row.run = "other gpu";
  earlier.describe_run("other gpu", named_target(Arch{90}).device);
  earlier.add(row);
  BOOST_REQUIRE(earlier.write(path.c_str()).ok());
  check_out(path);
  write_table(run);
  BOOST_TEST(num_rows(path) == 3u);
}

BOOST_AUTO_TEST_CASE(a_table_that_breaks_during_a_run_costs_no_result) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.tsv";
  TuneRun run;
  finish_cell(run, path, "mine", 16);
  check_out(path);
  write_text(path, "somebody else's\n");
  BOOST_CHECK_EXCEPTION(write_table(run), harness::InputError, [&](const harness::InputError& error) {
    return std::string(error.what()).find("this run's rows are in " + path + ".mine") != std::string::npos;
  });
  BOOST_TEST(read_text(path) == "somebody else's\n");
  BOOST_TEST(num_rows(path + ".mine") == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tuner_journal)

BOOST_AUTO_TEST_CASE(a_line_cut_short_breaks_no_other) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.journal";
  write_text(path, "{\"event\":\"run\"}\n{\"event\":\"compi");
  Journal journal;
  BOOST_REQUIRE(journal.open(path));
  journal.write("run", {{"id", std::string("caf\xe9")}, {"measured", true}});
  std::istringstream lines(read_text(path));
  std::vector<bool> whole;
  for (std::string line; std::getline(lines, line);) whole.push_back(nlohmann::json::accept(line));
  const std::vector<bool> expected{true, false, true};
  BOOST_TEST(whole == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(runs_that_share_a_journal_keep_their_lines_apart) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.journal";
  constexpr int num_runs = 4, num_lines = 200;
  std::vector<std::thread> threads;
  for (int number = 0; number < num_runs; ++number) {
    threads.emplace_back([&] {
      Journal journal;
      if (!journal.open(path)) return;
      for (int line = 0; line < num_lines; ++line) journal.write("compiled", {{"why", std::string(5000, 'x')}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::istringstream lines(read_text(path));
  int good = 0;
  for (std::string line; std::getline(lines, line);) good += nlohmann::json::accept(line) ? 1 : 0;
  BOOST_TEST(good == num_runs * num_lines);
}

BOOST_AUTO_TEST_CASE(a_journal_that_cannot_be_written_says_so_and_takes_lines) {
  Journal journal;
  BOOST_TEST(!journal.open("/dev/null/journal"));
  journal.write("run", {});
}

BOOST_AUTO_TEST_SUITE_END()
