#!/usr/bin/env python3
"""Fails when a function of include/fulcrum/ptx has no twin of its name in the emulator.  usage: twins.py CHECKOUT"""

import re
import sys
from pathlib import Path

FUNCTION = re.compile(r"^FULCRUM_DEVICE [\w:<>*& ]*?\b(\w+)\(", re.MULTILINE)


def functions(path: Path) -> set[str]:
    """The names that a header defines in namespace ptx; the addresses' own members stand outside of it."""
    _, begin, body = path.read_text().partition("namespace ptx {")
    return set(FUNCTION.findall(body)) if begin else set()


def main(checkout: Path) -> int:
    missing = []
    for header in sorted((checkout / "include/fulcrum/ptx").glob("*.cuh")):
        twin = checkout / "tools/emulator/include/fulcrum/ptx" / header.name
        have = functions(twin) if twin.is_file() else set()
        missing += [f"{header.name}: {name}" for name in sorted(functions(header) - have)]
    for line in missing:
        print(f"twins: {line} has no twin in tools/emulator/include/fulcrum/ptx", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
