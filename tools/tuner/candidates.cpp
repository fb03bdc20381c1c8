// Ranking and thinning. Invariant: see candidates.hpp.
#include "tuner/candidates.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace fulcrum::tuner {
namespace {

// Levers at their defaults until a race has leaders, whose neighbours are then tried: the model sees no difference in
// them, or (split_k) one only where tiles are few.
constexpr const char* held_levers[] = {"token_pad",        "tile_queue",    "register_cap",   "raster", "l2_hint",
                                       "fragment_buffers", "unroll_tokens", "output_staging", "split_k"};
// A Config whose limit is this far below the expected need is taken to spill; ptxas finds a dozen registers more than
// the sum of what is live (counted: 96 allowed where 108 were expected did not spill).
constexpr uint32_t spill_slack = 12;
constexpr size_t per_form = 3;
constexpr size_t kept_per_layout = 4000;

struct Scored {
  float us;
  uint32_t index;
};

// What makes two Configs the same idea: everything but these.
std::string form_of(const Config& config) {
  Config form = config;
  for (const char* name :
       {"stages", "min_blocks", "register_cap", "token_granularity", "token_pad", "tile_queue", "producer_warps"}) {
    const int32_t lever = lever_index(name);
    if (lever >= 0) set_lever(form, lever, lever_infos[lever].default_value);
  }
  return config_text(form);
}

int layout_number(const Config& config) { return int(config.code_word) * 2 + int(config.k_order); }

std::vector<Scored> score(const LegalSpace& space, CostModel& model, Ranking& ranking) {
  std::vector<Scored> scored;
  for (size_t index = 0; index < space.configs.size(); ++index) {
    const Config& config = space.configs[index];
    if (expected_registers(config) > static_cast<uint32_t>(register_limit(config)) + spill_slack) {
      ++ranking.would_spill;
      continue;
    }
    const Prediction prediction = model.predict(config);
    if (prediction.blocks_per_sm == 0) {
      ++ranking.no_room;
      continue;
    }
    scored.push_back({static_cast<float>(prediction.us), static_cast<uint32_t>(index)});
  }
  return scored;
}

// The best few thousand of every layout: enough to choose from, and quick to sort.
void keep_fastest(const LegalSpace& space, std::vector<Scored>& scored) {
  std::map<int, std::vector<Scored>> by_layout;
  for (const Scored& each : scored) by_layout[layout_number(space.configs[each.index])].push_back(each);
  scored.clear();
  for (auto& [layout, own] : by_layout) {
    const size_t kept = std::min(own.size(), kept_per_layout);
    const auto end = own.begin() + static_cast<std::ptrdiff_t>(kept);
    std::nth_element(own.begin(), end, own.end(), [](const Scored& a, const Scored& b) { return a.us < b.us; });
    scored.insert(scored.end(), own.begin(), end);
  }
}

}  // namespace

LegalSpace legal_space(Arch arch, KernelKind kind, const Pins& pins) {
  const Layout layout = layout_of(with_pins(default_config(kind, arch), pins));
  const Config base = default_config(kind, arch, layout);
  Pins held = pins;
  for (const char* name : held_levers) {
    const int32_t lever = lever_index(name);
    if (lever < 0) continue;
    std::optional<int32_t>& pin = held[static_cast<size_t>(lever)];
    if (!pin) pin = get_lever(base, lever);
  }
  LegalSpace space;
  space.counts = enumerate_space(arch, kind, held, [&](const Config& config) {
    if (read_in_place(config.code_word) == read_in_place(layout.code_word)) space.configs.push_back(config);
    return true;
  });
  return space;
}

Ranking rank(const LegalSpace& space, CostModel& model, KernelKind kind, Arch arch, size_t top) {
  Ranking ranking;
  ranking.legal = space.configs.size();
  std::vector<Scored> scored = score(space, model, ranking);
  const size_t num_scored = scored.size();
  keep_fastest(space, scored);
  const Config base = default_config(kind, arch);
  std::sort(scored.begin(), scored.end(), [&](const Scored& a, const Scored& b) {
    if (a.us != b.us) return a.us < b.us;
    const int32_t left = levers_apart(space.configs[a.index], base), right = levers_apart(space.configs[b.index], base);
    return left != right ? left < right : a.index < b.index;
  });
  const size_t layout_share = std::max<size_t>(1, top / 10);
  std::map<std::string, std::vector<int32_t>> forms;  // the stages that each already has
  std::map<int, size_t> layouts;
  std::vector<Scored> chosen;
  float last_us = -1;
  // Two passes over the same order: the best whatever their layout, then what a layout lacks.
  for (const bool fill_layouts : {false, true}) {
    for (const Scored& each : scored) {
      if (!fill_layouts && chosen.size() >= top) break;
      const Config& config = space.configs[each.index];
      size_t& in_layout = layouts[layout_number(config)];
      if (fill_layouts && in_layout >= layout_share) continue;
      if (!fill_layouts && each.us == last_us) continue;
      std::vector<int32_t>& depths = forms[form_of(config)];
      if (depths.size() >= per_form || std::find(depths.begin(), depths.end(), config.stages) != depths.end()) continue;
      last_us = each.us;
      depths.push_back(config.stages);
      ++in_layout;
      chosen.push_back(each);
    }
  }
  std::sort(chosen.begin(), chosen.end(), [](const Scored& a, const Scored& b) { return a.us < b.us; });
  for (const Scored& each : chosen) {
    ranking.best.push_back({space.configs[each.index], model.predict(space.configs[each.index])});
  }
  ranking.slower = num_scored - chosen.size();
  return ranking;
}

}  // namespace fulcrum::tuner
