// The tuner's space: the staged walk against the rules point by point, neighbours, and pins.
#include <boost/test/unit_test.hpp>
#include <fulcrum_space.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "harness/random_case.hpp"
#include "tuner/candidates.hpp"
#include "tuner/space.hpp"

using namespace fulcrum;
using namespace fulcrum::tuner;

namespace {

constexpr Arch sm_90{90};
constexpr KernelKind gate_up{DType::f16, true, Activation::silu};

// A space small enough to count by hand: everything pinned to the default but two levers.
Pins all_but(std::initializer_list<const char*> free_levers) {
  Pins pins;
  const Config base = default_config(gate_up, Arch{80});
  for (int32_t lever = 0; lever < num_levers; ++lever) pins[size_t(lever)] = get_lever(base, lever);
  for (const char* name : free_levers) pins[size_t(lever_index(name))].reset();
  return pins;
}

// Free in the walk that is compared with the rules: some levers of every stage.
const std::initializer_list<const char*> walked = {
    "tile_n",    "tile_m",  "warps_n",      "stages",  "copy",      "token_granularity",
    "code_word", "dequant", "scale_decode", "k_order", "tile_queue"};

std::string words_of(const char* reason) { return reason != nullptr ? reason : "legal"; }

Config random_point(harness::Random& random) { return without_run_levers(harness::random_config(random)); }

}  // namespace

BOOST_AUTO_TEST_SUITE(tuner_space)

// Over a slice with every tile lever free, the walk must find exactly what illegal_reason allows, and count the rest.
BOOST_AUTO_TEST_CASE(walk_agrees_with_the_rules) {
  for (const Arch arch : {Arch{80}, sm_90}) {
    const Pins pins = all_but(walked);
    std::set<std::string> found;
    const SpaceCounts counts = enumerate_space(arch, gate_up, pins, [&](const Config& config) {
      BOOST_REQUIRE(illegal_reason(config, arch, gate_up) == nullptr);
      found.insert(config_text(config));
      return true;
    });
    const SpaceCounts counted = enumerate_space(arch, gate_up, pins, [](const Config&) { return false; });
    BOOST_TEST(counted.legal == counts.legal);
    const auto sorted = [](const SpaceCounts& each) { return std::map(each.reasons.begin(), each.reasons.end()); };
    BOOST_TEST((sorted(counted) == sorted(counts)));
    BOOST_TEST(found.size() == counts.legal);
    uint64_t points = 1;
    for (const char* name : walked) {
      points *= uint64_t(family_spaces[0].levers[lever_index(name)].num_values);
    }
    BOOST_TEST(counts.points == points);
    uint64_t sum = counts.legal;
    for (const auto& [reason, count] : counts.reasons) sum += count;
    BOOST_TEST(sum == points);
    harness::Random random(uint64_t(arch.cc));
    for (int draw = 0; draw < 20000; ++draw) {
      Config config = random_point(random);
      for (int32_t lever = 0; lever < num_levers; ++lever) {
        if (const auto& pin = pins[size_t(lever)]) set_lever(config, lever, *pin);
      }
      const bool is_legal = illegal_reason(config, arch, gate_up) == nullptr;
      BOOST_REQUIRE(found.contains(config_text(config)) == is_legal);
    }
  }
}

// A stage refuses a point only for levers that its rule reads; levers of later stages must not matter to it.
BOOST_AUTO_TEST_CASE(early_rules_do_not_read_later_levers) {
  harness::Random random(1);
  const auto same = [](const char* a, const char* b) { return a == b; };
  for (int draw = 0; draw < 20000; ++draw) {
    const Config one = random_point(random);
    Config other = random_point(random);
    for (const char* name : {"tile_n", "tile_m", "tile_k", "warps_n", "warps_m"}) {
      set_lever(other, lever_index(name), get_lever(one, lever_index(name)));
    }
    BOOST_REQUIRE(same(rules::tile_reason(one), rules::tile_reason(other)));
    for (const char* name : {"token_granularity", "token_pad"}) {
      set_lever(other, lever_index(name), get_lever(one, lever_index(name)));
    }
    BOOST_REQUIRE(same(rules::token_reason(one), rules::token_reason(other)));
    for (const char* name : {"copy", "producer_warps"}) {
      set_lever(other, lever_index(name), get_lever(one, lever_index(name)));
    }
    BOOST_REQUIRE(same(rules::producer_reason(one, sm_90), rules::producer_reason(other, sm_90)));
    for (const char* name : {"stages", "min_blocks", "register_cap", "output_staging", "split_k"}) {
      set_lever(other, lever_index(name), get_lever(one, lever_index(name)));
    }
    BOOST_REQUIRE(same(rules::resource_reason(one, sm_90), rules::resource_reason(other, sm_90)));
    for (const char* name : {"code_word", "k_order", "dequant", "scale_decode", "l2_hint"}) {
      set_lever(other, lever_index(name), get_lever(one, lever_index(name)));
    }
    BOOST_REQUIRE(same(illegal_reason(one, sm_90, gate_up), illegal_reason(other, sm_90, gate_up)));
  }
}

