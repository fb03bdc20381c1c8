// The command line: exit codes, tables that can be shown, what is refused and how, and compile workers that die.
#include "command_line.hpp"

#include <boost/test/unit_test.hpp>
#include <fulcrum/host/table.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "tuner/compile_pool.hpp"

using namespace fulcrum;

namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A small cell, with everything pinned but the stages.
const std::string cell_tune =
    "tune --arch sm_80 --n 64 --k 64 --experts 8 --top-k 2 --tokens 16 --jobs 2 --tile-n 64 --tile-m 8 "
    "--tile-k 64 "
    "--warps-n 2 --warps-m 1 --copy cp_async --code-word f16 --k-order natural --token-granularity 8 ";
const std::string small_tune = cell_tune + "--top 2 ";  // two kernels are compiled

}  // namespace

BOOST_AUTO_TEST_SUITE(cli)

BOOST_AUTO_TEST_CASE(usage) {
  const TemporaryFolder folder;
  BOOST_TEST(fulcrum_cli(folder, "--help").code == 0);
  BOOST_TEST(holds(fulcrum_cli(folder, "--version").out, FULCRUM_VERSION_TEXT));
  BOOST_TEST(fulcrum_cli(folder, "").code == 1);
  const Outcome unknown = fulcrum_cli(folder, "spcae");
  BOOST_TEST(unknown.code == 1);
  BOOST_TEST(unknown.err == "fulcrum: there is no verb 'spcae'; the closest is 'space', and --help lists them all\n");
  BOOST_TEST(!holds(fulcrum_cli(folder, "compile-workr").err, "'compile-worker'"));  // hidden verbs stay so
  BOOST_TEST(fulcrum_cli(folder, "tune --no-such-flag").code == 1);
  BOOST_TEST(fulcrum_cli(folder, "tune --arch sm_12").code == 1);
  BOOST_TEST(fulcrum_cli(folder, "tune --workload other").code == 1);
  const Outcome help = fulcrum_cli(folder, "tune --help");
  for (const LeverInfo& lever : lever_infos) {
    std::string flag = std::string("--") + lever.name;
    for (char& letter : flag) letter = letter == '_' ? '-' : letter;
    BOOST_TEST(holds(help.out, flag + " "), flag);
  }
  BOOST_TEST(!holds(fulcrum_cli(folder, "--help").out, "compile-worker"));
}

BOOST_AUTO_TEST_CASE(space_says_why) {
  const TemporaryFolder folder;
  BOOST_TEST(fulcrum_cli(folder, "space --config tile_n=128,stages=4").code == 0);
  const Outcome illegal = fulcrum_cli(folder, "space --config tile_n=100");
  BOOST_TEST(illegal.code == 2);
  BOOST_TEST(holds(illegal.out, "tile_n is a multiple of 64"));
  const Outcome old = fulcrum_cli(folder, "space --config copy=bulk --arch 80 --json");
  BOOST_TEST(old.code == 2);
  BOOST_TEST(holds(old.out, "sm_90"));
  const Outcome wrong = fulcrum_cli(folder, "space --config tile_q=1");
  BOOST_TEST(wrong.code == 1);
  BOOST_TEST(holds(wrong.err, "no such lever"));
  const Outcome list = fulcrum_cli(folder, "space --tile-n 64 --tile-m 8 --copy cp_async --dtype bf16 --limit 3");
  BOOST_TEST(list.code == 0);
  BOOST_TEST(holds(list.out, "legal variants"));
  BOOST_TEST(fulcrum_cli(folder, "space --stages many").code == 1);
  const Outcome empty = fulcrum_cli(folder, "space --config ''");
  BOOST_TEST(empty.code == 1);
  BOOST_TEST(holds(empty.err, "--config: it is empty"));
  const Outcome negative = fulcrum_cli(folder, "space --limit -1");
  BOOST_TEST(negative.code == 1);
  BOOST_TEST(holds(negative.err, "--limit: Value -1 not in range 0 to 1000000"));
}

BOOST_AUTO_TEST_CASE(verify_says_what_is_wrong_with_a_config_before_it_asks_for_a_gpu) {
  const TemporaryFolder folder;
  for (const auto& [config, words] :
       {std::pair("tile_q=1", "no such lever"), std::pair("tile_n=100", "tile_n is a multiple of 64"),
        std::pair("''", "empty")}) {
    const Outcome outcome = fulcrum_cli(folder, std::string("verify --config ") + config);
    BOOST_TEST(outcome.code == 1, config);
    BOOST_TEST(holds(outcome.err, words), outcome.err);
  }
  write_text(folder / "broken.tsv", "not a table\n");
  BOOST_TEST(fulcrum_cli(folder, "verify " + (folder / "broken.tsv")).code == 1);
}

