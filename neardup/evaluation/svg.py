"""A curve from (0, 0) to (1, 1) as an SVG picture, for light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from neardup.schemes.scheme import shown

WIDTH, HEIGHT = 640, 420
LEFT, TOP, RIGHT, BOTTOM = 70, 50, 610, 360  # of the square of the curve
STYLE = """
text { font: 14px sans-serif; fill: #24292f }
line, polyline { fill: none; stroke: #8c959f; stroke-width: 1 }
.grid { stroke-opacity: 0.3 }
.curve { stroke: #0969da; stroke-width: 3 }
.mark { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 6 4 }
.marked { fill: #cf222e }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .curve { stroke: #58a6ff }
  .mark { stroke: #ff7b72 }
  .marked { fill: #ff7b72 }
}
"""


def picture(
    points: Iterable[tuple[float, float]], mark: tuple[float, float] | None, axis: str, title: str
) -> str:
    """The curve through `points`, with dashed lines from `mark` to both axes; a whole document."""
    line = " ".join(f"{x(s):.1f},{y(p):.1f}" for s, p in points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        _title(title),
        *_grid(),
        *(_mark(*mark) if mark else ()),
        f'<polyline class="curve" points="{line}"/>',
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
    (70, 610, 360, 50)
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


def _mark(similarity: float, chance: float) -> list[str]:
    """The threshold upright, the promise level."""
    height = y(chance)
    side, gap = ("end", -8) if similarity > 0.5 else ("start", 8)
    return [
        _line("mark", x(similarity), y(0), x(similarity), height),
        _line("mark", x(0), height, x(similarity), height),
        _text(x(similarity) + gap, y(0.05), side, f"threshold {similarity:.6g}", "marked"),
        _text(x(0) + 8, height + 18, "start", f"recall there {shown(chance)}", "marked"),
    ]


def _title(text: str) -> str:
    """In letters as small as it takes to fit in."""
    size = min(14, 1100 / len(text))
    return f'<text style="font-size: {size:.1f}px" x="{LEFT}" y="25">{escape(text)}</text>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(left: float, base: float, anchor: str, text: str, kind: str = "") -> str:
    class_ = f' class="{kind}"' if kind else ""
    place = f'x="{left:.1f}" y="{base:.1f}" text-anchor="{anchor}"'
    return f"<text{class_} {place}>{escape(text)}</text>"
