// Enumeration of the space, lever by lever. Invariant: see space.hpp.
#include "tuner/space.hpp"

#include <fulcrum_space.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace fulcrum::tuner {
namespace {

struct Values {
  const int32_t* first;
  int32_t count;
};

using LeverTable = std::array<Values, num_levers>;

LeverTable values_of(const FamilySpace& family, const Pins& pins) {
  LeverTable table{};
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    const size_t at = static_cast<size_t>(lever);
    if (pins[at]) {
      table[at] = {&*pins[at], 1};
    } else if (lever_infos[lever].kind == LeverKind::run) {
      table[at] = {&lever_infos[lever].default_value, 1};
    } else {
      table[at] = {family.levers[lever].values, family.levers[lever].num_values};
    }
  }
  return table;
}

// Counts by the address of the words: every rule returns the same literal, and there are a dozen of them.
class Reasons {
 public:
  void add(const char* reason, uint64_t points) {
    for (auto& [words, count] : counts_) {
      if (words != reason) continue;
      count += points;
      return;
    }
    counts_.emplace_back(reason, points);
  }

  void add(const Reasons& other) {
    for (const auto& [words, count] : other.counts_) add(words, count);
  }

  std::vector<std::pair<std::string, uint64_t>> sorted() const {
    std::vector<std::pair<std::string, uint64_t>> named(counts_.begin(), counts_.end());
    std::stable_sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    return named;
  }

 private:
  std::vector<std::pair<const char*, uint64_t>> counts_;
};

// Levers that are set together, and the rules that can be asked as soon as they are: what those refuse need not be
// tried with all values of the levers after them. The tests hold this against illegal_reason at random points.
struct Stage {
  std::vector<int32_t> levers;
  const char* (*reason)(const Config&, Arch, KernelKind);
};

// From here on, of what was set before, the rules read `copy` alone.
constexpr size_t code_stage = 4;

std::vector<Stage> stages_of_rules() {
  const auto levers = [](std::initializer_list<const char*> names) {
    std::vector<int32_t> indices;
    for (const char* name : names) indices.push_back(lever_index(name));
    return indices;
  };
  std::vector<Stage> stages = {
      {levers({"tile_n", "tile_m", "tile_k", "warps_n", "warps_m"}),
       [](const Config& config, Arch, KernelKind) { return rules::tile_reason(config); }},
      {levers({"token_granularity", "token_pad"}),
       [](const Config& config, Arch, KernelKind) { return rules::token_reason(config); }},
      {levers({"copy", "producer_warps"}),
       [](const Config& config, Arch arch, KernelKind) { return rules::producer_reason(config, arch); }},
      // and every lever that no other stage has
      {{}, [](const Config& config, Arch arch, KernelKind) { return rules::resource_reason(config, arch); }},
      {levers({"code_word", "k_order", "dequant", "scale_decode", "l2_hint"}),
       [](const Config& config, Arch arch, KernelKind kind) { return illegal_reason(config, arch, kind); }},
      // rules ask of these whether the value is one that there is
      {levers({"tile_queue", "tile_order", "raster", "fragment_buffers", "unroll_tokens"}),
       [](const Config& config, Arch, KernelKind) { return rules::loop_reason(config); }},
  };
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    const bool staged = std::any_of(stages.begin(), stages.end(), [&](const Stage& stage) {
      return std::find(stage.levers.begin(), stage.levers.end(), lever) != stage.levers.end();
    });
    if (!staged) stages[code_stage - 1].levers.push_back(lever);
  }
  return stages;
}

// Walks the stages like digits of a number. Once `visit` has seen enough, what the code stage and those after it come
// to is counted once for each `copy` instead of walked.
class Enumeration {
 public:
  Enumeration(Arch arch, KernelKind kind, const LeverTable& table, const std::function<bool(const Config&)>& visit)
      : arch_(arch), kind_(kind), table_(table), visit_(visit), stages_(stages_of_rules()) {
    uint64_t below = 1;
    for (size_t stage = stages_.size(); stage-- > 0;) {
      below_.insert(below_.begin(), below);
      for (const int32_t lever : stages_[stage].levers) {
        set_lever(config_, lever, table_[size_t(lever)].first[0]);
        below *= static_cast<uint64_t>(table_[size_t(lever)].count);
      }
    }
    points_ = below;
  }

  void run(SpaceCounts& counts) {
    walk(0, 0);
    counts.points += points_;
    counts.legal += tally_.legal;
    for (const auto& [reason, count] : tally_.reasons.sorted()) counts.reasons.emplace_back(reason, count);
  }

 private:
  struct Tally {
    uint64_t legal = 0;
    Reasons reasons;
  };

  // Sets levers `at`.. of stage `stage`, then the stages after it.
  void walk(size_t stage, size_t at) {
    if (stage == code_stage && at == 0 && !listing_) return count();
    if (at == stages_[stage].levers.size()) return finish(stage);
    const int32_t lever = stages_[stage].levers[at];
    const Values& values = table_[size_t(lever)];
    for (int32_t index = 0; index < values.count; ++index) {
      set_lever(config_, lever, values.first[index]);
      walk(stage, at + 1);
    }
  }

  void finish(size_t stage) {
    const char* reason = stages_[stage].reason(config_, arch_, kind_);
    if (reason != nullptr) return tally_.reasons.add(reason, below_[stage]);
    if (stage + 1 < stages_.size()) return walk(stage + 1, 0);
    ++tally_.legal;
    if (listing_) listing_ = visit_(config_);
  }