BOOST_AUTO_TEST_CASE(options_that_would_be_ignored_are_refused) {
  const TemporaryFolder folder;
  write_text(folder / "t.tsv", "");
  const std::string table = folder / "t.tsv";
  for (const auto& [arguments, words] : {
           std::pair<std::string, std::string>("tune --out ''", "--out: it is empty"),
           {"tune --workload prefill --n 64 --k 64 --experts 8 --top-k 2 --tokens 16", "give one or the other"},
           {"tune --projection down", "a shape of your own needs"},
           {"tune --n 64 --k 64 --experts 4 --first-expert 4 --top-k 2 --tokens 16", "must be below the 4 experts"},
           {"tune --routing 'trace:a\tb'", "control character"},
           {"space --config tile_n=128 --tile-n 64", "write tile_n in --config"},
           {"bench jit --routing uniform", "--routing does not belong to `bench jit`"},
           {"bench repack --dtype f16", "--dtype does not belong to `bench repack`"},
           {"bench jit --config stages=99", "stages is 2 to 16"},
           {"bench prefill --results " + folder.path() + "/no/such/r.tsv", "its folder must exist"},
           {"verify " + table + " --dtype f16", "excludes"},
           {"probe --table " + table, "t.tsv: "},
           {"probe --routing nonsense", "routing 'nonsense' is not one of"},
           {"show /dev/zero", "it is a device"},
           {"bench jit --results /dev/zero", "it is a device"},
       }) {
    const Outcome outcome = fulcrum_cli(folder, arguments);
    BOOST_TEST(outcome.code == 1, arguments);
    BOOST_TEST(holds(outcome.err, words), arguments << ": " << outcome.err);
    BOOST_TEST(outcome.out.empty(), arguments << ": " << outcome.out);
  }
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error_whatever_was_asked) {
  const TemporaryFolder folder;
  for (const char* arguments : {"--version", "models", "space --tile-n 64"}) {
    const int status = std::system(("'" + tool() + "' " + arguments + " >/dev/full 2>/dev/null").c_str());
    BOOST_TEST(WEXITSTATUS(status) == 1, arguments);
  }
}

BOOST_AUTO_TEST_CASE(a_cell_named_twice_is_tuned_once) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.tsv";
  const std::string again = cell_tune + "--tokens 16 --top 1 --stages 4 --out " + path;  // 16 is there already
  BOOST_TEST(fulcrum_cli(folder, again).code == 0);
  BOOST_TEST(Table::load(path.c_str())->rows().size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_link_keeps_pointing_at_the_table) {
  const TemporaryFolder folder;
  BOOST_REQUIRE(Table().write((folder / "real.tsv").c_str()).ok());
  BOOST_REQUIRE(::symlink("real.tsv", (folder / "link.tsv").c_str()) == 0);
  const Outcome tune = fulcrum_cli(folder, cell_tune + "--top 1 --stages 4 --out " + (folder / "link.tsv"));
  BOOST_TEST(tune.code == 0, tune.err);
  BOOST_TEST(Table::load((folder / "real.tsv").c_str())->rows().size() == 1u);
  char target[64] = {};
  BOOST_TEST(::readlink((folder / "link.tsv").c_str(), target, sizeof target - 1) > 0);
  BOOST_TEST(std::string(target) == "real.tsv");
}

