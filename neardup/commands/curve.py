"""`curve`: the S-curve of a setting, as a table and as a picture.

The curve is the probability that two records share a key, by their similarity.  Right of the
threshold it should be high: that is the recall.  Left of it, it should be low: pairs found there
are compared in vain.  How far it is from the ideal, a step at the threshold, is two areas:

    false negatives   ∫ 1 - P(s) ds, t … 1     above the curve: pairs that are missed
    false positives   ∫ P(s) ds,     0 … t     below it: dissimilar pairs compared

(Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, ch. 3.)  Were all similarities from 0 to 1
equally likely, the areas would be the shares of all pairs that are false negatives or positives.

Each integral is by Gauss's rule of 16 points, and in two halves wherever these differ from the
whole.  The rule never asks at the ends: a curve may jump at the threshold.

Letters: t threshold (0.9), P(s) the chance to meet at similarity s.  For 15 bands of 7 rows the
areas are 5·10^-7 and 0.27.  Cost: some hundred values of P.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_UP, Context
from math import nextafter
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from neardup.options import table
from neardup.options.settings import Settings, settings_before_counts
from neardup.options.table import SCHEME_OPTIONS, Options
from neardup.runtime.errors import UsageError
from neardup.runtime.program import run
from neardup.schemes.scheme import shown
from neardup.similarity.measures import MEASURES

NAME = "neardup curve"
ASKED = ("--scheme", "--exact", "--measure", "--threshold", *SCHEME_OPTIONS)
STEPS, FINE_STEPS = 20, 200  # of the table, and of the picture
BAR = 40
DESCRIPTION = """Show with what probability two records share a key, for each similarity.

Reads no file: the options of the job decide.  From the threshold on it is the recall, and below it
the share of others that are compared in vain.  The areas of what is missed above the threshold,
and of what meets below it, are told in numbers, and shaded in the picture.

    python3 -m neardup curve --threshold 0.8 --max-bands 32
    python3 -m neardup curve --bands 10 --rows 10 --svg curve.svg
"""


def main() -> int:
    return run(NAME, _curve)


def _curve() -> None:
    parser = table.parser(f"python3 -m {NAME}", DESCRIPTION, ASKED)
    parser.add_argument("--svg", metavar="FILE", help="write the curve as a picture, too")
    args = parser.parse_args()
    if args.svg == "":
        raise UsageError("--svg: the name of the file is empty")
    settings = settings_before_counts(Options.of(args))
    scheme = settings.scheme
    threshold = _threshold(args, settings)
    fine = [(place, scheme.recall(place)) for place in _fine_places(threshold)]
    if all(chance in (0, 1) for _, chance in fine):
        raise UsageError(f"there is no chance in it, so no curve: {scheme.promise}")
    mark = None
    if threshold is not None:
        mark = Mark(threshold, scheme.recall(threshold), areas(scheme.recall, threshold))
    if args.svg is not None:
        axis = f"{scheme.measures[0]} similarity"
        Path(args.svg).write_text(picture(fine, mark, axis, scheme.promise), encoding="utf-8")
    places = {i / STEPS for i in range(STEPS + 1)} | ({mark.threshold} if mark else set())
    print(f"{scheme.promise}\n\n{scheme.measures[0]:<10}  probability to meet")
    for place in sorted(places):
        print(table_row(place, scheme.recall(place), place == threshold))
    if mark:
        print("", *area_rows(mark.areas), sep="\n")


def _threshold(args: argparse.Namespace, settings: Settings) -> float | None:
    """Where the threshold is on the axis, which is by the scheme's own measure; None if nowhere."""
    own = settings.scheme.measures[0]
    if args.measure in (None, own):
        return float(settings.threshold)
    least = MEASURES[args.measure](settings.threshold).resemblance
    return float(least) if own == "jaccard" and least else None


def _fine_places(threshold: float | None) -> list[float]:
    """For the picture; those next to the threshold too, since a curve may jump there."""
    places = {i / FINE_STEPS for i in range(FINE_STEPS + 1)}
    return sorted(places | ({threshold, nextafter(threshold, 0)} if threshold else set()))


