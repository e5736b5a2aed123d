"""`curve`: print the S-curve of a setting as a table; with --svg, also draw it as a picture.

The curve is the probability that two records share a key, by their similarity.  Above the threshold
it should be high: that is the recall.  Below it should be low: pairs found there are compared in
vain.  Its distance from the ideal, a step at the threshold t, is two areas:

    false negatives   ∫ 1 - P(s) ds, t … 1     above the curve: pairs that are missed
    false positives   ∫ P(s) ds,     0 … t     below it: dissimilar pairs compared

If all similarities from 0 to 1 were equally likely, these would be the shares of all pairs that are
false negatives or positives (Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, ch. 3).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_UP, Context
from math import nextafter
from textwrap import wrap
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from neardup.options import command_parser, table
from neardup.options.settings import settings_before_counts
from neardup.reading.fingerprint_lines import FINGERPRINTS
from neardup.runtime.atomic_write import whole_or_not
from neardup.runtime.program import NOT_FILES, UsageError, check_file_name
from neardup.schemes.fingerprints import Hamming
from neardup.schemes.scheme import shown
from neardup.similarity.measures import MEASURES, Threshold

ASKED = ("--scheme", "--exact", "--measure", "--threshold", *table.SCHEME_OPTIONS)
STEPS, FINE_STEPS = 20, 200  # of the table, and of the picture
BAR = 40
SHORT = {**command_parser.SHORT, "--svg": "also write the curve as a picture"}
DESCRIPTION = """Show the probability that two records share a key, for each similarity.

No file is read: the probability follows from the options of the job.  From the threshold on it is
the recall; below it, the share of dissimilar pairs that are compared in vain.  The areas of missed
pairs above the threshold, and of pairs compared below it, are printed, and shaded in the picture.

    python3 -m neardup curve --threshold 0.8 --max-bands 32
    python3 -m neardup curve --bands 10 --rows 10 --svg curve.svg
    python3 -m neardup curve --scheme fingerprints --bits 64 --distance 7
"""


def main() -> None:
    parser = table.parser("python3 -m neardup curve", DESCRIPTION, ASKED, SHORT)
    parser.add_argument("--svg", metavar="FILE", help=SHORT["--svg"])
    args = parser.parse_args()
    check_file_name("--svg", args.svg, NOT_FILES)
    options = table.Options.of(args)
    if args.scheme == FINGERPRINTS:
        options = replace(options, input=FINGERPRINTS)
    settings = settings_before_counts(options)
    scheme, measure = settings.scheme, settings.measure
    axis = scheme.measures[0]
    threshold = _threshold(args.measure, axis, settings.threshold)
    places, mark = {i / STEPS for i in range(STEPS + 1)}, None
    bits = measure.bits if isinstance(measure, Hamming) else 0
    if bits:
        places = {(bits - i * bits // (2 * STEPS)) / bits for i in range(STEPS + 1)}
    fine = {i / FINE_STEPS for i in range(FINE_STEPS + 1)}
    if threshold is not None:
        places.add(threshold)
        fine |= {threshold, nextafter(threshold, 0)}  # a curve may jump there
        mark = Mark(threshold, scheme.recall(threshold), areas(scheme.recall, threshold))
    points = [(place, scheme.recall(place)) for place in sorted(fine)]
    if all(chance in (0, 1) for _, chance in points):
        raise UsageError(f"no curve, because no chance is involved: {scheme.promise}")
    if args.svg is not None:
        svg = picture(points, mark, f"{axis} similarity", scheme.promise)
        with whole_or_not("--svg", args.svg, []) as file:
            file.write(svg.encode())
    print(f"{scheme.promise}\n\n{'bits apart' if bits else axis:<10}  probability of sharing a key")
    for place in sorted(places, reverse=bits > 0):
        shown_at = round((1 - place) * bits) if bits else place
        print(table_row(shown_at, scheme.recall(place), place == threshold))
    if mark:
        print("", *area_rows(mark.areas), sep="\n")


def _threshold(measure: "str | None", axis: str, threshold: Threshold) -> "float | None":
    """Return the threshold, converted to the measure on the axis, or None if that is impossible."""
    if measure in (None, axis):
        return float(threshold)
    least = MEASURES[measure](threshold).resemblance
    return float(least) if axis == "jaccard" and least else None


def table_row(place: float, chance: float, marked: bool) -> str:
    bar = "#" * round(chance * BAR)
    note = f"{bar:{BAR}}  <- the threshold" if marked else bar
    return f"{place:<10.6g}  {shown(chance)}  {note}".rstrip()


def area_rows(areas: "Areas") -> list[str]:
    """Return lines with the areas of false negatives and of false positives, one line each.

    >>> print(*area_rows(Areas(4.80823e-7, 0.26806)), sep="\\n")
    false negatives  4.81e-7      area above the curve from the threshold on: pairs that are missed
    false positives  0.269        area below it up to the threshold: dissimilar pairs compared
    """
    missed, vain = map(shown_area, areas)
    note = "area below it up to the threshold: dissimilar pairs compared"
    if not areas.false_positives:
        vain, note = "-", "nothing is promised about pairs below the threshold"
    return [
        f"false negatives  {missed:11}  area above the curve from the threshold on: pairs that are "
        "missed",
        f"false positives  {vain:11}  {note}",
    ]


POINTS, WEIGHTS = (column.tolist() for column in np.polynomial.legendre.leggauss(16))  # on -1 … 1
PRECISION = 1e-15  # of an interval that is not halved again
MOST_HALVINGS = 40
KNOWN = 1e-12  # smaller areas may be rounding errors
UP = Context(prec=3, rounding=ROUND_UP)


class Areas(NamedTuple):
    false_negatives: float
    false_positives: float  # 0 if the scheme promises nothing below the threshold


def areas(recall: Callable[[float], float], threshold: float) -> Areas:
    """Return the areas of false negatives and false positives for a curve and a threshold."""
    missed = integral(lambda s: 1 - recall(s), threshold, 1)
    return Areas(missed, integral(recall, 0, threshold))


def integral(
    f: Callable[[float], float], low: float, high: float, halvings: int = MOST_HALVINGS
) -> float:
    """Integrate f from `low` to `high` by 16-point Gauss quadrature, on intervals halved as needed.

    The rule never evaluates f at the ends: a curve may jump at the threshold.
    """
    middle = (low + high) / 2
    left, right = _by_gauss(f, low, middle), _by_gauss(f, middle, high)
    if abs(left + right - _by_gauss(f, low, high)) <= PRECISION or not halvings:
        return left + right
    return integral(f, low, middle, halvings - 1) + integral(f, middle, high, halvings - 1)


def _by_gauss(f: Callable[[float], float], low: float, high: float) -> float:
    middle, half = (low + high) / 2, (high - low) / 2
    return half * float(sum(w * f(middle + half * x) for x, w in zip(POINTS, WEIGHTS)))


def shown_area(area: float) -> str:
    """Format an area, rounded up to three significant digits, or as "below 1e-12"."""
    if area < KNOWN:
        return "below 1e-12"
    return str(UP.create_decimal(f"{area:.12g}")).replace("E", "e")  # 0.25 may be a hair above


WIDTH, HEIGHT = 640, 445
LEGEND = 62  # height of the legend below
LEFT, TOP, RIGHT, BOTTOM = 70, 75, 610, 385  # of the square of the curve
TITLE = 78  # letters of the title in a line
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
  .marked, .missed { fill: #ff7b72 }
  .vain { fill: #d29922 }
}
"""
Points = Sequence[tuple[float, float]]


