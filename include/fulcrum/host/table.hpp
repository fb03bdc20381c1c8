// Best Configs with where and how they were measured: a TSV file, loaded, asked and written.
//
// Called by engines (load, layout, choose), by the tuner (add, write) and by `fulcrum show`. The text form is in
// table_text.hpp, the matching in table_choose.hpp.
// Invariant: architecture, shape and layout match exactly; only the token count may be approximate, and every answer
// says how good it is. A Table is immutable while it is asked: layout() and choose() are thread-safe, the rest is not.
#pragma once

#include <fulcrum/core/config.h>
#include <fulcrum/core/rules.h>
#include <fulcrum/host/device.hpp>
#include <fulcrum/host/error.hpp>

#include <string>
#include <vector>

FULCRUM_NAMESPACE_BEGIN

/// The part of a Shape that a row is keyed on: all of it but first_expert, which moves no time.
/// Text: "projection=gate_up,n=1280,k=4096,experts=288,local_experts=288,top_k=8,dtype=f16,activation=silu".
std::string shape_text(const Shape& shape);
/// Reads shape_text's form; false for a name or value that this build does not know, or one that is missing.
bool parse_shape(const std::string& text, Shape& shape);

/// How a row's time came about.
enum class Source : uint8_t { measured, modelled };

/// One best Config. Times are microseconds of one GEMM launch; a column that was not measured holds 0.
struct Row {
  std::string run;  // names the provenance lines that hold for this row
  Shape shape{};
  uint64_t tokens_first = 0;  // the row answers for tokens_first..tokens_last
  uint64_t tokens_last = 0;
  std::string routing;  // probe, receipt, decode, uniform, trace name ...
  Config config{};      // its Layout is the row's
  double median_us = 0;
  double ci_low_us = 0;  // 95 % interval of the median
  double ci_high_us = 0;
  uint64_t samples = 0;
  double tflops = 0;
  double gbps = 0;
  double roof_percent = 0;  // of the floor: max(matrix, bytes) of the same run
  uint32_t registers = 0;
  uint32_t shared_bytes = 0;
  uint32_t blocks_per_sm = 0;
  double default_us = 0;  // the built-in default in the same run
  std::string chosen;     // how: "gain", "tie: simplest", "default", "only" ...
  Source source = Source::measured;
  bool stale = false;  // set on load: the family's revision has moved since
};

/// One `# key: value` line. run is empty for lines about the file; otherwise the text form is "# <run>/<key>: value".
struct Provenance {
  std::string run;
  std::string key;
  std::string value;
};

// Provenance keys that Table itself reads; a run that lacks one of the first three matches no device.
inline constexpr const char* key_compute_capability = "compute_capability";  // "90"
inline constexpr const char* key_num_sms = "num_sms";
inline constexpr const char* key_shared_per_sm = "shared_per_sm_bytes";
inline constexpr const char* key_revision_prefix = "revision.";  // "revision.mma_sync", one per family

/// A row that this build cannot use, as its file has it: cells and the columns they stand in, without the check.
struct ForeignRow {
  std::vector<std::string> names, cells;
};

enum class Match : uint8_t {
  exact,           // this device, shape, layout, and the token count lies in the row's range
  nearest_tokens,  // the same, for the token count nearest by log ratio
  other_device,    // same architecture, another SM count or shared memory size
  default_config,  // no row: the built-in default for this layout
};
constexpr const char* match_name(Match match) {
  switch (match) {
    case Match::exact: return "Exact";
    case Match::nearest_tokens: return "NearestTokens";
    case Match::other_device: return "OtherDevice";
    default: return "Default";
  }
}

/// The answer of choose(). row is null for the default, else points into the Table.
struct Choice {
  Config config{};
  Match match = Match::default_config;
  bool stale = false;          // measured with an older revision of the family
  bool other_routing = false;  // the caller named a routing and the row was measured on another
  const Row* row = nullptr;
};

class Table {
 public:
  /// Reads a file. Errors: io; parse with the line number (value) for a truncated or edited file, a bad number, a
  /// missing column. Rows that this build cannot use are left out with a warning, never guessed; write() keeps them.
  static Result<Table> load(const char* path);
  static Result<Table> parse(const char* text, uint64_t length);

  /// Writes the whole file beside `path` and renames it into place: readers see the old or the new table.
  Status write(const char* path) const;
  std::string to_text() const;

  /// One Layout for all token counts of (device, shape): the one whose rows lose least against the best layout at
  /// each measured token count. The default Layout where no row fits. Rows of weights read in place have no part in it:
  /// whoever keeps the checkpoint as it is asks choose() for {CodeWord::block36, KOrder::natural}.
  Layout layout(const DeviceKey& device, const Shape& shape) const;

  /// The Config to use. `routing` may be null (any). Never fails: without a fitting row it answers
  /// Match::default_config.
  Choice choose(const DeviceKey& device, const Shape& shape, Layout layout, uint64_t tokens,
                const char* routing = nullptr) const;

  /// What the caller should print once: rows left out and why, levers this build does not know, stale rows.
  const std::vector<std::string>& warnings() const { return warnings_; }

  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Provenance>& provenance() const { return provenance_; }
  /// Value of a provenance line; null when there is none.
  const char* find_provenance(const char* run, const char* key) const;

  void add(const Row& row) { rows_.push_back(row); }
  /// Sets or replaces a provenance line. Tabs and line ends in the value become spaces.
  void set_provenance(const char* run, const char* key, const char* value);
  /// Writes what a device and this build are into run's provenance: the keys above, the name, the family revisions.
  void describe_run(const char* run, const Device& device);
  /// Takes the rows and the provenance of one run away.
  void remove_run(const char* run);
  /// Takes the rows and provenance of `other`, replacing rows of the same device, shape, layout, tokens and routing.
  void merge(const Table& other);

 private:
  friend class TableReader;
  bool run_device(const std::string& run, DeviceKey& device) const;
  bool has_run(const std::string& run) const;
  /// 0 for rows of this very device, 1 for its architecture, 2 when (device, shape) do not fit the row.
  int misfit(const Row& row, const DeviceKey& device, const Shape& shape) const;
  double layout_loss(const DeviceKey& device, const Shape& shape, int tier, Layout layout) const;
  void warn(const std::string& words);
  std::vector<std::string> foreign_columns() const;

  std::vector<Row> rows_;
  std::vector<ForeignRow> foreign_rows_;  // of rows that were left out
  std::vector<Provenance> provenance_;
  std::vector<std::string> warnings_;
};

FULCRUM_NAMESPACE_END

#include <fulcrum/host/table_choose.hpp>
#include <fulcrum/host/table_text.hpp>
