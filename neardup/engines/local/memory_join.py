"""The join in memory (--memory): its budget, and its steps, `stages.pairs_in_memory` on files.

It takes the place of the steps from counting to reducing, and gives the same answer.  Records that
do not fit are left to those steps, and so are sets with very many similar ones, or without rare
tokens.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from neardup.engines.local.plan import Plan, Source, narrow_records, parsed_records
from neardup.engines.local.workers import total_size
from neardup.options.table import Options
from neardup.runtime.counters import Counters
from neardup.runtime.program import UsageError
from neardup.sets.ragged import Batch
from neardup.stages.pairs_in_memory import Choice, Sketches, pair_lines

DEFAULT_MEMORY = 2 << 30  # a quarter of the machine's memory, but at most this
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
LARGEST_INPUT, LOADED = 4, 2  # times the memory; times the sketches and keys in memory
UNITS = {unit: 1 << shift for unit, shift in zip("KMGT", (10, 20, 30, 40))}
HELP = (
    "maximum memory of a join in memory, which takes the place of steps in files if records fit "
    "into it, such as 500M; 0 for none (default: a quarter of the machine's memory, at most 2G)"
)


def memory_of(text: str | None) -> int:
    """Return the bytes of a --memory such as 500M, or the default; UsageError if it is not one."""
    if text is None:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
        for name in CONTAINER_LIMITS:
            with suppress(OSError, ValueError):  # the file is missing on this system, or has "max"
                limits.append(int(Path(name).read_text()))
        return min(min(limits) // 4, DEFAULT_MEMORY)
    if not re.fullmatch("0|[1-9][0-9]{0,5}[KMGT]", text):
        raise UsageError(f"--memory: {text!r} is neither a size such as 500M nor 0")
    return int(text.rstrip("KMGT")) * UNITS.get(text[-1], 1)


def may_fit(plan: Plan) -> bool:
    """Return whether the input is so small that its records may fit into the plan's memory."""
    return plan.size <= LARGEST_INPUT * plan.memory and plan.memory > 0


def parse(plan: Plan, k: int) -> None:
    """Parse worker k's share of the records, and keep them and their sketches on disk."""
    counters, choice = Counters("parse", reports=str(plan.folder)), Choice()
    with open(plan.path("known", k), "wb") as file:
        for batch in parsed_records(plan, k, counters):
            known = Sketches.of(batch, plan.settings)
            choice.add(batch.sets, known.sums)
            pickle.dump(tuple(known), file, protocol=5)
    _write_choice(plan, k, choice)
    counters.report()


def observed(source: Source) -> Source:
    """Return a source of the same batches that also writes what a choice of the scheme needs."""

    def batches(plan: Plan, k: int, counters: Counters) -> Iterator[Batch]:
        choice = Choice()
        for batch in source(plan, k, counters):
            choice.add(batch.sets)
            yield batch
        _write_choice(plan, k, choice)

    return batches


def _write_choice(plan: Plan, k: int, choice: Choice) -> None:
    plan.new("choice", k).write_bytes(pickle.dumps(choice))


def chosen(plan: Plan, options: Options) -> Options:
    """Return the options with --exact if the records, which are parsed, choose it."""
    parts = (pickle.loads(path.read_bytes()) for path in plan.paths("choice"))
    return replace(options, exact=Choice.of_parts(parts).is_exact(plan.settings))


def join(plan: Plan) -> None:
    """Write the pairs, or edges, of all parsed records, or no file if they do not fit."""
    counters = Counters("join", reports=str(plan.folder))
    counters.promise = plan.settings.scheme.promise
    if LOADED * total_size(plan.paths("known")) > plan.memory:
        return

    def batches() -> Iterator[Batch]:
        return (batch for k in range(plan.jobs) for batch in narrow_records(plan, k))

    def sketches() -> Iterator[Sketches]:
        for path in plan.paths("known"):
            with open(path, "rb") as file:
                while file.peek(1):
                    yield Sketches(*pickle.load(file))

    known = Sketches.end_to_end(sketches())
    found = pair_lines(known, batches, plan.settings, counters, plan.memory, plan.jobs)
    if found:
        for path in reversed(plan.paths("pairs")):
            with open(path, "wb") as sink:
                sink.writelines(found.blocks)  # all of them to one file
        if found.in_order:
            plan.path("in_order").touch()
        counters.report()
