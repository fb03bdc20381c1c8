// Rows, provenance and records. Invariant: see steps.hpp.
#include "tuner/steps.hpp"

#include <fulcrum/host/cuda_api.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/input_error.hpp"
#include "harness/record.hpp"

namespace fulcrum::tuner {
namespace {

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// "13.0.88" of "<hash>-13.0.88"
std::string ptxas_of(const TuneRun& run) {
  for (const Variant& variant : run.variants.list()) {
    const size_t dash = variant.outcome.machine.rfind('-');
    if (dash != std::string::npos) return variant.outcome.machine.substr(dash + 1);
  }
  return "unknown";
}

void add_provenance(const TuneRun& run, Table& table) {
  const char* id = run.run_id.c_str();
  table.describe_run(id, run.target.device);
  const auto set = [&](const char* key, const std::string& value) { table.set_provenance(id, key, value.c_str()); };
  set("date", run.date);
  set("source", run.has_gpu ? "measured" : "modelled");
  if (run.has_gpu) {
    set("driver", version_text(cuda_api::driver_version()));
    set("cuda", version_text(cuda_api::runtime_version()));
    set("execution", "CUDA graph of several launches, each on the next weight bank; banks together at least 3x L2");
    set("protocol", fmt::format("randomly ordered blocks with the default and its A/A twin; paired bootstrap 95 % over "
                                "blocks; confirmed on fresh samples; delta {} %",
                                100 * delta));
  } else {
    set("protocol", "cost model on the routing below, with registers and occupancy of the compiled kernels");
  }
  set("ptxas", ptxas_of(run));
  set("layout", "one packed layout per shape for all its token counts, by total time, all counts weighing the same");
  set("read_roof_gbps", fmt::format("{:.0f}", run.roofs.read_gbps));
  set("matrix_roof_tflops", fmt::format("{:.0f}", run.roofs.matrix_tflops));
  set("budget_s", fmt::format("{:.0f}", run.options.budget_s));
  for (const Cell& cell : run.cells) {
    const harness::Routing& routing = cell.problem.routing;
    set(fmt::format("routing_hash.{}.{}", routing.name, routing.tokens).c_str(),
        fmt::format("{:016x}", harness::routing_hash(routing)));
  }
}

Row row_of(const TuneRun& run, const Cell& cell) {
  const CellResult& result = *cell.result;
  const Rates rates = rates_of(run, cell);
  Row row;
  row.run = run.run_id;
  row.shape = cell.problem.shape;
  row.tokens_first = row.tokens_last = cell.problem.routing.tokens;
  row.routing = cell.problem.routing.name;
  row.config = result.config;
  row.median_us = result.median_us.point;
  row.ci_low_us = result.median_us.low;
  row.ci_high_us = result.median_us.high;
  row.samples = result.samples;
  row.tflops = rates.tflops;
  row.gbps = rates.gbps;
  row.roof_percent = rates.floor_percent;
  row.registers = result.registers;
  row.shared_bytes = shared_memory(result.config).total_bytes;
  row.blocks_per_sm = result.blocks_per_sm;
  row.default_us = result.default_us;
  row.chosen = result.chosen;
  row.source = result.source;
  return row;
}

// What is at `path`; an empty table when nothing is.
Result<Table> load_or_empty(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0 ? Table::load(path.c_str()) : Result<Table>(Table{});
}

}  // namespace

Rates rates_of(const TuneRun& run, const Cell& cell) {
  Rates rates;
  rates.floor_us = harness::floor_us(cell.size, run.roofs.read_gbps, run.roofs.matrix_tflops);
  const double us = cell.result ? cell.result->median_us.point : 0;
  if (us <= 0) return rates;
  rates.tflops = cell.size.flop / us * 1e-6;
  rates.gbps = static_cast<double>(cell.size.weight_bytes) / us * 1e-3;
  rates.floor_percent = 100 * rates.floor_us / us;
  return rates;
}

void check_out(const std::string& path) {
  const Result<Table> there = load_or_empty(path);
  if (!there.ok()) {
    throw harness::InputError(fmt::format("{} exists and is not a table that can be added to ({}); give another --out",
                                          path, message(there.status())));
  }
  const std::string probe = fmt::format("{}.tmp.{}", resolve_links(path), ::getpid());  // as Table::write() names its
  const Status status = publish_file(probe, probe, "");
  (void)::unlink(probe.c_str());
  if (!status.ok()) {
    throw harness::InputError(
        fmt::format("{} cannot be written ({}); give --out in a folder that can", path, message(status)));
  }
}

void write_table(const TuneRun& run) {
  const auto has_result = [](const Cell& cell) { return cell.result.has_value(); };
  if (std::none_of(run.cells.begin(), run.cells.end(), has_result)) return;  // a run without rows says nothing
  Table fresh;
  add_provenance(run, fresh);
  for (const Cell& cell : run.cells) {
    if (cell.result) fresh.add(row_of(run, cell));
  }
  const std::string& path = run.options.out;
  const FileLock lock(resolve_links(path) +
                      ".lock");  // from reading to renaming: what another run writes in between would be lost
  Status status = lock.status();
  if (status.ok()) {
    Result<Table> whole = load_or_empty(path);
    if (!whole.ok()) {
      const std::string saved = path + "." + run.run_id;
      const Status rescue = fresh.write(saved.c_str());
      throw harness::InputError(fmt::format("{} has become something else than a table ({}); this run's rows {} {}",
                                            path, message(whole.status()),
                                            rescue.ok() ? "are in" : "could not be saved in", saved));
    }
    whole->remove_run(run.run_id.c_str());  // as this run wrote it before
    whole->merge(fresh);
    status = whole->write(path.c_str());
  }
  if (!status.ok()) throw harness::InputError(fmt::format("{}: {}", path, message(status)));
}

void write_records(const TuneRun& run) {
  if (run.options.records.empty()) return;
  std::vector<harness::Record> records;
  for (const Cell& cell : run.cells) {
    if (!cell.result) continue;
    const CellResult& result = *cell.result;
    const Rates rates = rates_of(run, cell);
    harness::Record record;
    record.workload = cell.problem.workload;
    record.case_name = cell.problem.case_name;
    record.routing = cell.problem.routing.name;
    record.item = cell.problem.item;
    record.config = config_text(result.config);
    record.dtype = value_name(cell.problem.shape.dtype);
    record.median_us = result.median_us.point;
    record.best_us = result.best_us;
    record.ci_us = (result.median_us.high - result.median_us.low) / 2;
    record.floor_us = rates.floor_us;
    record.ratio = rates.floor_percent / 100;
    record.tflops = rates.tflops;
    record.gbps = rates.gbps;
    record.read_roof_gbps = run.roofs.read_gbps;
    record.matrix_roof_tflops = run.roofs.matrix_tflops;
    record.rel_error = result.rel_error;
    record.samples = result.samples;
    record.machine = result.machine;
    record.date = run.date;
    records.push_back(std::move(record));
  }
  harness::append_records(run.options.records, records);
}

}  // namespace fulcrum::tuner
