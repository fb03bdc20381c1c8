#!/usr/bin/env python3
"""Plants the faults of planted_faults.toml in the kernels, one at a time, and has the emulator find each.

    planted_faults.py --bin BUILD/bin [--only NAME]

A fault is planted in a copy of include/, which the emulator compiles variants from, so nothing is built and the
checkout stays as it is. Invariant: exit code 0 means that every variant and test passed without a fault, and that each
fault was found the way it is expected to be: a compiler's error, a timeout or another report is a failure here.
"""

import argparse
import concurrent.futures
import dataclasses
import json
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
PROGRAMS = ("fulcrum_emulator", "emulator_tests")
HOW_CHARACTERS = 110  # of a report in the table


@dataclasses.dataclass(frozen=True)
class Fault:
    """An entry of planted_faults.toml, whose head says what each field is."""

    name: str
    file: str
    find: str
    replace: str
    caught_by: str
    why: str
    variant: str = ""
    case: str = ""

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
    """Runs a variant, or a test case of the emulator, on a checkout's twins and some include folder."""

    def __init__(self, arguments: argparse.Namespace, variants: dict[str, dict]):
        self.variants, self.seeds, self.timeout = variants, arguments.seeds, arguments.timeout
        self.worker, self.tests = (arguments.bin.resolve() / name for name in PROGRAMS)
        listing = subprocess.run([self.tests, "--list_content"], capture_output=True, text=True, check=True)
        self.names = re.findall(r"^ +(\w+)", listing.stdout + listing.stderr, re.MULTILINE)

    def exercise_of(self, fault: Fault) -> str:
        """The variant, or the test, that the fault is planted for."""
        if not fault.case:
            if fault.variant not in self.variants:
                raise ValueError(f"{fault.name} names the variant '{fault.variant}', which is not there")
            return fault.variant
        return self.find_case(fault.case)

    def find_case(self, pattern: str) -> str:
        """The first test whose name the pattern is found in."""
        for name in self.names:
            if re.search(pattern, name):
                return name
        raise ValueError(f"no test of {self.tests} has a name with '{pattern}'")

    def run(self, exercise: str, include: Path, cache: Path) -> tuple[bool | None, str]:
        """Whether it passed, None past the time limit, and what it reported."""
        environment = os.environ | {
            "FULCRUM_EMULATOR_PATH": f"{CHECKOUT / 'tools/emulator/include'}:{include}",
            "FULCRUM_CACHE_DIR": str(cache),
            "FULCRUM_EMULATOR_SEEDS": self.seeds,
        }
        job = self.job_of(exercise)
        command = [self.worker] if job else [self.tests, f"--run_test=*/{exercise}", "--color_output=no"]
        try:
            done = subprocess.run(command, env=environment, timeout=self.timeout, text=True, input=job,
                                  errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, ""
        if not job:
            return done.returncode == 0, report_of(done.stdout)
        try:
            outcome = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            return False, f"it ended without an outcome, exit code {done.returncode}: {one_line(done.stdout)}"
        return outcome["ok"], "" if outcome["ok"] else without_kernel(one_line(outcome["why"]))

    def job_of(self, exercise: str) -> str:
        """A variant as a line for the emulator's worker; nothing for a test."""
        if exercise not in self.variants:
            return ""
        variant = self.variants[exercise]
        return json.dumps({
            "config": variant["config"],
            "dtype": ("f16", "bf16").index(variant["dtype"]),
            "gate_up": variant.get("gate_up", False),
            "activation": ("none", "silu").index(variant.get("activation", "none")),
            "cc": 90,
        }) + "\n"  # fmt: skip

    def check_sound(self, exercise: str) -> Row:
        """It without a fault."""
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="planted-") as folder:
            passed, how = self.run(exercise, CHECKOUT / "include", Path(folder))
        if passed is None:
            how = f"ran past {self.timeout:g} s"
        return Row(exercise, "passes" if passed else "FAILS", how, time.monotonic() - begin, bool(passed))

    def check_fault(self, fault: Fault) -> Row:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="planted-") as folder:
            include, cache = Path(folder) / "include", Path(folder) / "cache"
            shutil.copytree(CHECKOUT / "include", include)
            cache.mkdir()
            problem = fault.plant(include)
            passed, report = (None, "") if problem else self.run(self.exercise_of(fault), include, cache)
        verdict, how = ("NOT APPLIED", problem) if problem else self.judge(fault, passed, report)
        return Row(fault.name, verdict, how, time.monotonic() - begin, verdict == "caught")

    def judge(self, fault: Fault, passed: bool | None, report: str) -> tuple[str, str]:
        if passed is None:
            return "NOT CAUGHT", f"ran past {self.timeout:g} s"
        if passed:
            return "NOT CAUGHT", "it passes"
        if "compile error:" in report:
            first = re.search(r"first error: (.*)", report)
            return "NOT COMPILED", first.group(1) if first else report
        if re.search(fault.caught_by, report) is None:
            return "CAUGHT OTHERWISE", f"{report}, not: {fault.caught_by}"
        return "caught", report


def report_of(output: str) -> str:
    """What a failed test says, without the names of the test and the kernel."""
    error = re.search(r"error: in \"[^\"]*\": (.*(?:\n .*)*)", output)
    words = one_line(error.group(1) if error else output.strip() or "it ended without a word")
    return without_kernel(re.sub(r"^[\w:]+: ", "", words))


def one_line(text: str) -> str:
    return " ".join(text.split())


def without_kernel(report: str) -> str:
    return re.sub(r"^.*the emulated kernel is wrong: \w+: ", "", report)


def shorten(text: str) -> str:
    return text if len(text) <= HOW_CHARACTERS else text[: HOW_CHARACTERS - 3] + "..."


def load_faults(path: Path) -> tuple[dict[str, dict], list[Fault]]:
    """Variants by name, and the faults."""
    with path.open("rb") as file:
        loaded = tomllib.load(file)
    faults = [Fault(**entry) for entry in loaded["fault"]]
    names = [fault.name for fault in faults]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path} has more than one fault of the name {', '.join(twice)}")
    return loaded["variants"], faults


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
    parser.add_argument("--bin", type=Path, default=CHECKOUT / "build/bin",
                        help=f"the folder of {' and '.join(PROGRAMS)}")  # fmt: skip
    parser.add_argument("--only", metavar="NAME", action="append", help="only this fault; may be given several times")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="variants at a time")
    parser.add_argument("--seeds", default="1:2", metavar="FIRST:LAST", help="of the emulator's schedules")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="for one variant")
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    variants, faults = load_faults(HERE / "planted_faults.toml")
    if arguments.only:
        missing = sorted(set(arguments.only) - {fault.name for fault in faults})
        if missing:
            raise ValueError(f"there is no fault named {', '.join(missing)}; --list names them")
        faults = [fault for fault in faults if fault.name in arguments.only]
    if arguments.list:
        for fault in faults:
            print(f"{fault.name}  ({fault.file})\n    {fault.why}")
        return 0
    for name in PROGRAMS:
        if not (arguments.bin / name).is_file():
            raise ValueError(f"{arguments.bin / name} is not there; build the target {name}, or give --bin")
    begin = time.monotonic()
    runner = Runner(arguments, variants)
    exercises = list(dict.fromkeys(runner.exercise_of(fault) for fault in faults))
    print("Without a fault:")
    if not all(row.good for row in run_all(arguments.jobs, exercises, runner.check_sound)):
        raise ValueError("something fails without a planted fault")
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