def table_row(similarity: float, chance: float, marked: bool) -> str:
    """
    >>> print(table_row(0.9, 0.5, True))
    0.9         0.500000  ####################                      <- the threshold
    """
    bar = "#" * round(chance * BAR)
    note = f"{bar:{BAR}}  <- the threshold" if marked else bar
    return f"{similarity:<10.6g}  {shown(chance)}  {note}".rstrip()


def area_rows(areas: Areas) -> list[str]:
    """
    >>> print(*area_rows(Areas(4.80823e-7, 0.26806)), sep="\\n")
    false negatives  4.81e-7      area above the curve from the threshold on: pairs that are missed
    false positives  0.269        area below it up to the threshold: dissimilar pairs compared
    """
    missed, vain = map(shown_area, areas)
    if not areas.false_positives:
        vain, note = "-", "nothing is promised of pairs below the threshold"
    else:
        note = "area below it up to the threshold: dissimilar pairs compared"
    above = "area above the curve from the threshold on: pairs that are missed"
    return [
        f"false negatives  {missed:11}  {above}",
        f"false positives  {vain:11}  {note}",
    ]


POINTS, WEIGHTS = (column.tolist() for column in np.polynomial.legendre.leggauss(16))  # on -1 … 1
PRECISION = 1e-15  # of an interval that is not halved again
MOST_HALVINGS = 40
KNOWN = 1e-12  # what is less than this may be nothing but rounding
UP = Context(prec=3, rounding=ROUND_UP)


class Areas(NamedTuple):
    """false_positives: 0 where the scheme tells nothing about pairs below the threshold."""

    false_negatives: float
    false_positives: float


def areas(recall: Callable[[float], float], threshold: float) -> Areas:
    """Of the curve `recall`, on both sides of the threshold.

    >>> [round(area, 12) for area in areas(lambda s: s**2, 0.5)]
    [0.208333333333, 0.041666666667]
    """
    missed = integral(lambda s: 1 - recall(s), threshold, 1)
    return Areas(missed, integral(recall, 0, threshold))


def integral(f: Callable[[float], float], low: float, high: float) -> float:
    """Of f from `low` to `high`.

    >>> round(integral(lambda x: x**0.5, 0, 1), 12)
    0.666666666667
    """
    return _halved(f, low, high, _by_gauss(f, low, high), MOST_HALVINGS)


def shown_area(area: float) -> str:
    """Three digits, rounded up: no error is told smaller than it is.

    >>> shown_area(0.26806), shown_area(4.80823e-7), shown_area(1e-17)
    ('0.269', '4.81e-7', 'below 1e-12')
    """
    if area < KNOWN:
        return "below 1e-12"
    return str(UP.create_decimal(f"{area:.12g}")).replace("E", "e")  # 0.25 may lie a hair above


def _halved(
    f: Callable[[float], float], low: float, high: float, whole: float, halvings: int
) -> float:
    middle = (low + high) / 2
    left, right = _by_gauss(f, low, middle), _by_gauss(f, middle, high)
    if abs(left + right - whole) <= PRECISION or not halvings:
        return left + right
    first = _halved(f, low, middle, left, halvings - 1)
    return first + _halved(f, middle, high, right, halvings - 1)


def _by_gauss(f: Callable[[float], float], low: float, high: float) -> float:
    middle, half = (low + high) / 2, (high - low) / 2
    return half * sum(weight * f(middle + half * x) for x, weight in zip(POINTS, WEIGHTS))


WIDTH, HEIGHT = 640, 445
LEGEND = 62  # the height of the lines below it
LEFT, TOP, RIGHT, BOTTOM = 70, 75, 610, 385  # of the square of the curve
TITLE = 78  # letters of it in a line
STYLE = """
text { font: 14px sans-serif; fill: #24292f }
line, polyline { fill: none; stroke: #8c959f; stroke-width: 1 }
.grid { stroke-opacity: 0.3 }
.curve { stroke: #0969da; stroke-width: 3 }
.mark { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 6 4 }
.marked { fill: #cf222e }
.missed { fill: #cf222e; fill-opacity: 0.35 }
.vain { fill: #bf8700; fill-opacity: 0.3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .curve { stroke: #58a6ff }
  .mark { stroke: #ff7b72 }
  .marked { fill: #ff7b72 }
  .missed { fill: #ff7b72 }
  .vain { fill: #d29922 }
}
"""
Points = Sequence[tuple[float, float]]


