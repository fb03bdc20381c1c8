#!/usr/bin/env python3
"""Plants the faults of planted_faults.toml in the kernels, one at a time, and has the emulator's tests find each.

    planted_faults.py --tests BUILD/bin/emulator_tests [--only NAME]

A fault is planted in a copy of include/, which the tests compile variants from, so nothing is built and the checkout
stays as it is. Invariant: exit code 0 means that every test passed without a fault, and that each fault was found the
way it is expected to be: a compiler's error, a timeout or another report is a failure here.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
HOW_CHARACTERS = 110  # of a report in the table


@dataclasses.dataclass(frozen=True)
class Fault:
    """An entry of planted_faults.toml, whose head says what each field is."""

    name: str
    file: str
    find: str
    replace: str
    case: str
    caught_by: str
    why: str

    def plant(self, include: Path) -> str:
        """Changes the file under `include`; returns what is in the way, or ""."""
        path = include / self.file
        text = path.read_text() if path.is_file() else ""
        places = text.count(self.find)
        if places != 1:
            return f"{self.file} has {places} places with the text to replace"
        path.write_text(text.replace(self.find, self.replace))
        return ""


@dataclasses.dataclass(frozen=True)
class Row:
    """What became of a fault, or of a test without one."""

    name: str
    verdict: str
    how: str
    seconds: float
    good: bool


class Progress:
    """A line that is drawn over itself, where somebody looks."""

    def __init__(self, total: int):
        self.total, self.done, self.shown = total, 0, sys.stderr.isatty()

    def step(self, row: Row) -> None:
        self.done += 1
        if self.shown:
            print(f"\r\033[K{self.done}/{self.total} {row.name}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Runner:
    """Runs a test case of the emulator on a checkout's twins and some include folder."""

    def __init__(self, arguments: argparse.Namespace):
        self.tests, self.seeds, self.timeout = arguments.tests.resolve(), arguments.seeds, arguments.timeout
        listing = subprocess.run([self.tests, "--list_content"], capture_output=True, text=True, check=True)
        self.names = re.findall(r"^ +(\w+)", listing.stdout + listing.stderr, re.MULTILINE)

    def find_case(self, pattern: str) -> str:
        """The first test whose name the pattern is found in."""
        for name in self.names:
            if re.search(pattern, name):
                return name
        raise ValueError(f"no test of {self.tests} has a name with '{pattern}'")

    def run(self, case: str, include: Path, cache: Path) -> tuple[int | None, str]:
        """The exit code, None past the time limit, and what was printed."""
        environment = os.environ | {
            "FULCRUM_EMULATOR_PATH": f"{CHECKOUT / 'tools/emulator/include'}:{include}",
            "FULCRUM_CACHE_DIR": str(cache),
            "FULCRUM_EMULATOR_SEEDS": self.seeds,
        }
        command = [self.tests, f"--run_test=*/{case}", "--color_output=no"]
        try:
            done = subprocess.run(command, env=environment, timeout=self.timeout, text=True,
                                  errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout

    def check_sound(self, case: str) -> Row:
        """The test without a fault."""
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="planted-") as folder:
            code, output = self.run(case, CHECKOUT / "include", Path(folder))
        how = "" if code == 0 else f"ran past {self.timeout:g} s" if code is None else report_of(output)
        return Row(case, "passes" if code == 0 else "FAILS", how, time.monotonic() - begin, code == 0)

    def check_fault(self, fault: Fault) -> Row:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="planted-") as folder:
            include, cache = Path(folder) / "include", Path(folder) / "cache"
            shutil.copytree(CHECKOUT / "include", include)
            cache.mkdir()
            problem = fault.plant(include)
            code, output = (0, "") if problem else self.run(self.find_case(fault.case), include, cache)
        verdict, how = ("NOT APPLIED", problem) if problem else self.judge(fault, code, output)
        return Row(fault.name, verdict, how, time.monotonic() - begin, verdict == "caught")

    def judge(self, fault: Fault, code: int | None, output: str) -> tuple[str, str]:
        if code is None:
            return "NOT CAUGHT", f"ran past {self.timeout:g} s"
        if code == 0:
            return "NOT CAUGHT", "the test passes"
        if "compile error:" in output:
            first = re.search(r"first error: (.*)", output)
            return "NOT COMPILED", first.group(1) if first else report_of(output)
        report = report_of(output)
        if re.search(fault.caught_by, report) is None:
            return "CAUGHT OTHERWISE", f"{report}, not: {fault.caught_by}"
        return "caught", report


def report_of(output: str) -> str:
    """What a failed test says, without the names of the test and the kernel."""
    error = re.search(r"error: in \"[^\"]*\": (.*(?:\n .*)*)", output)
    words = " ".join((error.group(1) if error else output.strip() or "it ended without a word").split())
    return re.sub(r"^(?:[\w:]+: )?(?:.*the emulated kernel is wrong: \w+: )?", "", words)


def shorten(text: str) -> str:
    return text if len(text) <= HOW_CHARACTERS else text[: HOW_CHARACTERS - 3] + "..."


def load_faults(path: Path) -> list[Fault]:
    with path.open("rb") as file:
        faults = [Fault(**entry) for entry in tomllib.load(file)["fault"]]
    names = [fault.name for fault in faults]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path} has more than one fault of the name {', '.join(twice)}")
    return faults


def run_all(jobs: int, work: list, function) -> list[Row]:
    """Rows in the order of the work, printed as they come."""
    progress, rows = Progress(len(work)), []
    width = max(len(getattr(each, "name", each)) for each in work)

    def one(each) -> Row:
        row = function(each)
        progress.step(row)
        return row

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for row in pool.map(one, work):
            progress.clear()
            how = shorten(row.how) if row.good else row.how
            print(f"{row.name:{width}}  {row.verdict:10}  {row.seconds:5.1f} s  {how}", flush=True)
            rows.append(row)
    progress.clear()
    return rows


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=Path, default=CHECKOUT / "build/bin/emulator_tests",
                        help="the program of the emulator's tests")  # fmt: skip
    parser.add_argument("--only", metavar="NAME", action="append", help="only this fault; may be given several times")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="tests at a time")
    parser.add_argument("--seeds", default="1:2", metavar="FIRST:LAST", help="of the emulator's schedules")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="for one test")
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    faults = load_faults(HERE / "planted_faults.toml")
    if arguments.only:
        missing = sorted(set(arguments.only) - {fault.name for fault in faults})
        if missing:
            raise ValueError(f"there is no fault named {', '.join(missing)}; --list names them")
        faults = [fault for fault in faults if fault.name in arguments.only]
    if arguments.list:
        for fault in faults:
            print(f"{fault.name}  ({fault.file})\n    {fault.why}")
        return 0
    if not arguments.tests.is_file():
        raise ValueError(f"{arguments.tests} is not there; build the target emulator_tests, or name it with --tests")
    begin = time.monotonic()
    runner = Runner(arguments)
    cases = list(dict.fromkeys(runner.find_case(fault.case) for fault in faults))
    print("Without a fault:")
    if not all(row.good for row in run_all(arguments.jobs, cases, runner.check_sound)):
        raise ValueError("a test fails without a planted fault")
    print("\nWith one:")
    rows = run_all(arguments.jobs, faults, runner.check_fault)
    bad = [row.name for row in rows if not row.good]
    print(f"\n{len(rows) - len(bad)} of {len(rows)} faults caught in {time.monotonic() - begin:.0f} s"
          + (f"; look at {', '.join(bad)}" if bad else ""))  # fmt: skip
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"planted_faults: {error}")
