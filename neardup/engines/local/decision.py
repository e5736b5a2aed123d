"""The end of run_local.sh where a decision is asked for.

    edges, sorted ── decide ──┬─ the records that go ── sort by place ── the lines that stay
                              └─ with their reasons ─── sort by id ───── removed

One process decides, while the reducers still write; `decision_stages` says what it holds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from neardup.decision_stages import decide_edges
from neardup.decisions.keep_lines import kept_lines, places_from
from neardup.engines.local.folder import STDIN
from neardup.engines.local.plan import Plan, sort, sort_to
from neardup.engines.local.workers import Workers
from neardup.lines.decided_lines import removed_line
from neardup.process.counters import Counters
from neardup.process.program import write_all
from neardup.reading.blocks import blocks_of
from neardup.reading.packed import unpacked
from neardup.reading.places import NEW


def decide(plan: Plan, edges: int) -> None:
    counters = Counters("decide")
    with open(edges, "rb") as lines, open(plan.path("decided"), "wb") as file:
        file.writelines(decide_edges(blocks_of(lines), plan.settings, counters))
    counters.report()


def finish(workers: Workers, plan: Plan, output: str, removed: IO[bytes] | None) -> None:
    """From decided lines to what the user asked for."""
    decided, reasons = plan.path("decided"), plan.path("reasons")
    if output == "clusters":
        print_sorted(workers, plan, decided)
    elif output == "kept":
        by_place = plan.path("by_place")
        with open(by_place, "wb") as file:
            sort_to(workers, plan, decided, file.fileno())
            workers.together()
        new = [i for i, place in enumerate(plan.places) if place >= NEW]
        files = [str(plan.path(STDIN)) if plan.files[i] == "-" else plan.files[i] for i in new]
        workers.start("keep", lambda: keep(by_place, files, [plan.places[i] for i in new]))
    if output == "removed" or removed:
        without_places(decided, reasons)
        if removed:
            sort_to(workers, plan, reasons, removed.fileno())
        else:
            print_sorted(workers, plan, reasons)
    workers.together()


def print_sorted(workers: Workers, plan: Plan, file: Path) -> None:
    """Start what writes the sorted lines of a file to stdout, as long as somebody reads them."""
    lines = sort(workers, plan, [file])

    def show() -> None:
        with open(lines, "rb") as stream:
            write_all(blocks_of(stream))

    workers.start("print", show)
    os.close(lines)  # so that the sort ends when nobody reads on


def without_places(decided: Path, removed: Path) -> None:
    """The lines of `--output removed`."""
    with open(decided, "rb") as lines, open(removed, "wb") as file:
        file.writelines(map(removed_line, lines))


def keep(by_place: Path, files: Sequence[str], places: Sequence[int]) -> None:
    """Write the lines of the files that stay; `places` are those of their first lines."""
    counters = Counters("keep")
    with open(by_place, "rb") as decided:
        for name, first in zip(files, places):
            write_all(kept_lines(unpacked(name), first, places_from(decided, first)))
    counters.report()
