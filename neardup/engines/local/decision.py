"""The end of run_local.sh where a decision is asked for.

    edges, sorted ── decide ──┬─ the records that go ── sort by place ── the lines that stay
                              └─ with their reasons ─── sort by id ───── removed

One process decides, while the reducers still write; `decision_stages` says what it holds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Callable

from neardup.decision_stages import decide_edges
from neardup.decisions.keep_lines import kept_lines, places_from
from neardup.engines.local.folder import STDIN, naming, total_size
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
        blocks = plan.progress.counted(0, blocks_of(lines), len)
        file.writelines(decide_edges(blocks, plan.settings, counters))
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
        plan.progress.stage("keep", total_size(files))

        def write_kept() -> None:
            with naming(plan.answer):
                keep(by_place, files, [plan.places[i] for i in new], plan.progress.of(0))

        workers.start("keep", write_kept)
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
        with open(lines, "rb") as stream, naming(plan.answer):
            write_all(blocks_of(stream))

    workers.start("print", show)
    os.close(lines)  # so that the sort ends when nobody reads on


def without_places(decided: Path, removed: Path) -> None:
    """The lines of `--output removed`."""
    with open(decided, "rb") as lines, open(removed, "wb") as file:
        file.writelines(map(removed_line, lines))


def keep(
    by_place: Path,
    files: Sequence[str],
    places: Sequence[int],
    passed: Callable[[int], None] = lambda _: None,
) -> None:
    """Write the lines of the files that stay; `places` are those of their first lines.

    `passed` is as in `read_files`.
    """
    counters = Counters("keep")
    with open(by_place, "rb") as decided:
        for i, (name, first) in enumerate(zip(files, places)):

            def in_all(done: int, before: int = total_size(files[:i])) -> None:
                passed(before + done)

            lines = unpacked(name, in_all)
            write_all(kept_lines(lines, first, places_from(decided, first)))
    counters.report()
