// How a Table answers: which rows fit a device and a shape, which Layout to pack for, which Config to run.
//
// Included by table.hpp alone.
// Invariant: an answer depends on the rows and the question only, never on their order, except that the first of equal
// rows wins.
#pragma once

#include <fulcrum/host/table.hpp>

#include <cmath>
#include <cstdlib>
#include <utility>

FULCRUM_NAMESPACE_BEGIN

namespace detail {

inline bool same_shape_key(const Shape& left, const Shape& right) {
  return left.n == right.n && left.k == right.k && left.experts == right.experts &&
         left.local_experts == right.local_experts && left.top_k == right.top_k && left.dtype == right.dtype &&
         left.projection == right.projection && left.activation == right.activation;
}

/// |log| of the ratio between `tokens` and the nearest end of the row's range; 0 inside.
inline double token_distance(const Row& row, uint64_t tokens) {
  const auto log_of = [](uint64_t count) { return std::log(static_cast<double>(max_of<uint64_t>(count, 1))); };
  if (tokens < row.tokens_first) return log_of(row.tokens_first) - log_of(tokens);
  if (tokens > row.tokens_last) return log_of(tokens) - log_of(row.tokens_last);
  return 0;
}

inline bool same_point(const Row& left, const Row& right) {
  return left.tokens_first == right.tokens_first && left.tokens_last == right.tokens_last &&
         left.routing == right.routing;
}

}  // namespace detail

inline const char* Table::find_provenance(const char* run, const char* key) const {
  for (const Provenance& line : provenance_) {
    if (line.run == run && line.key == key) return line.value.c_str();
  }
  return nullptr;
}

inline bool Table::has_run(const std::string& run) const {
  for (const Provenance& line : provenance_) {
    if (line.run == run) return true;
  }
  return false;
}

inline bool Table::run_device(const std::string& run, DeviceKey& device) const {
  const char* cc = find_provenance(run.c_str(), key_compute_capability);
  const char* num_sms = find_provenance(run.c_str(), key_num_sms);
  const char* shared_bytes = find_provenance(run.c_str(), key_shared_per_sm);
  if (cc == nullptr || num_sms == nullptr || shared_bytes == nullptr) return false;
  device.cc = std::atoi(cc);
  device.num_sms = static_cast<uint32_t>(std::strtoul(num_sms, nullptr, 10));
  device.shared_per_sm_bytes = static_cast<uint32_t>(std::strtoul(shared_bytes, nullptr, 10));
  return true;
}

inline int Table::misfit(const Row& row, const DeviceKey& device, const Shape& shape) const {
  constexpr int never = 2;
  DeviceKey measured;
  if (!detail::same_shape_key(row.shape, shape) || !run_device(row.run, measured) || measured.cc != device.cc)
    return never;
  if (illegal_reason(row.config, Arch{device.cc}, shape) != nullptr) return never;
  return measured == device ? 0 : 1;
}

/// Sum over the token counts measured in `tier` of log(this layout's time / the best layout's time).
inline double Table::layout_loss(const DeviceKey& device, const Shape& shape, int tier, Layout layout) const {
  const double missing = std::log(2.0);  // never measured here: taken to be half as fast as the best
  double loss = 0;
  for (size_t first = 0; first < rows_.size(); ++first) {
    if (misfit(rows_[first], device, shape) != tier) continue;
    bool counted = false;
    double best = 0;
    double own = 0;
    for (size_t index = 0; index < rows_.size(); ++index) {
      const Row& row = rows_[index];
      if (!detail::same_point(row, rows_[first]) || misfit(row, device, shape) != tier) continue;
      if (read_in_place(row.config.code_word)) continue;
      counted = counted || index < first;  // an earlier row stood for this token count
      if (row.median_us <= 0) continue;
      if (best == 0 || row.median_us < best) best = row.median_us;
      if (layout_of(row.config) == layout && (own == 0 || row.median_us < own)) own = row.median_us;
    }
    if (!counted) loss += own > 0 ? std::log(own / best) : missing;
  }
  return loss;
}

inline Layout Table::layout(const DeviceKey& device, const Shape& shape) const {
  for (int tier = 0; tier < 2; ++tier) {
    bool found = false;
    Layout best{};
    double best_loss = 0;
    for (const Row& row : rows_) {
      if (misfit(row, device, shape) != tier || read_in_place(row.config.code_word)) continue;
      const double loss = layout_loss(device, shape, tier, layout_of(row.config));
      if (found && loss >= best_loss) continue;
      found = true;
      best = layout_of(row.config);
      best_loss = loss;
    }
    if (found) return best;
  }
  return layout_of(default_config(kernel_kind(shape), Arch{device.cc}));
}

