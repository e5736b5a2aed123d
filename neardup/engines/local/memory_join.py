"""The join in memory of a run that finds every pair, if its records fit into --memory.

    parsed records ── distinct sets, each with its ids ── `join_up_to` ── pairs, or edges

It takes the place of the steps from counting to reducing, needs no keys and no token counts, and
gives the same answer.  Records that do not fit are left to those steps, and so are sets with very
many similar ones, of which a bucket writes only what a decision needs (`edge_join`).

Letters: n records with T tokens.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from neardup.engines.local.plan import Plan, kept_records, parsed_records
from neardup.joins.bitmap_joins import join_up_to
from neardup.options.settings import Settings
from neardup.runtime.counters import Counters
from neardup.runtime.program import UsageError
from neardup.sets.hashing import mix
from neardup.sets.ragged import Batch, Ragged, first_of_run
from neardup.similarity.measures import SetMeasure
from neardup.verification import OUTPUTS
from neardup.verification.bucket_batch import BucketBatch
from neardup.verification.pair_join import PairJoin

DEFAULT_MEMORY = 2 << 30  # at most; else a quarter of the machine's
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
UNITS = {unit: 1 << shift for unit, shift in zip("KMGT", (10, 20, 30, 40))}
HELP = (
    "maximum memory of a join in memory, which runs that find every pair use if their records fit "
    "into it, such as 500M; 0 for none (default: a quarter of the machine's memory, at most 2G)"
)
TOKEN_BYTES, RECORD_BYTES = 60, 400  # at the peak of the join
MAX_PAIRS = 64  # of similar sets, for each record


def memory_of(text: str | None) -> int:
    """Return the bytes of a --memory such as 500M, or the default; UsageError if it is not one."""
    if text is None:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
        for name in CONTAINER_LIMITS:
            with suppress(OSError, ValueError):  # of another system, or "max"
                limits.append(int(Path(name).read_text()))
        return min(min(limits) // 4, DEFAULT_MEMORY)
    if not re.fullmatch("0|[1-9][0-9]{0,5}[KMGT]", text):
        raise UsageError(f"--memory: {text!r} is neither a size such as 500M nor 0")
    return int(text.rstrip("KMGT")) * UNITS.get(text[-1], 1)


def is_possible(settings: Settings, memory: int) -> bool:
    """Return whether a join in memory would give the answer that is asked for."""
    plain = settings.scheme.finds_every_pair and isinstance(settings.measure, SetMeasure)
    links = settings.output == OUTPUTS["links"]  # they depend on the buckets
    return plain and not links and not settings.against and memory > 0


def parse(plan: Plan, k: int) -> None:
    """Parse worker k's share of the records, and keep them on disk."""
    counters = Counters("parse", reports=str(plan.folder))
    for _ in parsed_records(plan, k, counters):
        pass
    counters.report()


def fits(plan: Plan) -> bool:
    """Return whether the join of the parsed records fits into the plan's memory."""
    sizes = [np.fromfile(path, np.uint64)[::2] for path in plan.paths("record_sketches")]
    tokens, records = sum(int(each.sum()) for each in sizes), sum(map(len, sizes))
    return TOKEN_BYTES * tokens + RECORD_BYTES * records <= plan.memory


def join(plan: Plan) -> None:
    """Write the pairs, or edges, of all parsed records, or no file if there are too many pairs."""
    counters = Counters("join", reports=str(plan.folder))
    counters.promise = plan.settings.scheme.promise
    batches = (batch for k in range(plan.jobs) for batch in kept_records(plan, k, counters))
    lines = pair_lines(batches, plan.settings, counters)
    if lines is not None:
        for path in reversed(plan.paths("pairs")):
            with open(path, "wb") as file:
                file.writelines(lines)  # all of them to one file
        counters.report()


def pair_lines(
    batches: Iterable[Batch], settings: Settings, counters: Counters
) -> Iterator[bytes] | None:
    """Return the lines of the pairs, or edges, of all records; None if there are very many."""
    held = [settings.tag.tagged(batch) if settings.tag else batch for batch in batches]
    ids = [id_ for batch in held for id_ in batch.ids]
    sets = Ragged.end_to_end([batch.sets for batch in held])
    held.clear()
    first = first_rows(sets)
    alone = first == np.arange(len(ids))
    row = np.flatnonzero(alone)
    measure = settings.measure
    assert isinstance(measure, SetMeasure)
    distinct = sets if len(row) == len(ids) else sets.take(row)
    joined = join_up_to(MAX_PAIRS * len(ids), measure, distinct)
    if joined is None:
        return None
    left, right = row[joined.left], row[joined.right]
    larger = sets.sizes[left] > sets.sizes[right]
    left, right = np.where(larger, right, left), np.where(larger, left, right)
    used = np.unique(np.concatenate((left, right, first[~alone])))
    batch = batch_of(used, first, ids, sets)
    places = np.searchsorted(used, left), np.searchsorted(used, right)
    return settings.join(counters, PairJoin).of_pairs(batch, *places)


def first_rows(sets: Ragged) -> np.ndarray:
    """Return, for each of n sets that are not empty, the first row with an equal set (int64).

    >>> first_rows(Ragged.from_rows([[7, 9], [5], [7, 9]])).tolist()
    [0, 1, 0]
    """
    first = np.arange(len(sets))
    if len(sets):
        sums = np.add.reduceat(mix(sets.values), sets.offsets[:-1])
        order = np.argsort(sums)
        begins = first_of_run(sums[order])
        several = np.sort(order[~(begins & np.append(begins[1:], True))])
        known: dict[bytes, int] = {}
        for i in several.tolist():
            first[i] = known.setdefault(sets.row(i).tobytes(), i)
    return first


def batch_of(used: np.ndarray, first: np.ndarray, ids: list[bytes], sets: Ragged) -> BucketBatch:
    """Make one bucket of the sets at the rows `used` (int64, ascending), with the ids of all rows.

    first: the first row with the set of each row, as `first_rows` returns it.
    """
    place = np.minimum(np.searchsorted(used, first), len(used) - 1)
    mine = np.flatnonzero(used[place] == first) if len(used) else first[:0]
    grouped: list[list[bytes]] = [[] for _ in used]
    for i, at in zip(mine.tolist(), place[mine].tolist()):
        grouped[at].append(ids[i])
    repeats: list[list[bytes]] = [[] for _ in used]
    for at, names in enumerate(grouped):
        if len(names) > 1:
            names.sort()
            repeats[at] = [a for a, b in zip(names, names[1:]) if a == b]
            grouped[at] = list(dict.fromkeys(names))
    none = np.zeros(len(used), np.int64)
    rows = np.arange(len(used))
    return BucketBatch(none.astype(np.uint64), none, rows, grouped, repeats, sets.take(used))
