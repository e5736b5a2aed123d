"""A curve from (0, 0) to (1, 1) as an SVG picture, for light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple
from xml.sax.saxutils import escape

from neardup.evaluation.areas import Areas, shown_area
from neardup.schemes.scheme import shown

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
        *_legend(HEIGHT, "missed", f"false negatives: area {missed_area}, pairs that never meet"),
    ]
    if mark.areas.false_positives:
        text = f"false positives: area {vain_area}, strangers that are compared"
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