inline Choice Table::choose(const DeviceKey& device, const Shape& shape, Layout layout, uint64_t tokens,
                            const char* routing) const {
  const Row* best = nullptr;
  int best_rank = 0;
  double best_distance = 0;
  for (const Row& row : rows_) {
    const int tier = misfit(row, device, shape);
    if (tier > 1 || !(layout_of(row.config) == layout)) continue;
    const bool other_routing = routing != nullptr && row.routing != routing;
    // The device decides first, then whether the time was measured, then the routing, then the token count.
    const int rank = 4 * tier + 2 * (row.source == Source::modelled ? 1 : 0) + (other_routing ? 1 : 0);
    const double distance = detail::token_distance(row, tokens);
    if (best != nullptr && (rank > best_rank || (rank == best_rank && distance >= best_distance))) continue;
    best = &row;
    best_rank = rank;
    best_distance = distance;
  }
  Choice choice;
  if (best == nullptr) {
    choice.config = default_config(kernel_kind(shape), Arch{device.cc}, layout);
    return choice;
  }
  choice.config = best->config;
  choice.row = best;
  choice.stale = best->stale;
  choice.other_routing = routing != nullptr && best->routing != routing;
  choice.match = best_rank >= 4 ? Match::other_device : best_distance > 0 ? Match::nearest_tokens : Match::exact;
  return choice;
}

inline void Table::set_provenance(const char* run, const char* key, const char* value) {
  std::string words = value;
  for (char& letter : words) {
    if (letter == '\t' || letter == '\n' || letter == '\r') letter = ' ';
  }
  for (Provenance& line : provenance_) {
    if (line.run != run || line.key != key) continue;
    line.value = words;
    return;
  }
  provenance_.push_back(Provenance{run, key, words});
}

inline void Table::describe_run(const char* run, const Device& device) {
  set_provenance(run, "gpu", device.name);
  set_provenance(run, key_compute_capability, std::to_string(device.arch.cc).c_str());
  set_provenance(run, key_num_sms, std::to_string(device.num_sms).c_str());
  set_provenance(run, key_shared_per_sm, std::to_string(device.shared_per_sm_bytes).c_str());
  set_provenance(run, "fulcrum", FULCRUM_VERSION_TEXT);
  const ValueNames families = value_names(Family{});
  for (int32_t family = 0; family < families.count; ++family) {
    const std::string key = std::string(key_revision_prefix) + families.names[family];
    set_provenance(run, key.c_str(), std::to_string(family_revision(static_cast<Family>(family))).c_str());
  }
}

inline void Table::remove_run(const char* run) {
  const auto keep_others = [run](auto& list) {
    size_t kept = 0;
    for (size_t index = 0; index < list.size(); ++index) {
      if (list[index].run != run) std::swap(list[kept++], list[index]);
    }
    list.resize(kept);
  };
  keep_others(rows_);
  keep_others(provenance_);
}

inline void Table::merge(const Table& other) {
  const size_t num_old = rows_.size();
  std::vector<bool> replaced(num_old, false);
  std::vector<std::pair<std::string, std::string>> renamed;  // run of `other`, its name here
  for (const Provenance& line : other.provenance_) {
    bool known = line.run.empty();
    for (const auto& names : renamed) known = known || names.first == line.run;
    if (known) continue;
    std::string name = line.run;
    for (int number = 2; has_run(name); ++number) name = line.run + "-" + std::to_string(number);
    renamed.emplace_back(line.run, name);
  }
  const auto name_here = [&renamed](const std::string& run) {
    for (const auto& names : renamed) {
      if (names.first == run) return names.second;
    }
    return run;
  };
  for (Row row : other.rows_) {
    DeviceKey incoming;
    const bool known = other.run_device(row.run, incoming);
    for (size_t index = 0; index < num_old && known; ++index) {
      DeviceKey device;
      if (detail::same_shape_key(rows_[index].shape, row.shape) && detail::same_point(rows_[index], row) &&
          layout_of(rows_[index].config) == layout_of(row.config) && run_device(rows_[index].run, device) &&
          device == incoming) {
        replaced[index] = true;
      }
    }
    row.run = name_here(row.run);
    rows_.push_back(row);
  }
  for (ForeignRow row : other.foreign_rows_) {
    for (size_t place = 0; place < row.names.size(); ++place) {
      if (row.names[place] == "run") row.cells[place] = name_here(row.cells[place]);
    }
    foreign_rows_.push_back(row);
  }
  for (const Provenance& line : other.provenance_) {
    for (const auto& names : renamed) {
      if (names.first == line.run) set_provenance(names.second.c_str(), line.key.c_str(), line.value.c_str());
    }
  }
  std::vector<Row> kept;
  for (size_t index = 0; index < rows_.size(); ++index) {
    if (index >= num_old || !replaced[index]) kept.push_back(rows_[index]);
  }
  rows_.swap(kept);
}

inline void Table::warn(const std::string& words) {
  for (const std::string& known : warnings_) {
    if (known == words) return;
  }
  warnings_.push_back(words);
}

FULCRUM_NAMESPACE_END
