"""The end of run_local.sh where a decision is asked for.

    edges, sorted ── decide ──┬─ the records that go ── sort by place ── the lines that stay
                              └─ with their reasons ─── sort by id ───── removed

One process decides, while the reducers still write; `decision_stages` says what it holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Callable

from neardup.decision_stages import decide_edges
from neardup.decisions.keep_records import keep_file, keep_in_one, nothing
from neardup.engines.local.answer_file import STDOUT_ANSWER, Answer
from neardup.engines.local.folder import total_size
from neardup.engines.local.plan import Plan, sort, sort_to
from neardup.engines.local.workers import Workers
from neardup.lines.decided_lines import removed_line
from neardup.options.settings import Settings
from neardup.process.counters import Counters
from neardup.process.program import write_to
from neardup.reading.blocks import blocks_of
from neardup.reading.input_files import InputFile


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
        write_sorted(workers, plan, decided, plan.answer.write)
    elif output == "kept":
        by_place = plan.path("by_place")
        with open(by_place, "wb") as file:
            sort_to(workers, plan, decided, file.fileno())
            workers.together()
        files = plan.new_files()
        plan.unchanged.check()
        plan.progress.stage("keep", total_size(file.path for file in files))
        to, passed = plan.answer, plan.progress.of(0)
        workers.start("keep", lambda: keep(plan.settings, by_place, files, to, passed))
    if output == "removed" or removed:
        without_places(decided, reasons)
        write = partial(write_to, removed) if removed else plan.answer.write
        write_sorted(workers, plan, reasons, write)
    workers.together()
    if output == "kept":
        plan.unchanged.check()


def write_sorted(
    workers: Workers, plan: Plan, file: Path, write: Callable[[Iterable[bytes]], None]
) -> None:
    """Start a process that writes the sorted lines of a file until nobody reads them."""
    lines = sort(workers, plan, [file])

    def show() -> None:
        with open(lines, "rb") as stream:
            write(blocks_of(stream))

    workers.start("print", show)
    os.close(lines)  # so that the sort ends when nobody reads on


def without_places(decided: Path, removed: Path) -> None:
    """The lines of `--output removed`."""
    with open(decided, "rb") as lines, open(removed, "wb") as file:
        file.writelines(map(removed_line, lines))


def keep(
    settings: Settings,
    by_place: Path,
    files: Sequence[InputFile],
    answer: Answer = STDOUT_ANSWER,
    passed: Callable[[int], None] = nothing,
) -> None:
    """Write what stays of the files: one after the other, or each into a file of its own.

    `passed` is as in `read_files`.
    """
    counters = Counters("keep")
    form, longest = settings.form, settings.max_line
    with open(by_place, "rb") as decided:
        if not answer.folder:
            with answer.opened() as sink:
                keep_in_one(form, files, longest, decided, sink, passed)
        for i, file in enumerate(files if answer.folder else ()):
            with answer.opened_for(file.name) as sink:
                keep_file(form, file, longest, decided, sink)
            passed(total_size(other.path for other in files[: i + 1]))
    counters.report()
