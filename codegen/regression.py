"""Which variants "every variant" in a test means: the regression set, and what of it each tier takes.

Used by render.py. The set holds every default, every Config of a committed table, and a covering array over the space
(covering.py), so it grows by itself with the space and the tables.
"""

from covering import KIND, PairCover
from core import Core, parse_config_text
from tables import Kernel

WIDEST_CC = 90  # no architecture so far allows a Config that this one refuses
OLDEST_CC = 80


def regression_set(core: Core, space: dict[str, dict[str, list[str]]], tables: list[Kernel]) -> list[Kernel]:
    """The distinct kernels of the set, defaults first. A table's row that became illegal is in it: its test fails."""
    known = [
        parse_config_text(text) | {KIND: name}
        for name, kind in core.kinds.items()
        for text in dict.fromkeys(kind["defaults"].values())
    ]
    listed = dict.fromkeys(tables)
    known += [parse_config_text(kernel.text) | {KIND: kernel.kind} for kernel in tables]
    chosen = []
    for family, levers in space.items():
        own = [point for point in known if point["family"] == family]
        chosen += PairCover(core, levers | {KIND: list(core.kinds)}, WIDEST_CC).choose(own)
    queries = [
        (WIDEST_CC, point[KIND], ",".join(f"{lever['name']}={point[lever['name']]}" for lever in core.levers))
        for point in chosen
    ]
    kernels = [
        Kernel(verdict.name, verdict.text, kind) for (_, kind, _), verdict in zip(queries, core.check(queries))
    ]
    return list(dict.fromkeys([*kernels, *listed]))


def device_code(core: Core, kernels: list[Kernel]) -> list[Kernel]:
    """The same without what only run levers tell apart: one entry for each piece of machine code."""
    run_levers = {lever["name"]: lever["default"] for lever in core.levers if lever["kind"] == "run"}
    queries = []
    for kernel in kernels:
        config = parse_config_text(kernel.text) | run_levers
        queries.append((WIDEST_CC, kernel.kind, ",".join(f"{name}={value}" for name, value in config.items())))
    verdicts = core.check(queries)
    return list(dict.fromkeys(Kernel(v.name, v.text, k.kind) for v, k in zip(verdicts, kernels)))


def emulator_set(core: Core, variants: list[Kernel], num_shards: int) -> list[list[Kernel]]:
    """Shards of the set, those of one kind and tile_m together: they share problems and expected results."""
    kernels = sorted(device_code(core, variants), key=lambda k: (k.kind, int(parse_config_text(k.text)["tile_m"])))
    ends = [len(kernels) * shard // num_shards for shard in range(num_shards + 1)]
    return [kernels[begin:end] for begin, end in zip(ends, ends[1:])]


def compile_set(core: Core, variants: list[Kernel], num_shards: int) -> list[list[tuple[Kernel, int]]]:
    """Shards of (kernel, compute capability): the whole set for the widest and the oldest architecture, as far as it is
    legal there, and its defaults for every other."""
    jobs = []
    kernels = device_code(core, variants)
    for cc in core.archs:
        defaults = {(name, kind["defaults"][str(cc)]) for name, kind in core.kinds.items()}
        verdicts = core.check([(cc, kernel.kind, kernel.text) for kernel in kernels])
        for kernel, verdict in zip(kernels, verdicts):
            if not verdict.reason and (cc in (WIDEST_CC, OLDEST_CC) or (kernel.kind, kernel.text) in defaults):
                jobs.append((kernel, cc))
    return [jobs[shard::num_shards] for shard in range(num_shards)]
