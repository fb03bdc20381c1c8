"""Best-config tables (bench/tables/*.tsv, or an engine's own) as codegen needs them: which Configs for which kernels.

Used by render.py. Only the columns `shape` and `config` are read; what else a row says is the C++ library's business.
"""

from dataclasses import dataclass
from pathlib import Path

from core import Core


@dataclass(frozen=True)
class Kernel:
    """One Config for one kernel kind, as core writes them."""

    name: str  # of the Config
    text: str  # canonical
    kind: str


def kind_of_shape(shape: str, core: Core) -> str:
    """The kernel kind of a shape's text "projection=gate_up,n=1280,...,dtype=f16,activation=silu"; KeyError if none."""
    key = dict(part.split("=", 1) for part in shape.split(","))
    for name, kind in core.kinds.items():
        if (kind["dtype"], kind["gate_up"], kind["activation"]) == (
            key["dtype"], key["projection"] == "gate_up", key["activation"]):  # fmt: skip
            return name
    raise KeyError("no kernel kind fits this shape")


def read_table(path: Path, core: Core, ccs: list[int]) -> list[Kernel]:
    """The distinct kernels of a table, in order of appearance, each legal on all of `ccs` (none: legal or not).

    Raises ValueError that names the file and the line: no such column, a shape or Config that does not parse, or one
    that is illegal on one of the architectures.
    """
    header, places, queries = None, [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if header is None:
            header = cells
            for column in ("shape", "config"):
                if column not in header:
                    raise ValueError(f"{path}:{number}: there is no column {column}")
            continue
        try:
            shape, text = cells[header.index("shape")], cells[header.index("config")]
            kind = kind_of_shape(shape, core)
        except (IndexError, KeyError, ValueError) as error:
            raise ValueError(f"{path}:{number}: not a row with a shape and a config ({error})") from error
        for cc in ccs or [0]:
            places.append(number)
            queries.append((cc, kind, text))
    kernels = {}
    for number, (cc, kind, _), verdict in zip(places, queries, core.check(queries)):
        if not verdict.text:
            raise ValueError(f"{path}:{number}: {verdict.reason} in the config")
        if verdict.reason and ccs:
            raise ValueError(f"{path}:{number}: illegal for {core.archs.get(cc, cc)}: {verdict.reason}")
        kernels[Kernel(verdict.name, verdict.text, kind)] = None
    return list(kernels)