BOOST_AUTO_TEST_CASE(a_journal_that_cannot_be_written_costs_nothing_else) {
  const TemporaryFolder folder;
  for (const char* journal : {"/dev/full", "/no/such/folder/journal"}) {
    const std::string out = folder / (journal[1] == 'd' ? "a.tsv" : "b.tsv");
    const Outcome tune = fulcrum_cli(folder, cell_tune + "--top 1 --stages 4 --out " + out + " --journal " + journal);
    BOOST_TEST(tune.code == 0, tune.err);
    BOOST_TEST(holds(tune.err, std::string("the journal ") + journal), tune.err);
    BOOST_TEST(Table::load(out.c_str())->rows().size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_refused_run_leaves_no_journal) {
  const TemporaryFolder folder;
  BOOST_TEST(fulcrum_cli(folder, cell_tune + "--stages 100 --out " + (folder / "t.tsv")).code == 1);
  BOOST_TEST(::access((folder / "t.tsv.journal").c_str(), F_OK) != 0);
}

BOOST_AUTO_TEST_CASE(settings_of_the_emulator_are_not_taken_for_wrong_kernels) {
  const TemporaryFolder folder;
  for (const char* setting :
       {"FULCRUM_EMULATOR_SEEDS=0", "FULCRUM_EMULATOR_CASES=huge", "FULCRUM_EMULATOR_PATH=/no/such/folder"}) {
    const Outcome verify = fulcrum_cli(folder, "verify --emulate --config stages=3", setting);
    BOOST_TEST(verify.code == 1, setting);
    BOOST_TEST(holds(verify.err, "the emulator cannot run here: "), verify.err);
    BOOST_TEST(verify.out.empty(), verify.out);
  }
}

BOOST_AUTO_TEST_CASE(json_holds_whatever_bytes_a_name_has) {
  const TemporaryFolder folder;
  Table table;
  table.set_provenance("", "note", "caf\xe9");
  Row row;
  row.run = "r\xff";
  row.shape = {64, 64, 8, 8, 0, 2, DType::f16, Projection::plain, Activation::none};
  row.tokens_first = row.tokens_last = 16;
  row.routing = "trace:\xfe.csv";
  row.config = default_config(kernel_kind(row.shape), Arch{90});
  table.add(row);
  const std::string path = folder / "t\xff.tsv";
  BOOST_REQUIRE(table.write(path.c_str()).ok());
  const Outcome show = fulcrum_cli(folder, "show --json '" + path + "'");
  BOOST_TEST(show.code == 0, show.err);
  BOOST_TEST(holds(show.out, "\"routing\": \"trace:\xef\xbf\xbd.csv\""), show.out);
  BOOST_TEST(holds(show.out, "caf\xef\xbf\xbd"));
  const Outcome tune = fulcrum_cli(folder, cell_tune + "--top 1 --stages 4 --json --out '" + path + "'");
  BOOST_TEST(tune.code == 0, tune.err);
  BOOST_TEST(holds(tune.out, "/t\xef\xbf\xbd.tsv\""), tune.out);
  BOOST_TEST(Table::load(path.c_str())->rows().size() == 2u);  // the row of a GPU that nobody named is still there
}

BOOST_AUTO_TEST_CASE(a_temporary_cache_is_gone_when_the_run_is) {
  const TemporaryFolder folder, temporary;
  const std::string environment = "FULCRUM_CACHE_DIR=/dev/null/cache TMPDIR='" + temporary.path() + "'";
  const std::string out = "--top 1 --out " + (folder / "t.tsv");
  const Outcome tune = fulcrum_cli(folder, cell_tune + out + " --stages 4", environment);
  BOOST_TEST(tune.code == 0, tune.err);
  BOOST_TEST(holds(tune.err, temporary.path() + "/fulcrum-cache-"), tune.err);
  BOOST_TEST(temporary.count("") == 0);
  BOOST_TEST(fulcrum_cli(folder, cell_tune + out + " --stages 100", environment).code == 1);  // after it was made
  BOOST_TEST(temporary.count("") == 0);
}

BOOST_AUTO_TEST_CASE(show_refuses_what_is_no_table) {
  const TemporaryFolder folder;
  BOOST_TEST(fulcrum_cli(folder, "show " + (folder / "missing.tsv")).code == 1);
  write_text(folder / "broken.tsv", "# format: fulcrum-table 1\nrun\n");
  const Outcome broken = fulcrum_cli(folder, "show " + (folder / "broken.tsv"));
  BOOST_TEST(broken.code == 1);
  BOOST_TEST(holds(broken.err, "line "));
}

// Without a GPU and with one: another architecture than the GPU's is modelled.
BOOST_AUTO_TEST_CASE(tune_by_the_model_writes_a_table) {
  const TemporaryFolder folder;
  const std::string path = folder / "table.tsv";
  const Outcome tune = fulcrum_cli(folder, small_tune + "--json --out " + path);
  BOOST_TEST(tune.code == 0, tune.err);
  BOOST_TEST(holds(tune.out, "\"source\": \"modelled\""));
  const Result<Table> table = Table::load(path.c_str());
  BOOST_REQUIRE(table.ok());
  BOOST_REQUIRE(table->rows().size() == 1u);
  const Row& row = table->rows()[0];
  BOOST_TEST((row.source == Source::modelled));
  BOOST_TEST(row.median_us > 0);
  BOOST_TEST(row.registers > 0u);
  BOOST_TEST(row.config.tile_n == 64);
  BOOST_TEST(table->find_provenance(row.run.c_str(), "date") != nullptr);

  // from what the first run left in the cache, and with the same answer
  const Outcome twin = fulcrum_cli(folder, small_tune + "--json --out " + (folder / "twin.tsv"));
  const nlohmann::json compile = nlohmann::json::parse(twin.out)["compile"];
  BOOST_TEST(compile["compiled"] > 0);
  BOOST_TEST(compile["from_cache"] == compile["compiled"]);
  const Result<Table> twin_table = Table::load((folder / "twin.tsv").c_str());
  BOOST_REQUIRE(twin_table.ok());
  BOOST_REQUIRE(twin_table->rows().size() == 1u);
  BOOST_TEST((twin_table->rows()[0].config == row.config));
  BOOST_TEST(twin_table->rows()[0].median_us == row.median_us);

  const Outcome again = fulcrum_cli(folder, small_tune + "--tokens 32 --out " + path);
  BOOST_TEST(again.code == 0, again.err);
  BOOST_TEST(Table::load(path.c_str())->rows().size() == 2u);  // the first row stays

  const Outcome show = fulcrum_cli(folder, "show " + path);
  BOOST_TEST(show.code == 0);
  BOOST_TEST(holds(show.out, "modelled"));
  BOOST_TEST(holds(fulcrum_cli(folder, "show --json " + path).out, "\"tokens_first\": 16"));
  BOOST_TEST(fulcrum_cli(folder, "show --workload decode " + path).code == 2);
}

BOOST_AUTO_TEST_CASE(tune_refuses_before_it_works) {
  const TemporaryFolder folder;
  BOOST_TEST(fulcrum_cli(folder, "tune --arch sm_80 --n 64 --out " + (folder / "t.tsv")).code == 1);
  const std::string shape = "tune --arch sm_80 --k 64 --experts 8 --top-k 2 --tokens 16 --out " + (folder / "t.tsv");
  const Outcome odd = fulcrum_cli(folder, shape + " --n 40");
  BOOST_TEST(odd.code == 1);
  BOOST_TEST(holds(odd.err, "multiple of 16"));
  BOOST_TEST(fulcrum_cli(folder, "tune --arch sm_80 --workload decode --cases K9").code == 1);
  BOOST_TEST(fulcrum_cli(folder, "tune --arch sm_80 --routing nowhere").code == 1);
  write_text(folder / "t.tsv", "not a table\n");
  const Outcome taken = fulcrum_cli(folder, shape + " --n 64");
  BOOST_TEST(taken.code == 1);
  BOOST_TEST(read_text(folder / "t.tsv") == "not a table\n");
  const Outcome nothing_legal = fulcrum_cli(folder, "tune --workload decode --cases K0 --tile-n 64 --stages 100");
  BOOST_TEST(nothing_legal.code == 1);
  BOOST_TEST(holds(nothing_legal.err, "none of"));
  const Outcome many = fulcrum_cli(folder, shape + " --n 64 --tokens 131073");
  BOOST_TEST(many.code == 1);
  BOOST_TEST(holds(many.err, "131073 not in range 1 to 131072"), many.err);
  BOOST_TEST(holds(fulcrum_cli(folder, "routing --tokens 131073").err, "131073 not in range 0 to 131072"));
  BOOST_TEST(fulcrum_cli(folder, "tune --budget nan").code == 1);
  BOOST_TEST(fulcrum_cli(folder, "tune --warps-m 536870912 --workload decode --cases K0").code == 1);
}

BOOST_AUTO_TEST_CASE(models_are_listed) {
  const TemporaryFolder folder;
  const Outcome table = fulcrum_cli(folder, "models");
  BOOST_TEST(table.code == 0, table.err);
  BOOST_TEST(std::count(table.out.begin(), table.out.end(), '\n') == 45);  // and the heading
  BOOST_TEST(holds(table.out, "Nemotron-3-Nano-30B-A3B          128     6  up       1856 x 2688    2688 x 1856 "));
  const Outcome json = fulcrum_cli(folder, "models --json");
  BOOST_TEST(json.code == 0, json.err);
  const nlohmann::json list = nlohmann::json::parse(json.out);
  BOOST_REQUIRE(list.size() == 44u);
  BOOST_TEST(list[0]["model"] == "Qwen/Qwen3-30B-A3B");
  BOOST_TEST(list[0]["gemms"][0]["item"] == "gate_up");
  BOOST_TEST(list[0]["gemms"][0]["n"] == 1536);
  BOOST_TEST(list[0]["gemms"][1]["k"] == 768);
  // half a byte a code and a byte for 16 of them: 9 / 16 of 128 experts * (1536 * 2048 + 2048 * 768)
  BOOST_TEST(list[0]["layer_bytes"] == 339738624);
}

// Without a GPU and with one, as for a shape of the user's own.
BOOST_AUTO_TEST_CASE(tune_takes_a_model) {
  const TemporaryFolder folder;
  const std::string path = folder / "table.tsv";
  const Outcome tune = fulcrum_cli(folder,
                                   "tune --arch sm_80 --model granite-3.1-1b --tp 2 --tokens 16 --top 1 --jobs 1 "
                                   "--tile-n 64 --tile-m 8 --tile-k 64 --warps-n 2 --out " +
                                       path);
  BOOST_TEST(tune.code == 0, tune.err);
  const Result<Table> table = Table::load(path.c_str());
  BOOST_REQUIRE(table.ok());
  BOOST_REQUIRE(table->rows().size() == 2u);
  const std::string show = fulcrum_cli(folder, "show " + path).out;
  BOOST_TEST(holds(show, "gate_up"), show);
  BOOST_TEST(holds(show, "down"), show);
}

BOOST_AUTO_TEST_CASE(models_are_refused_before_anything_runs) {
  const TemporaryFolder folder;
  const struct {
    const char *arguments, *words;
  } wrong[] = {
      {"tune --model gpt-oss-21b", "there is no model 'gpt-oss-21b'; the closest are gpt-oss-20b"},
      {"tune --model mixtral", "'mixtral' begins the names of Mixtral-8x7B, Mixtral-8x22B"},
      {"tune --model gpt-oss-20b --tp 8", "it may be 1, 2, 4"},
      {"tune --model gpt-oss-20b --tp 3", "tensor parallel 3 is not one of 1, 2, 4, 8"},
      {"tune --model gpt-oss-20b --n 64", "--n excludes --model"},
      {"tune --model gpt-oss-20b --workload decode", "--workload excludes --model"},
      {"tune --model gpt-oss-20b --tokens 0", "--tokens"},
      {"tune --tp 2", "--tp requires --model"},
      {"tune --tokens 16", "a shape of your own needs"},
      {"verify --model nothing", "there is no model 'nothing'"},
      {"verify --model olmoe --emulate", "excludes"},
      {"verify --tp 2 --config stages=4", "--tp requires --model"},
      {"bench models --only nothing", "there is no model 'nothing'"},
      {"bench models --tp 3", "tensor parallel 3 is not one of 1, 2, 4, 8"},
      {"bench models --cases 512", "--cases belongs to"},
      {"bench models --resume", "--resume requires --results"},
      {"bench growth --cases 512", "--cases belongs to"},
      {"bench repack --resume --results r.tsv", "--resume belongs to"},
      {"bench decode --tp 2", "--tp belongs to `bench models`"},
  };
  for (const auto& [arguments, words] : wrong) {
    const Outcome outcome = fulcrum_cli(folder, arguments);
    BOOST_TEST(outcome.code == 1, arguments);
    BOOST_TEST(holds(outcome.err, words), arguments << ": " << outcome.err);
  }
}

// Before anything is compiled: the journal, which comes first, was not even made.
BOOST_AUTO_TEST_CASE(a_table_that_cannot_be_written_is_noticed_at_the_start) {
  const TemporaryFolder folder;
  const std::string journal = folder / "journal";
  for (const std::string& out : {folder / "no/such/folder.tsv", std::string("/dev/null/t.tsv"), folder.path()}) {
    const Outcome outcome = fulcrum_cli(folder, small_tune + "--journal " + journal + " --out " + out);
    BOOST_TEST(outcome.code == 1, out);
    BOOST_TEST(holds(outcome.err, "give "), outcome.err);
    BOOST_TEST(holds(outcome.err, "--out"), outcome.err);
  }
  BOOST_TEST(folder.count("journal") == 0);
}

BOOST_AUTO_TEST_CASE(an_interrupt_leaves_a_table) {
  const TemporaryFolder folder, temporary;
  const std::string path = folder / "table.tsv";
  (void)::fflush(nullptr);  // what is buffered must not be written twice
  const pid_t child = ::fork();
  if (child == 0) {
    (void)::setenv("FULCRUM_CACHE_DIR", "/dev/null/cache", 1);
    (void)::setenv("TMPDIR", temporary.path().c_str(), 1);
    (void)!::freopen((folder / "out").c_str(), "w", stdout);
    (void)!::freopen((folder / "err").c_str(), "w", stderr);
    ::execl(tool().c_str(), "fulcrum", "tune", "--arch", "sm_80", "--workload", "decode", "--cases", "K0", "--jobs",
            "1", "--top", "500", "--budget", "600", "--out", path.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  // the first compile is done when the journal says so
  for (int tick = 0; tick < 1200 && !holds(read_text(path + ".journal"), "compiled"); ++tick) ::usleep(100 * 1000);
  (void)::kill(child, SIGINT);
  int status = 0;
  (void)::waitpid(child, &status, 0);
  BOOST_TEST(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 130);
  BOOST_TEST(temporary.count("") == 0);  // the cache of this run alone
  BOOST_TEST(Table::load(path.c_str()).ok());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(compile_pool)

namespace {

std::vector<tuner::CompileOutcome> run_pool(const std::string& script, int num_jobs, double timeout_s) {
  const std::vector<tuner::CompileJob> jobs(static_cast<size_t>(num_jobs), {Config{}, KernelKind{}, Arch{80}});
  std::vector<tuner::CompileOutcome> outcomes(jobs.size());
  tuner::PoolOptions options{{"/bin/sh", "-c", script}, 2, timeout_s};
  const size_t count = tuner::compile_all(jobs, options, 0, [&](size_t index, const tuner::CompileOutcome& outcome) {
    outcomes[index] = outcome;
    return true;
  });
  BOOST_TEST(count == jobs.size());
  return outcomes;
}

const std::string good_line = tuner::write_outcome({true, "", 64, 0, 1024, "hash-13.0", 0.5, false});

}  // namespace

BOOST_AUTO_TEST_CASE(jobs_cross_the_pipe) {
  tuner::CompileJob job{Config{}, {DType::bf16, true, Activation::silu}, Arch{90}};
  job.config.stages = 7;
  const auto back = tuner::read_job(tuner::write_job(job));
  BOOST_REQUIRE(back.has_value());
  BOOST_TEST((back->config == job.config));
  BOOST_TEST((back->kind == job.kind));
  BOOST_TEST(back->arch.cc == 90);
  BOOST_TEST(!tuner::read_job("{\"config\":\"tile_q=1\"}").has_value());
  BOOST_TEST(!tuner::read_outcome("Segmentation fault").has_value());
  BOOST_TEST(!tuner::read_outcome("[]").has_value());
}

BOOST_AUTO_TEST_CASE(every_job_is_answered) {
  for (const auto& outcome : run_pool("while read line; do echo '" + good_line + "'; done", 7, 10)) {
    BOOST_TEST(outcome.ok);
    BOOST_TEST(outcome.registers == 64u);
  }
}

BOOST_AUTO_TEST_CASE(a_crash_costs_one_job) {
  for (const auto& outcome : run_pool("read line; kill -SEGV $$", 3, 10)) {
    BOOST_TEST(!outcome.ok);
    BOOST_TEST(holds(outcome.why, "signal 11"));
  }
  for (int run = 0; run < 20; ++run)  // workers die before or after they are asked, as it happens
    for (const auto& outcome : run_pool("exit 3", 3, 10)) BOOST_TEST(!outcome.ok);
  for (const auto& outcome : run_pool("exec 0<&-; sleep 0.2", 5, 10)) BOOST_TEST(!outcome.ok);
}

BOOST_AUTO_TEST_CASE(a_hang_costs_one_job) {
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& outcome : run_pool("read line; sleep 60", 2, 0.5)) {
    BOOST_TEST(!outcome.ok);
    BOOST_TEST(holds(outcome.why, "more than"));
  }
  BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)));
}

BOOST_AUTO_TEST_CASE(nonsense_and_missing_workers_cost_one_job_each) {
  for (const auto& outcome : run_pool("read line; echo hello; read line", 2, 10)) BOOST_TEST(!outcome.ok);
  const std::vector<tuner::CompileJob> jobs(2, {Config{}, KernelKind{}, Arch{80}});
  size_t failures = 0;
  (void)tuner::compile_all(jobs, {{"/no/such/program"}, 2, 10}, 0, [&](size_t, const tuner::CompileOutcome& outcome) {
    failures += outcome.ok ? 0 : 1;
    return true;
  });
  BOOST_TEST(failures == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
