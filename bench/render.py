#!/usr/bin/env python3
"""Renders the table of measured results in README.md from bench/results/*.tsv, between the markers `results`.

Run by hand after a bench; `--check` (the ctest lint.results) fails when README.md is not what the records give. The last
line of a (workload, case, routing, item, dtype) is the present figure. Shown are figures of whole layers, and the sweep
over models in short.
"""

import argparse
import csv
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
ITEM = "two_gemms"
MODELS = "models"


def present_records(path):
    """The last record of each key, in the order in which keys first appear."""
    records = {}
    with open(path, newline="") as file:
        for record in csv.DictReader(file, delimiter="\t"):
            records[tuple(record[name] for name in ("workload", "case", "routing", "item", "dtype"))] = record
    return records.values()


def render(folder):
    lines = [
        "| GPU | workload | case | routing | dtype | us | floor us | floor / time | TFLOP/s | weights GB/s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for path in sorted(folder.glob("*.tsv")):
        for r in present_records(path):
            if r["item"] != ITEM:
                continue
            figures = (f"{float(r['median_us']):.1f}", f"{float(r['floor_us']):.1f}", f"{float(r['ratio']):.2f}",
                       f"{float(r['tflops']):.0f}", f"{float(r['gbps']):.0f}")
            cells = (path.stem, r["workload"], r["case"], r["routing"], r["dtype"], *figures)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *render_models(folder)])


def render_models(folder):
    """The sweep over models: a line for each token count, over all its GEMMs."""
    lines = [
        "| GPU | tokens | GEMMs of models | floor / time, geometric mean | least | most |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for path in sorted(folder.glob("*.tsv")):
        ratios = {}
        for r in present_records(path):
            if r["workload"] == MODELS:
                ratios.setdefault(int(r["case"].split()[-1]), []).append(float(r["ratio"]))
        for tokens, own in sorted(ratios.items()):
            mean = statistics.geometric_mean(own)
            lines.append(f"| {path.stem} | {tokens} | {len(own)} | {mean:.2f} | {min(own):.2f} | {max(own):.2f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when README.md is stale")
    arguments = parser.parse_args()
    readme = ROOT / "README.md"
    text = readme.read_text()
    before, rest = text.split(BEGIN)
    fresh = f"{before}{BEGIN}\n{render(ROOT / 'bench' / 'results')}\n{END}{rest.split(END)[1]}"
    if arguments.check:
        if fresh != text:
            sys.exit("README.md: the results table is not what bench/results gives; run bench/render.py")
        return
    readme.write_text(fresh)


if __name__ == "__main__":
    main()
