// Compiling and dropping of variants. Invariant: see variants.hpp.
#include "tuner/variants.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/space.hpp"

namespace fulcrum::tuner {
namespace {

int kind_number(KernelKind kind) { return int(kind.dtype) * 16 + int(kind.gate_up) * 8 + int(kind.activation); }

const std::string spill_words = "spills registers";

}  // namespace

Variant& Variants::get(const Config& config, KernelKind kind, Arch arch) {
  const Config code = without_run_levers(config);
  Variant*& found = by_text_[{kind_number(kind), config_text(code)}];
  if (found == nullptr) {
    variants_.emplace_back();
    found = &variants_.back();
    found->job = {code, kind, arch};
    found->is_default = code == default_config(kind, arch);
  }
  return *found;
}

void Variants::compile(const std::vector<Variant*>& wanted, const PoolOptions& options, double seconds,
                       const std::function<void(size_t done, const Variant&)>& progress) {
  std::vector<Variant*> missing;
  for (Variant* variant : wanted) {
    if (!variant->compiled && std::find(missing.begin(), missing.end(), variant) == missing.end()) {
      missing.push_back(variant);
    }
  }
  std::vector<CompileJob> jobs;
  for (const Variant* variant : missing) jobs.push_back(variant->job);
  totals_.asked += jobs.size();
  size_t done = 0;
  (void)compile_all(jobs, options, seconds, [&](size_t index, const CompileOutcome& outcome) {
    missing[index]->outcome = outcome;
    missing[index]->compiled = true;
    progress(++done, *missing[index]);
    return true;
  });
  // in the order asked, defaults and simple ones first, so that what is dropped does not depend on who finished first
  for (Variant* variant : missing) {
    if (variant->compiled) settle(*variant);
  }
}

void Variants::settle(Variant& variant) {
  const CompileOutcome& outcome = variant.outcome;
  totals_.compile_seconds += outcome.seconds;
  if (!outcome.ok) {
    ++totals_.failed;
    variant.dropped = outcome.why;
    return;
  }
  ++totals_.compiled;
  totals_.from_cache += outcome.from_cache ? 1 : 0;
  Variant*& first = by_machine_[{kind_number(variant.job.kind), outcome.machine}];
  const bool is_same_launch = first != nullptr &&
                              block_threads(first->job.config) == block_threads(variant.job.config) &&
                              layout_of(first->job.config) == layout_of(variant.job.config);
  if (is_same_launch && !variant.is_default) {
    ++totals_.duplicates;
    variant.dropped = "same machine code as " + config_text(first->job.config);
  } else if (outcome.spill_bytes > 0 && !variant.is_default) {
    ++totals_.spilled;
    variant.dropped = fmt::format("{} ({} bytes)", spill_words, outcome.spill_bytes);
  }
  if (first == nullptr) first = &variant;
}

std::vector<Variant*> Variants::all() {
  std::vector<Variant*> pointers;
  for (Variant& variant : variants_) pointers.push_back(&variant);
  return pointers;
}

void Variants::readmit_spills(const std::vector<Variant*>& wanted) {
  const bool any = std::any_of(wanted.begin(), wanted.end(),
                               [](const Variant* variant) { return variant->usable() && !variant->is_default; });
  for (Variant* variant : wanted) {
    if (!any && variant->dropped.starts_with(spill_words)) variant->dropped.clear();
  }
}

}  // namespace fulcrum::tuner
