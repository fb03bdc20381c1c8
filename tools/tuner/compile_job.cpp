// Lines of JSON, and the loop of a worker. Invariant: see compile_job.hpp.
#include "tuner/compile_job.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

#include "harness/jit_kernels.hpp"

namespace fulcrum::tuner {
namespace {

using Json = nlohmann::json;

// A line as an object; nothing when it is not JSON.
std::optional<Json> parse_line(const std::string& line) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

// A text that JSON accepts: compilers may quote bytes that are no UTF-8.
std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string write_job(const CompileJob& job) {
  return dumped({{"config", harness::config_text(job.config)},
                 {"dtype", int(job.kind.dtype)},
                 {"gate_up", job.kind.gate_up},
                 {"activation", int(job.kind.activation)},
                 {"cc", job.arch.cc}});
}

std::optional<CompileJob> read_job(const std::string& line) {
  const std::optional<Json> json = parse_line(line);
  if (!json) return std::nullopt;
  try {
    CompileJob job;
    if (parse_config(json->at("config").get<std::string>().c_str(), job.config).what != nullptr) return std::nullopt;
    job.kind.dtype = static_cast<DType>(json->at("dtype").get<int>());
    job.kind.gate_up = json->at("gate_up").get<bool>();
    job.kind.activation = static_cast<Activation>(json->at("activation").get<int>());
    job.arch.cc = json->at("cc").get<int>();
    return job;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string write_outcome(const CompileOutcome& outcome) {
  return dumped({{"ok", outcome.ok},
                 {"why", outcome.why},
                 {"registers", outcome.registers},
                 {"spill_bytes", outcome.spill_bytes},
                 {"code_bytes", outcome.code_bytes},
                 {"machine", outcome.machine},
                 {"seconds", outcome.seconds},
                 {"from_cache", outcome.from_cache}});
}

std::optional<CompileOutcome> read_outcome(const std::string& line) {
  const std::optional<Json> json = parse_line(line);
  if (!json) return std::nullopt;
  try {
    CompileOutcome outcome;
    outcome.ok = json->at("ok").get<bool>();
    outcome.why = json->at("why").get<std::string>();
    outcome.registers = json->at("registers").get<uint32_t>();
    outcome.spill_bytes = json->at("spill_bytes").get<uint32_t>();
    outcome.code_bytes = json->at("code_bytes").get<uint64_t>();
    outcome.machine = json->at("machine").get<std::string>();
    outcome.seconds = json->at("seconds").get<double>();
    outcome.from_cache = json->at("from_cache").get<bool>();
    return outcome;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

int answer_jobs(const std::function<CompileOutcome(const CompileJob&)>& answer) {
  std::string line;
  while (std::getline(std::cin, line)) {
    const std::optional<CompileJob> job = read_job(line);
    CompileOutcome outcome;
    outcome.why = "the worker was given a line that is not a job";
    if (job) outcome = answer(*job);
    std::cout << write_outcome(outcome) << std::endl;  // flushed: the parent waits for it
  }
  return 0;
}

}  // namespace fulcrum::tuner
