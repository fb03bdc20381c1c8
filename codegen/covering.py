"""The regression set: few Configs in which every lever value and every legal pair of lever values occurs.

Used by render.py. A greedy covering array over the space's levers and the kernel kind as one more factor; legality is
core's. Invariant: the same space and rules give the same set, on every machine.
"""

import random
from itertools import combinations

from core import Core, config_text

# A pair counts as legal when a legal point that holds it was found: among so many random ones, or among so many made
# for this pair in each round of PairCover.find_pool.
POOL_DRAWS = 20_000
PAIR_DRAWS = 500
CANDIDATES = 300  # legal points compared for each place in the set
MUTATIONS = 200  # neighbours of the best of them
KIND = "kind"  # the factor that is no lever

Point = dict[str, str]


class PairCover:
    """Finds legal points of one family's factors and chooses those that cover all pairs."""

    def __init__(self, core: Core, factors: dict[str, list[str]], cc: int):
        self.core, self.factors, self.cc = core, factors, cc
        self.random = random.Random(20)
        self.numbers = {}  # (factor, value) -> small number; a pair of them is one int
        for factor, values in factors.items():
            for value in values:
                self.numbers[factor, value] = len(self.numbers)

    def pairs(self, point: Point) -> list[int]:
        """The pairs of the space that a point holds; a table's Config may have values beside the space's."""
        size = len(self.numbers)
        numbers = [self.numbers[item] for item in point.items() if item in self.numbers]
        return [a * size + b for a, b in combinations(numbers, 2)]

    def legal(self, points: list[Point]) -> list[Point]:
        queries = []
        for point in points:
            levers = {factor: value for factor, value in point.items() if factor != KIND}
            queries.append((self.cc, point[KIND], config_text(levers)))
        return [point for point, verdict in zip(points, self.core.check(queries)) if not verdict.reason]

    def draw(self) -> Point:
        return {factor: self.random.choice(values) for factor, values in self.factors.items()}

    def mutate(self, point: Point, count: int) -> Point:
        changed = self.random.sample(list(self.factors), count)
        return point | {factor: self.random.choice(self.factors[factor]) for factor in changed}

    def all_pairs(self) -> dict[int, Point]:
        """Every pair of values of two factors, as number -> the two settings."""
        pairs = {}
        for (f, g) in combinations(self.factors, 2):
            for v in self.factors[f]:
                for w in self.factors[g]:
                    pairs[self.numbers[f, v] * len(self.numbers) + self.numbers[g, w]] = {f: v, g: w}
        return pairs

    def find_pool(self, known: list[Point]) -> list[Point]:
        """Legal points that hold every pair for which one could be found: random ones, then neighbours of legal points
        that hold one half of a missing pair, again and again until a round finds nothing new."""
        pool = known + self.legal([self.draw() for _ in range(POOL_DRAWS)])
        pairs = self.all_pairs()
        missing = pairs.keys() - {pair for point in pool for pair in self.pairs(point)}
        while missing:
            holders: dict[tuple[str, str], list[Point]] = {}
            for point in pool:
                for item in point.items():
                    holders.setdefault(item, []).append(point)
            tries = []
            for setting in [pairs[pair] for pair in sorted(missing)]:
                starts = [point for item in setting.items() for point in holders.get(item, [])] or pool
                tries += [self.mutate(self.random.choice(starts), 1 + i % 6) | setting for i in range(PAIR_DRAWS)]
            found = self.legal(tries)
            still = missing - {pair for point in found for pair in self.pairs(point)}
            pool += found
            if still == missing:
                break
            missing = still
        return pool

    def choose(self, known: list[Point]) -> list[Point]:
        """The points of `known` that are legal, then as many more as it takes to cover all legal pairs."""
        chosen = self.legal(known)
        pool = self.find_pool(chosen)
        holders: dict[int, list[int]] = {}  # pair -> places in the pool
        for place, point in enumerate(pool):
            for pair in self.pairs(point):
                holders.setdefault(pair, []).append(place)
        uncovered = set(holders) - {pair for point in chosen for pair in self.pairs(point)}
        settings = self.all_pairs()
        rarest = sorted(uncovered, key=lambda pair: (len(holders[pair]), pair))
        for pair in rarest:
            if pair in uncovered:
                places = holders[pair]
                candidates = [pool[p] for p in self.random.sample(places, min(CANDIDATES, len(places)))]
                best = self.best_point(candidates, settings[pair], uncovered)
                chosen.append(best)
                uncovered -= set(self.pairs(best))
        return chosen

    def best_point(self, candidates: list[Point], setting: Point, uncovered: set[int]) -> Point:
        """The candidate that covers most, improved by changing one to four factors at a time; all hold `setting`."""

        def gain(point: Point) -> int:
            return sum(pair in uncovered for pair in self.pairs(point))

        best = max(candidates, key=gain)
        while True:
            near = self.legal([self.mutate(best, 1 + i % 4) | setting for i in range(MUTATIONS)])
            better = max(near, key=gain, default=best)
            if gain(better) <= gain(best):
                return best
            best = better