class Mark(NamedTuple):
    threshold: float
    chance: float  # to share a key there
    areas: Areas  # on both sides


def picture(points: Points, mark: "Mark | None", axis: str, title: str) -> str:
    """Return an SVG document with the curve through `points` and, if given, the threshold."""
    height = HEIGHT + (LEGEND if mark else 0)
    middle = (TOP + BOTTOM) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        *_title(title),
        *_grid(),
        *(_marked(points, mark) if mark else ()),
        f'<polyline class="curve" points="{_places(points)}"/>',
        _text((LEFT + RIGHT) / 2, BOTTOM + 45, "middle", axis),
        f'<g transform="translate(20 {middle}) rotate(-90)">',
        _text(0, 0, "middle", "probability of sharing a key"),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def x(similarity: float) -> float:
    return LEFT + similarity * (RIGHT - LEFT)


def y(chance: float) -> float:
    return BOTTOM + chance * (TOP - BOTTOM)


def _title(text: str) -> list[str]:
    """Return the SVG of the title; a long title has two lines, in smaller letters if needed."""
    lines = wrap(text, max(TITLE, len(text) // 2 + 10))
    size = min(14.0, 14 * TITLE / max(map(len, lines)))
    style = f'style="font-size: {size:.1f}px" x="{LEFT}"'
    return [
        f'<text {style} y="{40 - 18 * (len(lines) - 1 - i)}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]


def _grid() -> list[str]:
    parts = []
    for tenth in range(0, 11, 2):
        place = tenth / 10
        kind = "axis" if tenth == 0 else "grid"
        parts += [
            _line(kind, (place, 0), (place, 1)),
            _line(kind, (0, place), (1, place)),
            _text(x(place), BOTTOM + 20, "middle", f"{place:g}"),
            _text(LEFT - 10, y(place) + 5, "end", f"{place:g}"),
        ]
    return parts


def _marked(points: Points, mark: Mark) -> list[str]:
    """Return the SVG of shaded areas, their legend, and lines at the threshold and its recall."""
    t, chance, areas = mark
    above = [(t, 1), *(point for point in points if point[0] >= t), (1, 1)]
    below = [(0, 0), *(point for point in points if point[0] < t), (t, 0)]
    missed, vain = map(shown_area, areas)
    parts = _shade("missed", above, 0, f"false negatives: area {missed}, pairs that are missed")
    if areas.false_positives:
        text = f"false positives: area {vain}, dissimilar pairs compared"
        parts += _shade("vain", below, 25, text)
    said = f"threshold {t:.6g}: recall {shown(chance)}"
    return [
        *parts,
        _line("mark", (t, 0), (t, 1)),
        _line("mark", (0, chance), (1, chance)),
        _text(x(t), TOP - 9, "end" if t > 0.5 else "start", said, "marked"),
    ]


def _shade(kind: str, points: Points, row: int, text: str) -> list[str]:
    return [
        f'<polygon class="{kind}" points="{_places(points)}"/>',
        f'<rect class="{kind}" x="{LEFT}" y="{HEIGHT + row + 13}" width="14" height="14"/>',
        _text(LEFT + 22, HEIGHT + row + 25, "start", text),
    ]


def _places(points: Points) -> str:
    return " ".join(f"{x(s):.1f},{y(p):.1f}" for s, p in points)


def _line(kind: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = ((f"{x(s):.1f}", f"{y(p):.1f}") for s, p in (start, end))
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _text(left: float, base: float, anchor: str, text: str, kind: str = "") -> str:
    class_ = f' class="{kind}"' if kind else ""
    place = f'x="{left:.1f}" y="{base:.1f}" text-anchor="{anchor}"'
    return f"<text{class_} {place}>{escape(text)}</text>"
