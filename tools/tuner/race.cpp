// Blocks and halving. Invariant: see race.hpp.
#include "tuner/race.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace fulcrum::tuner {
namespace {

constexpr int first_round_blocks = 3;

// Fastest first by what is known so far.
void sort_by_point(const Race& race, std::vector<size_t>& entries) {
  std::vector<std::pair<double, size_t>> points;
  for (const size_t entry : entries) points.emplace_back(race.point(entry), entry);
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t place = 0; place < points.size(); ++place) entries[place] = points[place].second;
}

}  // namespace

size_t Race::add(Sample sample, int group) {
  entries_.push_back({std::move(sample), group, num_blocks_, {}});
  return entries_.size() - 1;
}

int Race::run(const std::vector<size_t>& entries, int blocks, const std::function<bool()>& may_go_on) {
  std::vector<size_t> order = {baseline, twin};
  for (const size_t entry : entries) {
    if (entry != baseline && entry != twin) order.push_back(entry);
  }
  for (const size_t entry : order) {  // an entry that paused starts anew: its blocks must be consecutive
    Entry& each = entries_[entry];
    if (each.first_block + static_cast<int>(each.times.size()) == num_blocks_) continue;
    each.first_block = num_blocks_;
    each.times.clear();
  }
  for (int block = 0; block < blocks; ++block) {
    if (!may_go_on()) return block;
    for (size_t place = order.size(); place > 1; --place) {  // Fisher-Yates
      std::swap(order[place - 1], order[random_.below(place)]);
    }
    for (const size_t entry : order) entries_[entry].times.push_back(entries_[entry].sample());
    ++num_blocks_;
  }
  return blocks;
}

std::vector<double> Race::ratios(size_t entry) const { return ratios(entry, baseline); }

std::vector<double> Race::ratios(size_t entry, size_t against) const {
  const Entry& own = entries_[entry];
  const Entry& base = entries_[against];
  const int begin = std::max(own.first_block, base.first_block);
  const auto from = [&](const Entry& each) {
    const size_t skip = static_cast<size_t>(begin - each.first_block);
    return std::span<const double>(each.times).subspan(std::min(skip, each.times.size()));
  };
  return log_ratios(from(own), from(base));
}

std::vector<size_t> halve(Race& race, std::vector<size_t> entries, size_t keep,
                          const std::function<bool()>& may_go_on) {
  for (int blocks = first_round_blocks;; blocks += blocks / 2) {
    if (race.run(entries, blocks, may_go_on) < blocks) break;
    sort_by_point(race, entries);
    if (entries.size() <= keep) break;
    const size_t wanted = std::max(keep, (entries.size() + 1) / 2);
    std::set<int> groups;
    std::vector<size_t> kept;
    for (size_t place = 0; place < entries.size(); ++place) {
      const bool first_of_group = groups.insert(race.group(entries[place])).second;
      if (place < wanted || first_of_group) kept.push_back(entries[place]);
    }
    if (kept.size() == entries.size()) break;  // groups hold what is left
    entries = kept;
  }
  std::erase_if(entries, [&](size_t entry) { return race.times(entry).empty(); });
  sort_by_point(race, entries);
  return entries;
}

}  // namespace fulcrum::tuner