class Mark(NamedTuple):
    """The threshold, the chance to meet there, and the areas on both sides of it."""

    threshold: float
    chance: float
    areas: Areas


def picture(points: Points, mark: Mark | None, axis: str, title: str) -> str:
    """The curve through `points`, with what `mark` says; a whole document.

    Where it jumps at the threshold, there is a point next to it on either side.
    """
    height = HEIGHT + (LEGEND if mark else 0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        *_title(title),
        *_grid(),
        *(_shades(points, mark) if mark else ()),
        *(_mark(mark) if mark else ()),
        f'<polyline class="curve" points="{_places(points)}"/>',
        _text((LEFT + RIGHT) / 2, BOTTOM + 45, "middle", axis),
        f'<g transform="translate(20 {(TOP + BOTTOM) / 2}) rotate(-90)">',
        _text(0, 0, "middle", "probability to share a key"),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def x(similarity: float) -> float:
    """
    >>> x(0), x(1), y(0), y(1)
    (70, 610, 385, 75)
    """
    return LEFT + similarity * (RIGHT - LEFT)


def y(chance: float) -> float:
    return BOTTOM + chance * (TOP - BOTTOM)


def _grid() -> list[str]:
    parts = []
    for tenth in range(0, 11, 2):
        place = tenth / 10
        kind = "axis" if tenth == 0 else "grid"
        parts += [
            _line(kind, x(place), y(0), x(place), y(1)),
            _line(kind, x(0), y(place), x(1), y(place)),
            _text(x(place), BOTTOM + 20, "middle", f"{place:g}"),
            _text(LEFT - 10, y(place) + 5, "end", f"{place:g}"),
        ]
    return parts


def _shades(points: Points, mark: Mark) -> list[str]:
    """Both areas, each with a line of the legend."""
    missed = [(s, p) for s, p in points if s >= mark.threshold]
    met = [(s, p) for s, p in points if s < mark.threshold]
    missed_area, vain_area = map(shown_area, mark.areas)
    parts = [
        _area("missed", [(mark.threshold, 1), *missed, (1, 1)]),
        *_legend(HEIGHT, "missed", f"false negatives: area {missed_area}, pairs that are missed"),
    ]
    if mark.areas.false_positives:
        text = f"false positives: area {vain_area}, dissimilar pairs compared"
        parts += [
            _area("vain", [(0, 0), *met, (mark.threshold, 0)]),
            *_legend(HEIGHT + 25, "vain", text),
        ]
    return parts


def _area(kind: str, points: Points) -> str:
    return f'<polygon class="{kind}" points="{_places(points)}"/>'


def _legend(base: float, kind: str, text: str) -> list[str]:
    return [
        f'<rect class="{kind}" x="{LEFT}" y="{base + 13}" width="14" height="14"/>',
        _text(LEFT + 22, base + 25, "start", text),
    ]


def _mark(mark: Mark) -> list[str]:
    """The threshold upright, the promise level, and above them what they are."""
    place, height = x(mark.threshold), y(mark.chance)
    said = f"threshold {mark.threshold:.6g}: recall {shown(mark.chance)}"
    return [
        _line("mark", place, y(0), place, y(1)),
        _line("mark", x(0), height, place, height),
        _text(place, TOP - 9, "end" if mark.threshold > 0.5 else "start", said, "marked"),
    ]


def _title(text: str) -> list[str]:
    """In two lines, and smaller letters, where it takes that to fit in."""
    lines = wrap(text, max(TITLE, len(text) // 2 + 10))
    size = min(14.0, 14 * TITLE / max(map(len, lines)))
    style = f'style="font-size: {size:.1f}px"'
    bases = range(40 - 18 * (len(lines) - 1), 41, 18)
    return [
        f'<text {style} x="{LEFT}" y="{base}">{escape(line)}</text>'
        for base, line in zip(bases, lines)
    ]


def _places(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x(s):.1f},{y(p):.1f}" for s, p in points)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(left: float, base: float, anchor: str, text: str, kind: str = "") -> str:
    class_ = f' class="{kind}"' if kind else ""
    place = f'x="{left:.1f}" y="{base:.1f}" text-anchor="{anchor}"'
    return f"<text{class_} {place}>{escape(text)}</text>"
