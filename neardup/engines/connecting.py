"""Clusters in rounds, on any engine: which step reads what, and when to stop.

    edges ── links ~ large ~ small ~ … ~ large ─ nothing unsettled: what it has read ~ clusters

An engine says how to run a step, and reads the counter of `decisions.star_rounds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Callable, NamedTuple

from neardup.process.errors import StageError
from neardup.process.summary import UNSETTLED


class Step(NamedTuple):
    """A job: from one folder to another, with steps of connect.py as its mapper and reducer."""

    source: str
    mapper: str  # "" where lines are to be sorted as they are
    reducer: str
    target: str


def in_rounds(
    edges: str,
    between: str,
    clusters: str,
    run_step: Callable[[Step], Mapping[str, int]],
    remove: Callable[[list[str]], None],
) -> int:
    """From a folder of edges to one of clusters; how many rounds that took.

    `between` is a folder for those of the rounds; `remove` is told which of them no step needs any
    more, but for the last.  `run_step` carries out a step, lines sorted by both their fields and
    parted by the first of them, and gives its counters.
    """
    source, mapper = edges, "links"
    for number in count():
        large = Step(source, mapper, "large", f"{between}/large-{number}")
        counters = run_step(large)
        if UNSETTLED not in counters:
            raise StageError(f"cannot tell whether to go on: {large.target} has no counters")
        if not counters[UNSETTLED]:
            break
        small = Step(large.target, "", "small", f"{between}/links-{number}")
        run_step(small)
        remove([large.target, *[source] * (source != edges)])
        source, mapper = small.target, ""
    run_step(Step(source, mapper, "clusters", clusters))
    return number
