// The space that the tuner searches: every legal Config of codegen/space.toml, counts of what the rules refuse, and
// steps of one lever.
//
// Called by `fulcrum space`, by tune and by the tests. Needs no GPU.
// Invariant: a Config that comes out is legal for the (arch, kind) it was asked for; nothing here knows a rule, all
// reasons are rules.h's.
#pragma once

#include <fulcrum/core/rules.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fulcrum::tuner {

// Levers that the user holds still, by their line in levers.def.
using Pins = std::array<std::optional<int32_t>, num_levers>;

struct SpaceCounts {
  uint64_t points = 0;        // combinations of Layout, Math and Tune levers
  uint64_t legal = 0;         // of them
  uint64_t run_settings = 1;  // combinations of Run levers, each of which any of them may be launched with
  std::vector<std::pair<std::string, uint64_t>> reasons;  // why the others are not, most frequent first
};

Config with_pins(Config config, const Pins& pins);

int32_t lever_index(std::string_view name);  // its line in levers.def, -1 when there is no such lever

// Calls `visit` for every legal point, its Run levers at their pin or default, until it returns false; counts all of
// them. A pinned lever takes its pin alone, whether space.toml lists that value or not.
SpaceCounts enumerate_space(Arch arch, KernelKind kind, const Pins& pins,
                            const std::function<bool(const Config&)>& visit);

// Legal Configs that differ from `config` in one lever: the next value either way for a number, every other one for an
// enum. Two levers move together where a rule ties them: tile_m takes token_granularity along when that is the whole
// tile, and min_blocks is dropped for a register_cap. Pinned levers stay, and packed weights stay packed.
std::vector<Config> neighbours(const Config& config, Arch arch, KernelKind kind, const Pins& pins);

// Levers in which two Configs differ.
int32_t levers_apart(const Config& left, const Config& right);

std::string config_text(const Config& config);                   // canonical, every lever
std::string lever_text(int32_t lever, int32_t value);            // "tile_n=128"
std::string difference_text(const Config&, const Config& base);  // "tile_n=256 stages=3", or "default"

}  // namespace fulcrum::tuner
