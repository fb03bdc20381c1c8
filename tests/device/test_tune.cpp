// A whole run of the tuner on this GPU, on one small cell: what is measured, in which order, and what the table says.
//
// Run by ctest as device.tune; needs a GPU.
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>
#include <fulcrum/host/table.hpp>
#include <nlohmann/json.hpp>

#include <set>
#include <sstream>
#include <string>

#include "../unit/command_line.hpp"
#include "harness/jit_kernels.hpp"

using namespace fulcrum;

BOOST_AUTO_TEST_SUITE(tune, *boost::unit_test::precondition(needs_gpu))

BOOST_AUTO_TEST_CASE(nothing_is_raced_before_it_was_checked) {
  const TemporaryFolder folder;
  const Outcome outcome = fulcrum_cli(folder,
                                      "tune --n 256 --k 512 --experts 8 --top-k 2 --tokens 64 --copy cp_async --top 4 "
                                      "--budget 30 --json --out " +
                                          (folder / "t.tsv"));
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  const nlohmann::json summary = nlohmann::json::parse(outcome.out);
  BOOST_TEST(summary["measured"] == true);
  BOOST_TEST(summary["wrong"] == 0);
  // a check before the first launch of a kernel, and one more of the winner after its last
  BOOST_TEST(summary["checked"] > summary["cells"][0]["tried"]);

  std::set<std::string> checked;
  std::string first_checked;
  std::istringstream journal(read_text(folder / "t.tsv.journal"));
  for (std::string line; std::getline(journal, line);) {
    const nlohmann::json event = nlohmann::json::parse(line);
    if (event["event"] == "check") {
      if (checked.empty()) first_checked = event["config"];
      checked.insert(event["config"].get<std::string>());
    }
    if (event["event"] == "raced" || event["event"] == "chosen")
      BOOST_TEST(checked.count(event["config"].get<std::string>()) == 1u, line);
  }
  BOOST_TEST(checked.size() > 1u);

  const Result<Table> table = Table::load((folder / "t.tsv").c_str());
  BOOST_REQUIRE(table.ok());
  BOOST_REQUIRE(table->rows().size() == 1u);
  const Row& row = table->rows()[0];
  BOOST_TEST((row.source == Source::measured));
  BOOST_TEST(row.default_us > 0);  // the default is always a candidate, and the first
  char text[config_text_capacity];
  (void)write_config(default_config(kernel_kind(row.shape), harness::current_device().arch), text,
                     config_text_capacity);
  BOOST_TEST(first_checked == text);
}

BOOST_AUTO_TEST_SUITE_END()
