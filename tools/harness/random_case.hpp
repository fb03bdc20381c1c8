// Any legal variant on any legal problem, drawn from a seed.
//
// Called by the tests that run thousands of them, on a GPU and on the emulator, and by those of the space.
// Invariant: a seed means the same case everywhere, so the seed of a failure runs it again. Seeds of one hundred have
// the same variant, since compiling one takes longer than checking it.
#pragma once

#include <string>

#include "harness/cases.hpp"
#include "harness/random.hpp"

namespace fulcrum::harness {

// Any point of the space, legal or not.
Config random_config(Random& random);

struct RandomVariant {
  Config config;
  KernelKind kind;
};

inline constexpr uint64_t seeds_per_variant = 100;

// The variant of a seed, legal on `arch`.
RandomVariant random_variant(uint64_t seed, Arch arch);

// A problem for it: tails of n and k, 0 to 40 tokens (GPU: up to 400), 1 to 1,024 experts of which a rank has some or
// all, ids that repeat, are missing (-1) or another rank's, popular experts, both formats, scales of every byte that a
// checkpoint may hold, rows in any order with and without gaps, and factors.
Problem random_problem(uint64_t seed, const RandomVariant& variant, CaseSize size);

// Seeds first .. last, as a text gives them: "7" or "0:199". Throws InputError.
struct SeedRange {
  uint64_t first = 0, last = 0;
};
SeedRange parse_seeds(const std::string& text);

}  // namespace fulcrum::harness