  // Adds what the walk from the code stage on would.
  void count() {
    std::optional<Tally>& known = counted_[config_.copy];
    if (!known) {
      Tally before = std::exchange(tally_, {});
      const int32_t first = stages_[code_stage].levers[0];
      const Values& values = table_[size_t(first)];
      for (int32_t index = 0; index < values.count; ++index) {
        set_lever(config_, first, values.first[index]);
        walk(code_stage, 1);
      }
      known = std::exchange(tally_, std::move(before));
    }
    tally_.legal += known->legal;
    tally_.reasons.add(known->reasons);
  }

  Arch arch_;
  KernelKind kind_;
  const LeverTable& table_;
  const std::function<bool(const Config&)>& visit_;
  std::vector<Stage> stages_;
  std::vector<uint64_t> below_;  // [stage] points that share its levers
  uint64_t points_ = 0;
  Config config_;
  bool listing_ = true;
  Tally tally_;
  std::map<Copy, std::optional<Tally>> counted_;
};

const FamilySpace* find_family(Family family) {
  for (const FamilySpace& each : family_spaces) {
    if (each.family == family) return &each;
  }
  return nullptr;
}

// Values that one step from `value` may take: of an enum all others, of a number the two beside it.
std::vector<int32_t> steps(const LeverValues& values, const LeverInfo& info, int32_t value) {
  std::vector<int32_t> sorted(values.values, values.values + values.num_values);
  std::sort(sorted.begin(), sorted.end());
  std::vector<int32_t> out;
  if (info.values.count > 0) {
    std::copy_if(sorted.begin(), sorted.end(), std::back_inserter(out), [&](int32_t each) { return each != value; });
    return out;
  }
  const auto above = std::upper_bound(sorted.begin(), sorted.end(), value);
  const auto below = std::lower_bound(sorted.begin(), sorted.end(), value);
  if (below != sorted.begin()) out.push_back(*(below - 1));
  if (above != sorted.end()) out.push_back(*above);
  return out;
}

// What must follow a step for the rules to have a chance.
Config with_followers(Config next, const Config& from) {
  if (next.tile_m != from.tile_m && from.token_granularity == from.tile_m) next.token_granularity = next.tile_m;
  if (next.register_cap != 0 && from.register_cap == 0) next.min_blocks = 0;
  if (next.min_blocks != 0 && from.min_blocks == 0) next.register_cap = 0;
  if (next.warps_m != from.warps_m && next.token_granularity % (8 * next.warps_m) != 0)
    next.token_granularity = 8 * next.warps_m;
  return next;
}

}  // namespace

Config with_pins(Config config, const Pins& pins) {
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    if (const auto& pin = pins[static_cast<size_t>(lever)]) set_lever(config, lever, *pin);
  }
  return config;
}

int32_t lever_index(std::string_view name) {
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    if (name == lever_infos[lever].name) return lever;
  }
  return -1;
}

SpaceCounts enumerate_space(Arch arch, KernelKind kind, const Pins& pins,
                            const std::function<bool(const Config&)>& visit) {
  SpaceCounts counts;
  for (const FamilySpace& family : family_spaces) {
    const LeverTable table = values_of(family, pins);
    if (table[0].first[0] != static_cast<int32_t>(family.family)) continue;  // the family itself is pinned to another
    uint64_t run_settings = 1;
    for (int32_t lever = 0; lever < num_levers; ++lever) {
      const bool is_free = lever_infos[lever].kind == LeverKind::run && !pins[static_cast<size_t>(lever)];
      if (is_free) run_settings *= static_cast<uint64_t>(family.levers[lever].num_values);
    }
    counts.run_settings = run_settings;
    Enumeration(arch, kind, table, visit).run(counts);
  }
  return counts;
}

std::vector<Config> neighbours(const Config& config, Arch arch, KernelKind kind, const Pins& pins) {
  std::vector<Config> out;
  const FamilySpace* family = find_family(config.family);
  for (int32_t lever = 0; family != nullptr && lever < num_levers; ++lever) {
    for (const int32_t value : steps(family->levers[lever], lever_infos[lever], get_lever(config, lever))) {
      Config next = config;
      set_lever(next, lever, value);
      next = with_followers(next, config);
      if (read_in_place(next.code_word) != read_in_place(config.code_word)) continue;
      if (with_pins(next, pins) == next && illegal_reason(next, arch, kind) == nullptr) out.push_back(next);
    }
  }
  return out;
}

int32_t levers_apart(const Config& left, const Config& right) {
  int32_t apart = 0;
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    apart += get_lever(left, lever) != get_lever(right, lever) ? 1 : 0;
  }
  return apart;
}

std::string config_text(const Config& config) {
  char text[config_text_capacity];
  (void)write_config(config, text, config_text_capacity);
  return text;
}

std::string lever_text(int32_t lever, int32_t value) {
  const LeverInfo& info = lever_infos[lever];
  return std::string(info.name) + "=" + (info.values.count > 0 ? info.values.names[value] : std::to_string(value));
}

std::string difference_text(const Config& config, const Config& base) {
  std::string text;
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    if (get_lever(config, lever) == get_lever(base, lever)) continue;
    if (!text.empty()) text += ' ';
    text += lever_text(lever, get_lever(config, lever));
  }
  return text.empty() ? "default" : text;
}

}  // namespace fulcrum::tuner
