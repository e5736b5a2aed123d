"""Bars: a table of counts, each with a bar as inline SVG, which print keeps and any width fits."""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p

from neardup.report.facts import Bar
from neardup.report.safe_html import safe

SLIVER = 0.6  # of a hundred: what is there can be seen


def bars(head: tuple[str, str], rows: Sequence[Bar], logarithmic: bool = False) -> str:
    """head: what the labels are, and the counts."""
    top = max((row.count for row in rows), default=0)
    shown = "".join(_row(row, _length(row.count, top, logarithmic)) for row in rows)
    names = f'<th scope="col">{head[0]}</th><th scope="col" colspan="2">{head[1]}</th>'
    return f'<table class="bars"><thead><tr>{names}</tr></thead><tbody>{shown}</tbody></table>'


def _length(count: int, top: int, logarithmic: bool) -> float:
    """Of a bar, where the longest has 100; a logarithmic one of count 1 has some length too.

    >>> _length(5, 10, False), _length(0, 10, False), round(_length(1, 3, True), 3)
    (50.0, 0.0, 50.0)
    """
    if not count:
        return 0.0
    share = log1p(count) / log1p(top) if logarithmic else count / top
    return max(SLIVER, 100 * share)


def _row(row: Bar, length: float) -> str:
    return (
        f'<tr><th scope="row">{safe(row.label)}</th><td class="n">{row.count:,}</td>'
        f"<td>{bar(length)}</td></tr>"
    )


def bar(length: float) -> str:
    return (
        '<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="track" width="100" height="1"/><rect width="{length:.1f}" height="1"/></svg>'
    )
