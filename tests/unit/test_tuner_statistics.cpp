// Statistics of the tuner on synthetic noise: how often nothing is called something, how often something is found, and
// what the race and the choice do with drift, outliers and ties.
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <numbers>

#include "harness/random.hpp"
#include "tuner/race.hpp"
#include "tuner/steps.hpp"
#include "tuner/verdict.hpp"

using namespace fulcrum;
using namespace fulcrum::tuner;

namespace {

constexpr int num_runs = 400;
constexpr int num_blocks = 40;

// Times of a machine: normal noise, a drift that all entries of a block share, and now and then an outlier.
class Machine {
 public:
  Machine(uint64_t seed, double noise) : random_(seed), noise_(noise) {}

  double sample(double us) {
    ++samples_;
    const double drift = 1 + 0.01 * std::sin(static_cast<double>(samples_) / 40);
    const double outlier = random_.below(50) == 0 ? 1.2 : 1.0;
    return us * drift * outlier * (1 + noise_ * normal());
  }

  Race race(double default_us, const std::vector<double>& others) {
    Race race(random_.next());
    (void)race.add([this, default_us] { return sample(default_us); });
    (void)race.add([this, default_us] { return sample(default_us); });
    for (const double us : others) (void)race.add([this, us] { return sample(us); });
    return race;
  }

 private:
  double normal() {  // Box and Muller
    return std::sqrt(-2 * std::log(random_.unit())) * std::cos(2 * std::numbers::pi * random_.unit());
  }

