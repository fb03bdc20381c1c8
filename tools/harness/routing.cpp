// The text form of routings and what all kinds share: checks, weights, identity.
//
// Called by the verbs, the tuner, bench and the tests. Invariant: see routing.hpp.
#include "harness/routing.hpp"

#include <fulcrum/host/hash.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>

#include "harness/input_error.hpp"
#include "harness/random.hpp"
#include "harness/routing_builtin.hpp"

namespace fulcrum::harness {
namespace {

struct KindName {
  RoutingKind kind;
  std::string_view name;
  std::string_view options;  // comma after each
};
constexpr std::array kind_names{
    KindName{RoutingKind::probe, "probe", ""},
    KindName{RoutingKind::receipt, "receipt", "seed,"},
    KindName{RoutingKind::decode, "decode", ""},
    KindName{RoutingKind::uniform, "uniform", "seed,"},
    KindName{RoutingKind::one_hot, "one_hot", "expert,"},
    KindName{RoutingKind::trace, "trace", "layer,seed,runs,"},
};

const KindName& kind_name(RoutingKind kind) {
  return *std::find_if(kind_names.begin(), kind_names.end(), [&](const KindName& each) { return each.kind == kind; });
}

bool takes_option(const KindName& kind, std::string_view key) {
  return !key.empty() && key.find(',') == key.npos && kind.options.find(fmt::format("{},", key)) != kind.options.npos;
}

template <class Number>
Number parse_number(std::string_view key, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    throw InputError(fmt::format("routing option {}={} is not a whole number in range", key, text));
  }
  return number;
}

void set_option(RoutingSpec& spec, std::string_view key, std::string_view value) {
  if (key == "layer") spec.layer = parse_number<uint32_t>(key, value);
  if (key == "seed") spec.seed = parse_number<uint64_t>(key, value);
  if (key == "expert") spec.expert = parse_number<uint32_t>(key, value);
  if (key == "runs") {
    spec.runs = parse_number<uint32_t>(key, value);
    if (spec.runs == 0) throw InputError("routing option runs=0 makes no batch; the least is 1");
  }
}

// Takes `:key=value` options off the end of `rest`, so that what is left may hold colons itself.
void take_options(RoutingSpec& spec, const KindName& kind, std::string_view& rest) {
  for (;;) {
    const size_t colon = rest.rfind(':');
    if (colon == rest.npos) return;
    const std::string_view option = rest.substr(colon + 1);
    const size_t equals = option.find('=');
    if (equals == option.npos || !takes_option(kind, option.substr(0, equals))) return;
    set_option(spec, option.substr(0, equals), option.substr(equals + 1));
    rest = rest.substr(0, colon);
  }
}

void check_size(const RoutingSpec& spec, const RoutingSize& size) {
  if (size.top_k < 1 || size.top_k > 32) throw InputError(fmt::format("top_k is {}; it must be 1 to 32", size.top_k));
  if (size.experts < size.top_k) {
    throw InputError(fmt::format("{} experts cannot give {} distinct choices a token; lower top_k or raise experts",
                                 size.experts, size.top_k));
  }
  if (spec.kind == RoutingKind::one_hot && spec.expert >= size.experts) {
    throw InputError(fmt::format("routing option expert={} must be below the {} experts", spec.expert, size.experts));
  }
}

// Positive weights that fall in the order of choice and sum to 1, as a renormalized softmax gives them.
void fill_weights(Routing& routing, uint64_t seed) {
  Random random(seed ^ 0x7765696768747321u);  // apart from the draws of ids, which use the seed itself
  routing.weights.assign(routing.ids.size(), 0.0f);
  for (size_t begin = 0; begin < routing.ids.size(); begin += routing.top_k) {
    std::array<float, 32> scores;
    for (uint32_t c = 0; c < routing.top_k; ++c) scores[c] = static_cast<float>(random.unit());
    std::sort(scores.begin(), scores.begin() + routing.top_k, std::greater<>());
    float sum = 0.0f;
    for (uint32_t c = 0; c < routing.top_k; ++c) sum += routing.ids[begin + c] < 0 ? 0.0f : scores[c];
    for (uint32_t c = 0; c < routing.top_k; ++c) {
      if (routing.ids[begin + c] >= 0) routing.weights[begin + c] = scores[c] / sum;
    }
  }
}

Routing finish(const RoutingSpec& spec, const RoutingSize& size, std::vector<int32_t> ids) {
  Routing routing{size.experts, size.top_k, size.tokens, std::move(ids), {}, spec_text(spec)};
  fill_weights(routing, spec.seed);
  return routing;
}

std::vector<Routing> trace_routings(const RoutingSpec& spec, RoutingSize size, uint32_t count, TraceReport* report) {
  TraceSample sample = sample_trace({spec.path, spec.layer, spec.seed, spec.runs, count, size});
  size.experts = sample.report.experts;
  size.top_k = sample.report.top_k;
  check_size(spec, size);
  RoutingSpec each = spec;
  each.layer = sample.report.layer;  // so that the name says which layer it was
  std::vector<Routing> routings;
  for (std::vector<int32_t>& ids : sample.batches) {
    routings.push_back(finish(each, size, std::move(ids)));
    ++each.seed;
  }
  if (report != nullptr) *report = sample.report;
  return routings;
}

std::vector<int32_t> builtin_ids(const RoutingSpec& spec, const RoutingSize& size) {
  switch (spec.kind) {
    case RoutingKind::probe: return probe_ids(size);
    case RoutingKind::receipt: return receipt_ids(size, spec.seed);
    case RoutingKind::decode: return decode_ids(size);
    case RoutingKind::uniform: return uniform_ids(size, spec.seed);
    case RoutingKind::one_hot: return one_hot_ids(size, spec.expert);
    case RoutingKind::trace: break;  // make_routings() reads the file
  }
  return {};
}

}  // namespace

