#!/usr/bin/env python3
"""Prints what must happen with odd input, row by row with its tests.  usage: behaviour.py CHECKOUT

Reads tests/behaviour.toml. Fails when a row or a statement has no test, when a test that is named is not in the sources,
or when a text that is quoted is not in its file. A `gap` says what no test shows; it is printed, and does not excuse a
statement from having a test unless it stands for the whole of it.
"""

import re
import sys
import tomllib
from pathlib import Path

SUITE = re.compile(r"^BOOST_AUTO_TEST_(SUITE|CASE)\(\s*(\w+)|^BOOST_AUTO_TEST_(SUITE_END)", re.MULTILINE)
CTEST = re.compile(r"add_test\(NAME ([\w.]+)")
KEYS = {"what", "tests", "says", "gap"}


def cases(path: Path) -> set[str]:
    """The "suite/case" names of one source file; suites do not nest."""
    names, suite = set(), None
    for match in SUITE.finditer(path.read_text()):
        kind, name, end = match.groups()
        if end:
            suite = None
        elif kind == "SUITE":
            suite = name
        else:
            names.add(f"{suite}/{name}")
    return names


def known_tests(checkout: Path) -> set[str]:
    tests = checkout / "tests"
    names = set().union(*(cases(path) for folder in ("unit", "device") for path in (tests / folder).glob("*.cpp")))
    for path in tests.rglob("CMakeLists.txt"):
        names.update(CTEST.findall(path.read_text()))
    return names


def is_quoted(checkout: Path, quote: list[str]) -> bool:
    path, words = quote
    text = re.sub(r"\s*\n\s*(?:///?|#|\*)?\s*", " ", (checkout / path).read_text())  # over the ends of comment lines
    return words in text


def faults_of(checkout: Path, statement: dict, known: set[str]) -> list[str]:
    faults = [f"has the key '{key}', which nobody reads" for key in sorted(statement.keys() - KEYS)]
    tests = statement.get("tests", [])
    if not (tests or "says" in statement or "gap" in statement):
        faults.append("has no test")
    faults += [f"names {name}, which is not there" for name in tests if name not in known]
    if "says" in statement and not is_quoted(checkout, statement["says"]):
        faults.append("quotes {}, which does not say: {}".format(*statement["says"]))
    return faults


def main(checkout: Path) -> int:
    rows = tomllib.loads((checkout / "tests/behaviour.toml").read_text())["row"]
    known = known_tests(checkout)
    faults, gaps, used = [], 0, set()
    for row in rows:
        print(f"\n{row['area']}")
        if not any(statement.get("tests") for statement in row["must"]):
            faults.append(f"{row['area']} has no test")
        for statement in row["must"]:
            print(f"  {statement['what']}")
            for name in statement.get("tests", []):
                print(f"      {name}")
            if "says" in statement:
                print("      {} says: {}".format(*statement["says"]))
            if "gap" in statement:
                print(f"      GAP: {statement['gap']}")
                gaps += 1
            used.update(statement.get("tests", []))
            faults += [f"{row['area']}: '{statement['what']}' {each}" for each in faults_of(checkout, statement, known)]
    print(f"\n{len(rows)} rows, {sum(len(row['must']) for row in rows)} statements, {len(used)} tests, {gaps} gaps")
    for fault in faults:
        print(f"behaviour: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
