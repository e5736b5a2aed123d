"""The plots of docs/benchmarks.md and docs/choosing.md, as SVG; bench.report.tables makes them.

growth.svg    seconds against the number of records, both logarithmic
recall.svg    seconds, what is missed and what is wrong, on 100,000 records
scurve.svg    the S-curve of 15 bands of 7, and the share of pairs that were found
"""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import Any

from bench.contestants import DEFAULT, OURS
from bench.report.figures import Figures, curve, figures, growth
from neardup.schemes.banding import recall as promised

BANDS, ROWS = 15, 7
SHARES = (1e-3, 1)
NONE = 1e-6  # where a share of nothing stands on a logarithmic axis


def draw(results: dict[str, Any], folder: Path) -> dict[str, Path]:
    """Draw the plots that the results have data for; return {name: file}, {} without matplotlib."""
    drawn = {}
    for name, plot in {"growth": of_growth, "recall": of_recall, "scurve": of_curve}.items():
        figure = new_figure()
        if not figure:
            break
        if plot(figure, results):
            drawn[name] = folder / f"{name}.svg"
            save(figure, drawn[name])
    return drawn


def new_figure(width: float = 8, height: float = 5) -> Any:
    """Return a figure of a size in inches; print a note and return None without matplotlib."""
    try:
        matplotlib = import_module("matplotlib")
    except ImportError:
        print("bench: no plot without matplotlib: pip install '.[bench]'", file=sys.stderr)
        return None
    matplotlib.rcParams["svg.hashsalt"] = "neardup"  # same figures, same bytes
    return import_module("matplotlib.figure").Figure((width, height), layout="constrained")


def save(figure: Any, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, metadata={"Date": None})


def with_grid(figure: Any) -> Any:
    axes = figure.add_subplot()
    axes.grid(True, alpha=0.3)
    return axes


def of_growth(figure: Any, results: dict[str, Any]) -> bool:
    curves = growth(figures(results), results)
    if not curves:
        return False
    axes = with_grid(figure)
    others = cycle(["C0", "C1", "C2", "C4", "C5", "C6", "C7"])
    for name, points in sorted(curves.items(), key=lambda item: -item[1][-1][1]):
        color, width = ("C3", 2.5) if name == OURS else (next(others), 1.2)
        style = {"color": color, "linewidth": width, "marker": "o", "markersize": 4}
        axes.plot(*zip(*points), label=name, **style)
    axes.set(xscale="log", yscale="log", xlabel="records", ylabel="seconds")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(fontsize="small")  # in the order of the lines' ends
    return True


def of_recall(figure: Any, results: dict[str, Any]) -> bool:
    """Draw the seconds, missed share and wrong share of contestants that print pairs or flags."""
    table = figures(results).get("W1 100k", {})
    shown = [item for item in table.items() if item[1].prints in ("pairs", "flags")]
    lines = sorted(shown, key=lambda item: (not item[1].done, item[1].seconds))
    if not lines:
        return False
    figure.set_size_inches(9, 1 + 0.22 * len(lines))
    panels = figure.subplots(1, 3, sharey=True, width_ratios=[4, 3, 3])
    for place, (_, one) in enumerate(lines):
        dot = {"color": "C0" if one.peer else "C3", "marker": "o" if one.done else ">"}
        mark(panels[0], one.seconds, place, seconds_of(one), dot)
        if one.done and one.recall is not None and one.precision is not None:
            for axes, right in zip(panels[1:], (one.recall, one.precision)):
                mark(axes, max(1 - right, NONE), place, percent(1 - right), dot)
    panels[0].set_yticks(range(len(lines)), [label(*line) for line in lines])
    panels[0].set_ylim(len(lines) - 0.5, -0.5)
    for text, (_, one) in zip(panels[0].get_yticklabels(), lines):
        text.set_color("black" if one.peer else "C3")
    for axes, title in zip(panels, ("seconds", "missed", "wrong")):
        axes.set(xscale="log", title=title)
        axes.grid(True, alpha=0.3)
        axes.minorticks_off()
        axes.margins(x=0.2)
    panels[0].set_xlim(right=4 * max(one.seconds for _, one in lines))  # room for a figure
    panels[0].xaxis.set_major_formatter("{x:g}")
    for axes in panels[1:]:
        axes.set_xticks([NONE, *SHARES], ["none", *map(percent, SHARES)])
        axes.set_xlim(NONE / 4, 100)
    return True


def mark(axes: Any, x: float, y: int, text: str, dot: dict[str, Any]) -> None:
    """Draw a point, with its value as text on the right."""
    axes.plot([x], [y], linestyle="", markersize=5, **dot)
    offset = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(text, (x, y), fontsize=7, color=dot["color"], **offset)


def label(name: str, one: Figures) -> str:
    """Return a contestant's label: its name with its banding, and its output unless it is pairs."""
    name = name.replace(DEFAULT, one.banding)
    return name if one.prints == "pairs" else f"{name}: {one.prints}"


def seconds_of(one: Figures) -> str:
    return f"{one.seconds:.2g}" if one.done else f"> {one.seconds:.0f}"


def percent(share: float) -> str:
    """Format a share in percent; "none" if it is 0.

    >>> percent(0.0), percent(1 - 0.999933), percent(0.1)
    ('none', '0.0067 %', '10 %')
    """
    return f"{100 * share:.3g} %" if share else "none"


def of_curve(figure: Any, results: dict[str, Any]) -> bool:
    points = curve(results)
    axes = with_grid(figure)
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
