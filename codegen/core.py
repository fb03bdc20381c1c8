"""What Python knows of fulcrum's core: everything here is asked of the host tool `describe`, nothing is written twice.

Used by render.py and covering.py. A Config is a dict from lever name to value, both text, in the order of levers.def;
its text form is the one that core/config.h parses.
"""

import json
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Verdict:
    """What core says of one (architecture, kind, Config): `reason` is empty when it is legal."""

    reason: str
    text: str = ""  # canonical, all levers
    name: str = ""  # short, fit for symbols; differs for different Configs


class Core:
    """The `describe` executable: levers, kinds, archs and helpers as attributes, verdicts by batch."""

    def __init__(self, describe: str):
        self._describe = describe
        facts = json.loads(subprocess.run([describe], check=True, capture_output=True, text=True).stdout)
        self.levers = facts["levers"]
        self.kinds = {kind["name"]: kind for kind in facts["kinds"]}
        self.archs = {arch["cc"]: arch["name"] for arch in facts["archs"]}
        self.helpers = facts["helpers"]

    def check(self, queries: list[tuple[int, str, str]]) -> list[Verdict]:
        """Verdicts for (compute capability, kind name, Config text), in one process however many there are."""
        lines = "".join(f"{cc}\t{kind}\t{text}\n" for cc, kind, text in queries)
        answers = subprocess.run([self._describe, "--check"], input=lines, check=True, capture_output=True, text=True)
        return [Verdict(*line.split("\t")) for line in answers.stdout.splitlines()]


def config_text(config: dict[str, str]) -> str:
    return ",".join(f"{lever}={value}" for lever, value in config.items())


def parse_config_text(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(","))


def load_space(path: Path, core: Core) -> dict[str, dict[str, list[str]]]:
    """space.toml as {family: {lever: values}}, every lever in the order of levers.def and every value as text.

    Raises ValueError with the family and the lever when a lever is unknown, missing, lacks its default or has values
    that core does not know.
    """
    space = {}
    for family, listed in tomllib.loads(path.read_text()).items():
        unknown = listed.keys() - {lever["name"] for lever in core.levers}
        if unknown:
            raise ValueError(f"{path.name}: [{family}] has no lever {', '.join(sorted(unknown))}")
        space[family] = {}
        for lever in core.levers:
            name = lever["name"]
            values = [str(value) for value in ([family] if name == "family" else listed.get(name, []))]
            where = f"{path.name}: [{family}] {name}"
            if name != "family" and len(set(values)) < 2:
                raise ValueError(f"{where} needs at least two values")
            if name != "family" and lever["default"] not in values:
                raise ValueError(f"{where} lacks the default, {lever['default']}")
            for value in values:
                if not (value in lever["names"] if lever["names"] else value.isdigit()):
                    raise ValueError(f"{where} cannot be {value}")
            space[family][name] = values
    return space
