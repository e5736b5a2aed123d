"""The plots of docs/benchmarks.md, as SVG: what `tables` draws where matplotlib is installed.

growth.svg    seconds against the number of records, both logarithmic
recall.svg    recall against seconds, on 100,000 records
scurve.svg    the S-curve of 15 bands of 7, and the share of pairs that were found
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.contestants import OURS
from bench.report.figures import curve, figures, growth
from neardup.schemes.banding import recall as promised

BANDS, ROWS = 15, 7


def draw(results: dict, folder: Path) -> dict[str, Path]:
    """Those plots for which there are figures: name → file."""
    try:
        matplotlib = import_module("matplotlib")
    except ImportError:
        print(
            "bench.report.tables: no plots: no matplotlib: pip install '.[bench]'", file=sys.stderr
        )
        return {}
    matplotlib.rcParams["svg.hashsalt"] = "neardup"  # same figures, same bytes
    folder.mkdir(exist_ok=True)
    drawn = {}
    for name, plot in {"growth": of_growth, "recall": of_recall, "scurve": of_curve}.items():
        figure, axes = new_figure()
        if plot(axes, results):
            drawn[name] = folder / f"{name}.svg"
            figure.savefig(drawn[name], metadata={"Date": None})
    return drawn


def new_figure() -> tuple[Any, Any]:
    figure = import_module("matplotlib.figure").Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(True, alpha=0.3)
    return figure, axes


def of_growth(axes: Any, results: dict) -> bool:
    curves = growth(figures(results), results)
    if not curves:
        return False
    for name, points in curves.items():
        width = 2.5 if name == OURS else 1.2
        axes.plot(*zip(*points), marker="o", markersize=4, linewidth=width, label=name)
    axes.set(xscale="log", yscale="log", xlabel="records", ylabel="seconds")
    axes.legend(fontsize="small")
    return True


def of_recall(axes: Any, results: dict) -> bool:
    """Left and up is better.  The axis has what is missed, as all that is good is close to 1."""
    table = figures(results).get("W1 100k", {})
    points = {
        name: (one.seconds, max(1 - one.recall, 1e-6))
        for name, one in table.items()
        if one.done and one.recall is not None
    }
    for i, (name, point) in enumerate(sorted(points.items(), key=lambda item: item[1])):
        ours = name == OURS
        axes.plot(*zip(point), "o", color="C3" if ours else "C0")
        above = 4 + 9 * (i % 4)  # so that neighbours do not cover each other
        axes.annotate(name, point, (2, above), textcoords="offset points", fontsize=7)
    axes.set(xscale="log", yscale="log", xlabel="seconds, W1 100k")
    axes.set_ylabel("share of pairs (flags) missed, at least 1e-6")
    axes.set_ylim(1, 1e-7)
    axes.margins(x=0.15)
    return bool(points)


def of_curve(axes: Any, results: dict) -> bool:
    points = curve(results)
    line = [i / 200 for i in range(201)]
    label = f"promised by {BANDS} bands of {ROWS}"
    axes.plot(line, [promised(s, BANDS, ROWS) for s in line], label=label)
    shares = [found / there for _, found, there in points]
    axes.plot([s for s, _, _ in points], shares, "o", label="pairs found")
    axes.set(xlabel="similarity", ylabel="share of pairs that share a key")
    axes.legend()
    return bool(points)


if __name__ == "__main__":
    raise SystemExit("bench.report.plots: run python3 -m bench.report.tables")