RoutingSpec parse_routing_spec(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const auto kind =
      std::find_if(kind_names.begin(), kind_names.end(), [&](const KindName& k) { return k.name == name; });
  if (kind == kind_names.end()) {
    throw InputError(fmt::format(
        "routing '{}' is not one of probe, receipt, decode, uniform, one_hot, trace:PATH[:layer=L][:seed=S][:runs=R]",
        text));
  }
  RoutingSpec spec;
  spec.kind = kind->kind;
  std::string_view rest = text.substr(name.size());
  take_options(spec, *kind, rest);
  if (spec.kind == RoutingKind::trace) {
    if (rest.size() < 2) throw InputError("routing 'trace' needs a file: trace:PATH[:layer=L][:seed=S][:runs=R]");
    spec.path = rest.substr(1);
    if (std::any_of(rest.begin(), rest.end(),
                    [](char letter) { return std::iscntrl(static_cast<unsigned char>(letter)); }))
      throw InputError("the file's name after 'trace:' has a control character, which no table could hold; rename it");
  } else if (!rest.empty()) {
    throw InputError(fmt::format("routing '{}' has no option '{}'", name, rest.substr(1)));
  }
  return spec;
}

std::string spec_text(const RoutingSpec& spec) {
  const KindName& kind = kind_name(spec.kind);
  std::string text(kind.name);
  if (spec.kind == RoutingKind::trace) text += ":" + spec.path;
  if (spec.layer) text += fmt::format(":layer={}", *spec.layer);
  if (takes_option(kind, "seed") && spec.seed != 0) text += fmt::format(":seed={}", spec.seed);
  if (spec.runs != 1) text += fmt::format(":runs={}", spec.runs);
  if (spec.expert != 0) text += fmt::format(":expert={}", spec.expert);
  return text;
}

std::vector<Routing> make_routings(const RoutingSpec& spec, RoutingSize size, uint32_t count, TraceReport* report) {
  if (size.tokens > most_tokens) {
    throw InputError(
        fmt::format("{} tokens are more than the {} a batch can have; split the batch", size.tokens, most_tokens));
  }
  if (spec.kind == RoutingKind::trace) return trace_routings(spec, size, count, report);
  check_size(spec, size);
  std::vector<Routing> routings;
  RoutingSpec each = spec;
  for (uint32_t i = 0; i < count; ++i, ++each.seed) routings.push_back(finish(each, size, builtin_ids(each, size)));
  return routings;
}

Routing make_routing(const RoutingSpec& spec, RoutingSize size, TraceReport* report) {
  return std::move(make_routings(spec, size, 1, report).front());
}

uint64_t routing_hash(const Routing& routing) {
  Fnv64 hash;
  const auto add = [&](uint32_t word) { hash.update(&word, sizeof word); };
  add(routing.experts);
  add(routing.top_k);
  add(routing.tokens);
  for (const int32_t id : routing.ids) add(static_cast<uint32_t>(id));
  return hash.value();
}

Routing permute_tokens(const Routing& routing, const std::vector<uint32_t>& order) {
  Routing permuted = routing;
  for (size_t token = 0; token < order.size(); ++token) {
    const size_t from = size_t{order[token]} * routing.top_k;
    const auto to = static_cast<std::ptrdiff_t>(token * routing.top_k);
    std::copy_n(&routing.ids[from], routing.top_k, permuted.ids.begin() + to);
    std::copy_n(&routing.weights[from], routing.top_k, permuted.weights.begin() + to);
  }
  return permuted;
}

}  // namespace fulcrum::harness
