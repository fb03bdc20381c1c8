#!/usr/bin/env python3
"""Renders what is generated, from core (through the host tool `describe`), space.toml, tables and templates/*.j2.

Called by CMake; `render.py VERB --help` lists the inputs of each verb. Invariants: the same input gives the same bytes,
a file that would not change is not written, and an error is one sentence on stderr and exit code 1.
"""

import argparse
import sys
from pathlib import Path

import jinja2

import regression
from core import Core, load_space, parse_config_text
from tables import read_table

HERE = Path(__file__).resolve().parent
EMBEDDED_SUFFIXES = (".h", ".cuh", ".def")  # what NVRTC may include; .hpp is host code
LEVERS_BEGIN, LEVERS_END = "<!-- levers: begin -->\n", "<!-- levers: end -->\n"


def cpp_kind(kind: dict) -> str:
    """A KernelKind as a C++ expression."""
    gate_up = "true" if kind["gate_up"] else "false"
    return f"fulcrum::KernelKind{{fulcrum::DType::{kind['dtype']}, {gate_up}, fulcrum::Activation::{kind['activation']}}}"


def template(file: str, **values) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)  # fmt: skip
    environment.filters["cpp_kind"] = cpp_kind
    return environment.get_template(file).render(**values)


def write(path: Path, text: str) -> None:
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def render_headers(args) -> None:
    """<fulcrum_embedded_headers.hpp> and its source: every header that device code may include."""
    files = []
    for path in sorted(args.include.rglob("*")):
        if path.suffix in EMBEDDED_SUFFIXES:
            files.append((path.relative_to(args.include).as_posix(), path.read_text()))
    write(args.out / "fulcrum_embedded_headers.hpp", template("embedded_headers.hpp.j2"))
    write(args.out / "fulcrum_embedded_headers.cpp", template("embedded_headers.cpp.j2", files=files))


def render_space(args) -> None:
    """<fulcrum_space.hpp>: space.toml as constexpr arrays for the tuner."""
    core = Core(args.describe)
    write(args.out / "fulcrum_space.hpp", template("space.hpp.j2", core=core, space=load_space(args.space, core)))


def render_models(args) -> None:
    """<fulcrum_models.hpp>: the list of models as text, so that the command line tool needs no file beside it."""
    write(args.out / "fulcrum_models.hpp", template("models.hpp.j2", text=args.models.read_text()))


def render_cases(args) -> None:
    """The regression set as a TSV to read, and as the test cases of the device, the emulator and the compile tier."""
    core = Core(args.describe)
    space = load_space(args.space, core)
    tables = [kernel for path in sorted(args.tables.glob("*.tsv")) for kernel in read_table(path, core, [])]
    variants = regression.regression_set(core, space, tables)
    write(args.out / "regression_set.tsv", template("regression_set.tsv.j2", variants=variants))
    write(args.out / "device_cases.cpp", template("device_cases.cpp.j2", variants=variants, core=core))
    shards = regression.emulator_set(core, variants, args.shards)
    write(args.out / "emulator_cases.cpp", template("emulator_cases.cpp.j2", shards=shards, core=core))
    shards = regression.compile_set(core, variants, args.shards)
    write(args.out / "compile_cases.cpp", template("compile_cases.cpp.j2", shards=shards, core=core))


def render_kernels(args) -> None:
    """One .cu for each distinct kernel of a table, one for the helper kernels, and a registry; prints the .cu names."""
    core = Core(args.describe)
    kernels = regression.device_code(core, read_table(args.table, core, args.cc))
    sources = {}
    for kernel in kernels:
        symbol = f"{args.name}_{kernel.name}_{kernel.kind}"
        sources[f"{kernel.name}_{kernel.kind}.cu"] = template("variant.cu.j2", symbol=symbol, kernel=kernel, core=core)
    layouts = {(config["code_word"], config["k_order"]) for config in (parse_config_text(k.text) for k in kernels)}
    helpers = [h for h in core.helpers if (h["code_word"], h["k_order"]) in layouts | {("", "")}]
    if args.no_helpers:
        helpers = []
    else:
        sources["helpers.cu"] = "".join(helper["source"] for helper in helpers)
    for file, text in sources.items():
        write(args.out / file, text)
        print(file)
    values = {"name": args.name, "table": args.table.name, "kernels": kernels, "helpers": helpers, "core": core}
    for suffix in ("hpp", "cpp"):
        write(args.out / f"{args.name}.{suffix}", template(f"registry.{suffix}.j2", **values))


def render_readme(args) -> None:
    """The README's lever table, between its two markers; --check only compares."""
    core = Core(args.describe)
    text = args.readme.read_text()
    before, begin, rest = text.partition(LEVERS_BEGIN)
    _, end, after = rest.partition(LEVERS_END)
    if not begin or not end:
        raise ValueError(f"{args.readme} lacks the markers {LEVERS_BEGIN.strip()} and {LEVERS_END.strip()}")
    fresh = before + begin + template("levers.md.j2", core=core, space=load_space(args.space, core)) + end + after
    if not args.check:
        write(args.readme, fresh)
    elif fresh != text:
        raise ValueError(f"the lever table of {args.readme} is stale: build the target readme and commit the file")


def render_wgmma(args) -> None:
    """The asm operand lists of wgmma, a committed header of --include; --check only compares."""
    path = args.include / "fulcrum/ptx/wgmma_mma.cuh"
    fresh = template("wgmma_mma.cuh.j2")
    if not args.check:
        write(path, fresh)
    elif not path.is_file() or path.read_text() != fresh:
        raise ValueError(f"{path} is stale: run render.py wgmma --include {args.include} and commit the file")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    inputs = {
        "describe": {"help": "the host tool"},
        "space": {"type": Path, "help": "space.toml"},
        "include": {"type": Path, "help": "the folder that holds fulcrum/"},
        "models": {"type": Path, "help": "models.tsv"},
        "tables": {"type": Path, "help": "a folder of best-config tables"},
        "table": {"type": Path, "help": "one best-config table"},
        "name": {"help": "of the registry: a C++ identifier"},
        "readme": {"type": Path, "help": "README.md"},
        "shards": {"type": int, "help": "suites of the compile tier, which can run side by side"},
        "out": {"type": Path, "help": "the folder to write to"},
    }
    for verb, function, wanted in (
        ("headers", render_headers, "include out"),
        ("space", render_space, "describe space out"),
        ("models", render_models, "models out"),
        ("cases", render_cases, "describe space tables shards out"),
        ("kernels", render_kernels, "describe table name out"),
        ("readme", render_readme, "describe space readme"),
        ("wgmma", render_wgmma, "include"),
    ):
        sub = verbs.add_parser(verb, help=function.__doc__.splitlines()[0])
        sub.set_defaults(function=function)
        for name in wanted.split():
            sub.add_argument(f"--{name}", required=True, **inputs[name])
        if verb in ("readme", "wgmma"):
            sub.add_argument("--check", action="store_true", help="change nothing, fail when it is stale")
        if verb == "kernels":
            sub.add_argument("--no-helpers", action="store_true", help="leave out the routing and repack kernels")
            sub.add_argument("--cc", type=int, action="append", default=[], help="compute capability, 90 for 9.0")
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse_arguments()
    try:
        arguments.function(arguments)
    except (ValueError, OSError) as error:
        sys.exit(f"render.py: {error}")
