// Which experts each token of a batch chose: the one input that tune, probe, bench and the tests all share.
//
// parse_routing_spec() reads what a user names on the command line, make_routing() builds it for a batch size.
// Invariant: a Routing is a pure function of its spec, its size and (for a trace) the file's bytes; except where a
// trace says otherwise, the ids of a token are distinct and in [0, experts).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/trace.hpp"

namespace fulcrum::harness {

inline constexpr uint32_t most_tokens = 131072;  // of a batch: 128 Ki, as far as the tests go

struct Routing {
  uint32_t experts = 0;  // size of the global id space
  uint32_t top_k = 0;    // choices of a token
  uint32_t tokens = 0;
  std::vector<int32_t> ids;    // [tokens][top_k] in the order of choice; -1: no expert
  std::vector<float> weights;  // [tokens][top_k], descending, a token's sum is 1; 0 where the id is -1
  std::string name;            // the spec that made it, canonical

  uint64_t num_pairs() const { return uint64_t{tokens} * top_k; }
};

// The experts [first, first + count) that one rank of an expert-parallel group owns.
struct ExpertRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

enum class RoutingKind : uint8_t { probe, receipt, decode, uniform, one_hot, trace };

// probe | receipt[:seed=S] | decode | uniform[:seed=S] | one_hot[:expert=E] | trace:PATH[:layer=L][:seed=S][:runs=R]
struct RoutingSpec {
  RoutingKind kind = RoutingKind::probe;
  std::string path;               // trace: the file
  std::optional<uint32_t> layer;  // trace: the first layer of the file when absent
  uint64_t seed = 0;              // of what is drawn; probe, decode and one_hot draw nothing
  uint32_t runs = 1;              // trace: contiguous runs of tokens that make up a batch
  uint32_t expert = 0;            // one_hot: the first of the top_k experts that every token names
};

// Reads the text form; throws InputError that names the word it does not know. A colon may occur in PATH: only
// trailing `:key=value` parts with a known key are options.
RoutingSpec parse_routing_spec(std::string_view text);

// The canonical text; parse_routing_spec(spec_text(spec)) gives the same spec.
std::string spec_text(const RoutingSpec& spec);

// One batch. size.tokens is 0 .. most_tokens. For a trace, size.experts or size.top_k of 0 takes what the file has;
// `report`, when given, receives what the reader saw. Throws InputError where the size cannot be met.
Routing make_routing(const RoutingSpec& spec, RoutingSize size, TraceReport* report = nullptr);

// `count` batches in one pass over a trace; batch i equals make_routing() with seed + i.
std::vector<Routing> make_routings(const RoutingSpec& spec, RoutingSize size, uint32_t count,
                                   TraceReport* report = nullptr);

// Identity of a routing for records: FNV-1a over experts, top_k, tokens and ids (the weights change no work).
uint64_t routing_hash(const Routing& routing);

// The same tokens in another order: token t of the result is token order[t] of `routing`.
Routing permute_tokens(const Routing& routing, const std::vector<uint32_t>& order);

}  // namespace fulcrum::harness
