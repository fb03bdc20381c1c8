// The variants of a run: what was compiled, what it became, and why the others were dropped.
//
// Called by both ways of tuning (with a GPU and without). A variant is device code, so Run levers are at their default.
// Invariant: a default is never dropped for spilling or for being the same code as another; everything else that spills
// or repeats the machine code of a simpler variant is.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tuner/compile_pool.hpp"

namespace fulcrum::tuner {

struct Variant {
  CompileJob job;
  CompileOutcome outcome;
  bool is_default = false;
  bool compiled = false;  // the outcome is known
  bool emulated = false;  // run on the emulator, and right
  std::string dropped;    // why; empty: usable

  bool usable() const { return compiled && dropped.empty(); }
};

struct CompileTotals {
  size_t asked = 0, compiled = 0, from_cache = 0, failed = 0, spilled = 0, duplicates = 0;
  double compile_seconds = 0;  // of NVRTC, over all workers
};

class Variants {
 public:
  // The variant of (config, kind), made when it is new. The reference stays valid.
  Variant& get(const Config& config, KernelKind kind, Arch arch);

  // Compiles those that are not yet, in the order given, within `seconds` (0: no limit). `progress` is called after
  // each.
  void compile(const std::vector<Variant*>& wanted, const PoolOptions& options, double seconds,
               const std::function<void(size_t done, const Variant&)>& progress);

  // When nothing but spilling variants is left for a kind, they are better than nothing.
  void readmit_spills(const std::vector<Variant*>& wanted);

  const CompileTotals& totals() const { return totals_; }

  // In the order in which they were first asked for.
  std::vector<Variant*> all();
  const std::deque<Variant>& list() const { return variants_; }

 private:
  void settle(Variant& variant);

  std::deque<Variant> variants_;
  std::map<std::pair<int, std::string>, Variant*> by_text_;
  std::map<std::pair<int, std::string>, Variant*> by_machine_;
  CompileTotals totals_;
};

}  // namespace fulcrum::tuner
