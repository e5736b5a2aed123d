"""The last steps of a run on this machine, from pairs to the answer.

    pairs, sorted ── dedup ── the answer
    edges, sorted ── decide ──┬─ removed records ── sort by place ── the lines that are kept
                              └─ with their reasons ─── sort by id ── removed

One process decides, while the reducers' edges are sorted; `decisions.decide` says what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Callable

from neardup.decisions.kept_lines import keep_file, keep_in_one
from neardup.engines.local.plan import Plan, sort_to, sorted_through
from neardup.engines.local.workers import Workers, total_size
from neardup.lines.answer_lines import removed_line
from neardup.reading.blocks import blocks_of
from neardup.reading.input_files import InputFile
from neardup.runtime.program import write_to
from neardup.stages.pairs import decide_edges, dedup_pairs


def write_answer(workers: Workers, plan: Plan, output: str, removed: IO[bytes] | None) -> None:
    """Write what was asked for, and `removed` beside it."""
    task = decide if plan.settings.output.decides else dedup
    pairs, name = plan.paths("pairs"), task.__name__
    plan.progress.stage(name, total_size(pairs))
    sorted_through(workers, plan, pairs, name, partial(task, plan))
    workers.together()
    if plan.settings.output.decides:
        finish(workers, plan, output, removed)


def dedup(plan: Plan, pairs: int) -> None:
    """Write each of the sorted pairs once."""
    counters = plan.counters("dedup")
    with open(pairs, "rb") as stream:
        blocks = plan.progress.counted(0, blocks_of(stream), len)
        plan.answer.write(dedup_pairs(chain.from_iterable(map(BytesIO, blocks)), counters))
    counters.report()


def decide(plan: Plan, edges: int) -> None:
    """Write the decision that follows from the sorted edges."""
    counters = plan.counters("decide")
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
            sort_to(workers, plan, [decided], file.fileno())
            workers.together()
        files = plan.new_files()
        plan.unchanged.check()
        plan.progress.stage("keep", total_size(file.path for file in files))
        workers.start("keep", lambda: keep(plan, by_place, files))
    if output == "removed" or removed:
        with open(decided, "rb") as lines, open(reasons, "wb") as file:
            file.writelines(map(removed_line, lines))
        write = partial(write_to, removed) if removed else plan.answer.write
        write_sorted(workers, plan, reasons, write)
    workers.together()
    if output == "kept":
        plan.unchanged.check()


def write_sorted(
    workers: Workers, plan: Plan, file: Path, write: Callable[[Iterable[bytes]], None]
) -> None:
    """Start a process that writes the sorted lines of a file until nobody reads them."""

    def show(lines: int) -> None:
        with open(lines, "rb") as stream:
            write(blocks_of(stream))

    sorted_through(workers, plan, [file], "print", show)


def keep(plan: Plan, by_place: Path, files: Sequence[InputFile]) -> None:
    """Write the kept lines of the files: one after the other, or each into a file of its own."""
    counters, answer, passed = plan.counters("keep"), plan.answer, plan.progress.of(0)
    form, longest = plan.settings.form, plan.settings.max_line
    with open(by_place, "rb") as decided:
        if not answer.folder:
            with answer.opened() as sink:
                keep_in_one(form, files, longest, decided, sink, passed)
        for i, file in enumerate(files if answer.folder else ()):
            with answer.opened_for(file.name) as sink:
                keep_file(form, file, longest, decided, sink)
            passed(total_size(other.path for other in files[: i + 1]))
    counters.report()