// Of points that pass the stages before, the rules of code levers read `copy` and no other lever.
BOOST_AUTO_TEST_CASE(code_rules_read_copy_alone) {
  harness::Random random(2);
  const auto passes = [](const Config& config) {
    return rules::tile_reason(config) == nullptr && rules::token_reason(config) == nullptr &&
           rules::producer_reason(config, sm_90) == nullptr && rules::resource_reason(config, sm_90) == nullptr;
  };
  uint64_t compared = 0;
  while (compared < 2000) {
    const Config one = random_point(random);
    Config other = random_point(random);
    if (one.copy != other.copy) continue;
    for (const char* name : {"code_word", "k_order", "dequant", "scale_decode", "l2_hint"})
      set_lever(other, lever_index(name), get_lever(one, lever_index(name)));
    if (!passes(one) || !passes(other)) continue;
    BOOST_REQUIRE(words_of(illegal_reason(one, sm_90, gate_up)) == words_of(illegal_reason(other, sm_90, gate_up)));
    ++compared;
  }
}

BOOST_AUTO_TEST_CASE(default_is_in_the_space) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const KernelKind kind{dtype, false, Activation::none};
    for (const int cc : supported_archs) {
      const Config base = default_config(kind, Arch{cc});
      Pins pins;
      for (int32_t lever = 0; lever < num_levers; ++lever) {
        const LeverValues& values = family_spaces[0].levers[lever];
        const int32_t* end = values.values + values.num_values;
        BOOST_TEST(std::count(values.values, end, get_lever(base, lever)) == 1, lever_infos[lever].name);
        pins[size_t(lever)] = get_lever(base, lever);
      }
      BOOST_TEST(enumerate_space(Arch{cc}, kind, pins, [](const Config&) { return false; }).legal == 1u);
    }
  }
}

BOOST_AUTO_TEST_CASE(older_architectures_allow_less) {
  const Pins pins = all_but({"tile_n", "tile_m", "stages", "copy"});
  const auto legal = [&](Arch arch) {
    return enumerate_space(arch, gate_up, pins, [](const Config&) { return false; }).legal;
  };
  BOOST_TEST(legal(Arch{80}) < legal(sm_90));
  BOOST_TEST(legal(Arch{86}) <= legal(Arch{80}));
}

BOOST_AUTO_TEST_CASE(pins_hold) {
  Pins pins = all_but({"stages"});
  pins[size_t(lever_index("tile_k"))] = 128;
  uint64_t visited = 0;
  (void)enumerate_space(sm_90, gate_up, pins, [&](const Config& config) {
    BOOST_TEST(config.tile_k == 128);
    ++visited;
    return true;
  });
  BOOST_TEST(visited > 1u);
  for (const Config& next : neighbours(default_config(gate_up, Arch{80}), sm_90, gate_up, all_but({"stages"}))) {
    BOOST_TEST(levers_apart(next, default_config(gate_up, Arch{80})) == 1);
    BOOST_TEST(next.stages != default_config(gate_up, Arch{80}).stages);
  }
}

BOOST_AUTO_TEST_CASE(neighbours_are_legal_and_near) {
  const Config base = default_config(gate_up, Arch{80});
  const std::vector<Config> near = neighbours(base, sm_90, gate_up, {});
  BOOST_TEST(near.size() > 10u);
  std::map<std::string, int> moved;
  for (const Config& next : near) {
    BOOST_TEST(illegal_reason(next, sm_90, gate_up) == nullptr);
    BOOST_TEST(levers_apart(next, base) >= 1);
    BOOST_TEST(levers_apart(next, base) <= 2);
    for (int32_t lever = 0; lever < num_levers; ++lever) {
      if (get_lever(next, lever) != get_lever(base, lever)) ++moved[lever_infos[lever].name];
    }
  }
  for (const char* name : {"tile_n", "tile_m", "stages", "copy", "tile_order", "grid_extent", "code_word", "k_order"}) {
    BOOST_TEST(moved[name] >= 1, name);
  }
}

// Packed weights and a checkpoint read in place are not each other's rivals: only a pin asks for the second.
BOOST_AUTO_TEST_CASE(a_pin_alone_reads_in_place) {
  Pins pins = all_but({"code_word", "stages"});
  const auto code_words = [&] {
    std::set<CodeWord> found;
    for (const Config& config : legal_space(sm_90, gate_up, pins).configs) found.insert(config.code_word);
    return found;
  };
  BOOST_TEST((code_words() == std::set<CodeWord>{CodeWord::plain, CodeWord::f16}));
  for (const Config& next : neighbours(default_config(gate_up, Arch{80}), sm_90, gate_up, {}))
    BOOST_TEST(!read_in_place(next.code_word));
  pins = {};
  pins[size_t(lever_index("code_word"))] = int32_t(CodeWord::block36);
  pins[size_t(lever_index("warps_n"))] = 4;
  BOOST_TEST((code_words() == std::set<CodeWord>{CodeWord::block36}));
  const Config base = default_config(gate_up, sm_90, {CodeWord::block36, KOrder::natural});
  BOOST_TEST(!neighbours(base, sm_90, gate_up, pins).empty());
}

BOOST_AUTO_TEST_CASE(differences_in_words) {
  const Config base = default_config(gate_up, Arch{80});
  Config other = base;
  BOOST_TEST(difference_text(other, base) == "default");
  other.stages = 6;
  other.copy = Copy::bulk;
  BOOST_TEST(difference_text(other, base) == "stages=6 copy=bulk");
  BOOST_TEST(lever_index("no_such_lever") == -1);
}

BOOST_AUTO_TEST_SUITE_END()
