#!/usr/bin/env python3
"""Draws how the time of a GEMM grows with tokens and with experts: bench/growth-<gpu>.svg from bench/results/<gpu>.tsv.

Needs matplotlib 3.5 or later (`pip install matplotlib`). Run by hand after `fulcrum bench growth`; the same records give
the same bytes.
"""

import argparse
import pathlib
import sys

import render

AXES = {"tokens": "tokens (288 experts, 8 a token)", "experts": "experts (2,048 tokens, at most 8 a token)"}
ITEMS = {"gate_up": ("#2a6fbb", "o"), "down": ("#c8641e", "s")}


def points(records, axis, item):
    """(value, median us, floor us) in ascending order."""
    found = []
    for record in records:
        name, _, value = record["case"].partition(" ")
        if record["workload"] == "growth" and record["item"] == item and name == axis:
            found.append((int(value), float(record["median_us"]), float(record["floor_us"])))
    return sorted(found)


def draw(records, path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "fulcrum", "svg.fonttype": "none", "font.size": 9}
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for panel, (axis, label) in zip(panels, AXES.items(), strict=True):
        for item, (color, marker) in ITEMS.items():
            values = points(records, axis, item)
            if not values:
                sys.exit(f"no records of `bench growth` by {axis} for {item}")
            x, time, floor = zip(*values, strict=True)
            panel.plot(x, time, color=color, marker=marker, markersize=3, label=f"{item}, median")
            panel.plot(x, floor, color=color, linestyle=":", label=f"{item}, floor")
        panel.set(xscale="log", yscale="log", xlabel=label, ylabel="microseconds")
        panel.set_xscale("log", base=2)
        panel.grid(alpha=0.3)
    panels[0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gpu", nargs="?", default="h200", help="the name of a file of results")
    gpu = parser.parse_args().gpu
    bench = pathlib.Path(__file__).resolve().parent
    draw(list(render.present_records(bench / "results" / f"{gpu}.tsv")), bench / f"growth-{gpu}.svg")


if __name__ == "__main__":
    main()