  harness::Random random_;
  double noise_;
  int samples_ = 0;
};

bool always() { return true; }

std::vector<size_t> entries_of(const Race& race) {
  std::vector<size_t> entries;
  for (size_t entry = 2; entry < race.size(); ++entry) entries.push_back(entry);
  return entries;
}

// Share of runs in which an entry `effect` faster than the default is called a gain.
double gain_rate(double effect, double noise) {
  int gains = 0;
  for (int run = 0; run < num_runs; ++run) {
    Machine machine(uint64_t(run) + 1, noise);
    Race race = machine.race(100, {100 * (1 - effect)});
    (void)race.run({2}, num_blocks, always);
    gains += judge(race.interval(2), noise_of(race.interval(Race::twin))) == Verdict::gain ? 1 : 0;
  }
  return double(gains) / num_runs;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tuner_statistics)

BOOST_AUTO_TEST_CASE(middle_mean_and_median) {
  BOOST_TEST(middle_mean({}) == 0);
  BOOST_TEST(middle_mean({5}) == 5);
  BOOST_TEST(middle_mean({1, 2, 3, 1000}) == 2.5);
  BOOST_TEST(median({3, 1, 2}) == 2);
  BOOST_TEST(median({4, 1, 2, 3}) == 2.5);
}

BOOST_AUTO_TEST_CASE(median_interval_holds_the_median) {
  const Interval interval = median_interval({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20});
  BOOST_TEST(interval.low < interval.point);
  BOOST_TEST(interval.point == 10.5);
  BOOST_TEST(interval.point < interval.high);
  BOOST_TEST(interval.low >= 1);
  BOOST_TEST(interval.high <= 20);
}

// A 95 % interval misses the truth in 5 % of runs; what a bootstrap over 40 blocks may add to that is bounded here.
BOOST_AUTO_TEST_CASE(twin_interval_covers_zero) {
  int missed = 0;
  for (int run = 0; run < num_runs; ++run) {
    Machine machine(uint64_t(run) + 1000, 0.01);
    Race race = machine.race(100, {});
    (void)race.run({}, num_blocks, always);
    const Interval twin = race.interval(Race::twin);
    missed += twin.low > 0 || twin.high < 0 ? 1 : 0;
  }
  BOOST_TEST_MESSAGE("A/A intervals that miss zero: " << missed << " of " << num_runs);
  BOOST_TEST(missed <= num_runs * 8 / 100);
}

BOOST_AUTO_TEST_CASE(no_effect_is_rarely_a_gain) {
  const double rate = gain_rate(0, 0.01);
  BOOST_TEST_MESSAGE("gains without an effect: " << rate);
  BOOST_TEST(rate <= 0.02);
}

BOOST_AUTO_TEST_CASE(effects_are_found) {
  const double half = gain_rate(0.005, 0.003), one = gain_rate(0.01, 0.005), three = gain_rate(0.03, 0.01);
  BOOST_TEST_MESSAGE("found: 0.5 % at 0.3 % noise " << half << ", 1 % at 0.5 % noise " << one << ", 3 % at 1 % noise "
                                                    << three);
  BOOST_TEST(half >= 0.9);
  BOOST_TEST(one >= 0.95);
  BOOST_TEST(three >= 0.99);
}

BOOST_AUTO_TEST_CASE(verdicts) {
  BOOST_TEST((judge({-0.03, -0.02, -0.01}, 0.005) == Verdict::gain));
  BOOST_TEST((judge({-0.03, -0.02, -0.01}, 0.025) == Verdict::unresolved));  // not more than the noise
  BOOST_TEST((judge({0.01, 0.02, 0.03}, 0.005) == Verdict::loss));
  BOOST_TEST((judge({-0.002, 0.001, 0.003}, 0.001) == Verdict::null));
  BOOST_TEST((judge({-0.02, 0.0, 0.02}, 0.001) == Verdict::unresolved));
}

BOOST_AUTO_TEST_CASE(halving_finds_the_best) {
  int found = 0;
  for (int run = 0; run < 50; ++run) {
    Machine machine(uint64_t(run) + 7, 0.01);
    std::vector<double> others(30, 100);
    for (size_t place = 0; place < others.size(); ++place) others[place] = 100 + double(place);
    others[17] = 95;
    Race race = machine.race(110, others);
    const std::vector<size_t> best = halve(race, entries_of(race), 4, always);
    found += best.front() == 17 + 2 ? 1 : 0;
    BOOST_TEST(best.size() == 4u);
  }
  BOOST_TEST(found == 50);
}

BOOST_AUTO_TEST_CASE(halving_keeps_one_of_each_group) {
  Machine machine(3, 0.001);
  Race race = machine.race(100, {});
  for (int place = 0; place < 16; ++place) {
    const int group = place == 15 ? 1 : 0;
    (void)race.add([&machine, place] { return machine.sample(100 + place); }, group);
  }
  const std::vector<size_t> best = halve(race, entries_of(race), 2, always);
  BOOST_TEST(best.back() == 17u);  // the slowest of all, and the only one of its group
}

BOOST_AUTO_TEST_CASE(late_entries_are_compared_in_their_own_blocks) {
  Machine machine(5, 0.001);
  Race race = machine.race(100, {90});
  (void)race.run({2}, 10, always);
  const size_t late = race.add([&machine] { return machine.sample(80); });
  (void)race.run({2, late}, 10, always);
  BOOST_TEST(race.times(late).size() == 10u);
  BOOST_TEST(race.times(Race::baseline).size() == 20u);
  BOOST_TEST(race.ratios(late).size() == 10u);
  BOOST_TEST(race.point(late) == std::log(0.8), boost::test_tools::tolerance(0.02));
  BOOST_TEST(race.ratios(2, late).size() == 10u);
}

BOOST_AUTO_TEST_CASE(ties_go_to_the_simplest) {
  Machine machine(11, 0.002);
  Race race = machine.race(100, {90, 90.05, 95});
  std::vector<Config> configs(5);
  configs[2].stages = 6, configs[2].tile_n = 256, configs[2].warps_n = 8;  // three levers
  configs[3].stages = 6;                                                   // one, and as fast
  configs[4].tile_n = 256;
  (void)race.run(entries_of(race), num_blocks, always);
  const auto config_of = [&](size_t entry) { return configs[entry]; };
  const tuner::Choice choice = choose_entry(race, entries_of(race), config_of, layout_of(configs[0]));
  BOOST_TEST(choice.entry == 3u);
  BOOST_TEST(choice.words.starts_with("gain"));
}

BOOST_AUTO_TEST_CASE(what_does_not_gain_says_default) {
  Machine machine(12, 0.01);
  Race race = machine.race(100, {100, 101});
  std::vector<Config> configs(4);
  configs[2].stages = 6;
  configs[3].stages = 3;
  (void)race.run(entries_of(race), num_blocks, always);
  const auto config_of = [&](size_t entry) { return configs[entry]; };
  const tuner::Choice choice = choose_entry(race, entries_of(race), config_of, layout_of(configs[0]));
  BOOST_TEST(choice.entry == Race::baseline);
  BOOST_TEST(choice.words.starts_with("default"));
}

BOOST_AUTO_TEST_CASE(layout_of_a_shape_is_chosen_by_total_time) {
  const Layout natural{CodeWord::f16, KOrder::natural}, permuted{CodeWord::f16, KOrder::permuted};
  BOOST_TEST((choose_layout({{{natural, 10}, {permuted, 9}}, {{natural, 100}, {permuted, 110}}}, natural) == natural));
  BOOST_TEST((choose_layout({{{natural, 10}, {permuted, 9}}, {{natural, 100}, {permuted, 90}}}, natural) == permuted));
  BOOST_TEST((choose_layout({{{natural, 100}, {permuted, 99.8}}}, natural) == natural));  // a tie
  BOOST_TEST((choose_layout({{{natural, 100}}, {{natural, 100}, {permuted, 1}}}, natural) == natural));
  BOOST_TEST((choose_layout({}, permuted) == permuted));
}

BOOST_AUTO_TEST_CASE(a_layout_that_the_pins_exclude_has_no_time) {
  Config packed, in_place;
  packed.code_word = CodeWord::f16;
  in_place.code_word = CodeWord::block36;
  Config slower = in_place;
  slower.stages = 8;
  const std::vector<Tried> tried{{packed, 10, 0}, {slower, 30, 0}, {in_place, 20, 0}};
  BOOST_TEST((times_by_layout(tried, {}) == LayoutTimes{{layout_of(packed), 10}, {layout_of(in_place), 20}}));
  Pins pins;
  pins[size_t(lever_index("code_word"))] = int32_t(CodeWord::block36);
  BOOST_TEST((times_by_layout(tried, pins) == LayoutTimes{{layout_of(in_place), 20}}));
}

// Twelve ranked Configs; the eleventh and twelfth do not count as the model's.
BOOST_AUTO_TEST_CASE(model_loss_is_of_the_first_ten) {
  Cell cell;
  for (int32_t place = 0; place < 12; ++place) {
    Candidate candidate;
    candidate.config.stages = 2 + place;
    cell.ranking.best.push_back(candidate);
  }
  BOOST_TEST(!model_loss(cell).has_value());  // nothing was timed
  for (int32_t place = 0; place < 12; ++place)
    cell.tried.push_back({cell.ranking.best[size_t(place)].config,
                          place == 11  ? 100.0
                          : place == 3 ? 110.0
                                       : 150.0,
                          0});
  BOOST_TEST(model_loss(cell).value() == 0.10, boost::test_tools::tolerance(1e-12));
  cell.tried[11].us = 120;
  BOOST_TEST(model_loss(cell).value() == 0.0);
  cell.ranking.best.clear();
  BOOST_TEST(!model_loss(cell).has_value());  // none of its ten was timed
}

BOOST_AUTO_TEST_SUITE_END()
