"""Token counts on one machine: `stages.token_counting` without lines and without sorts.

    records → postings of partition 0, 1 … ─┬─ worker 1 ─ its best million ─┬─ the best of these
                                            └─ worker 2 ─ its best million ─┘
                   partial counts                 sums                          TokenCounts

A posting is a mixed token and a count; `external_group` brings those of a token together.
"""

import pickle
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from neardup.engines.local.plan import Plan, everywhere, new_records
from neardup.engines.local.workers import Workers, total_size
from neardup.runtime.summary import SHUFFLED
from neardup.sets.hashing import mix, unmix
from neardup.sets.ragged import Ragged, starts_of_runs
from neardup.sets.token_counts import Sample, TokenCounts, most_frequent, partial_counts
from neardup.stages.external_group import ROW_BYTES, WORD_BITS, PartitionWriter, by_key, key_ranges

Column = tuple[np.ndarray, np.ndarray]  # distinct values (uint64), ascending; their counts (int64)


def counted(workers: Workers, plan: Plan) -> TokenCounts:
    """Count the tokens of all records, which are parsed and kept on disk on the way."""
    plan.progress.stage("tokens", total_size(plan.files), together=True)
    everywhere(workers, plan, "mapper", count_tokens)
    everywhere(workers, plan, "counts", sum_tokens)
    counts = counts_of_all(plan.paths("best"), plan.paths("sizes"), plan.paths("sample"))
    plan.progress.clear()  # for what the scheme will cost
    return counts


def count_tokens(plan: Plan, k: int) -> None:
    """Count the tokens of a share of the records."""
    counters = plan.counters("tokens")
    with ExitStack() as stack:
        paths = [plan.path("tokens", k, part) for part in range(plan.partitions)]
        tokens = [stack.enter_context(open(path, "wb")) for path in paths]
        sizes = stack.enter_context(open(plan.path("sizes", k), "wb"))
        sample = stack.enter_context(open(plan.path("sample", k), "wb"))
        batches = (batch.sets for batch in new_records(plan, k, counters))
        counters.add(SHUFFLED, write_counts(batches, tokens, sizes, sample))
    counters.report()


def sum_tokens(plan: Plan, k: int) -> None:
    """Sum every N-th partition of the tokens of all mappers."""
    mine = [plan.paths("tokens", part) for part in range(k, plan.partitions, plan.jobs)]
    sum_counts(mine, plan.path("best", k))
    for paths in mine:
        for path in paths:
            path.unlink()


def write_counts(
    batches: Iterable[Ragged], tokens: Sequence[IO[bytes]], sizes: IO[bytes], drawn: BinaryIO
) -> int:
    """Write the partial counts of records, tokens to a file for each partition.

    Returns the number of bytes.
    """
    writer, sample, rows = PartitionWriter(tokens), Sample(), 0
    for (size, holders), (token, frequency) in partial_counts(sample.watch(batches)):
        sizes.write(np.column_stack((size, holders.astype(np.uint64))).data)
        writer.add(np.column_stack((mix(token), frequency.astype(np.uint64))))
        rows += len(size) + len(token)
    pickle.dump((sample.hashes, sample.sets), drawn)
    return ROW_BYTES * rows + drawn.tell()


def sum_counts(partitions: Iterable[list[Path]], target: Path) -> None:
    """Write the most frequent tokens of some partitions, each given as the files of all mappers."""
    none = TokenCounts.empty()
    best = none.tokens, none.frequencies
    for sources in partitions:
        for keys in key_ranges(sources, WORD_BITS):
            mixed, frequencies = _summed(keys.rows(sources))
            best = _best(best, (unmix(mixed), frequencies))
    target.write_bytes(np.column_stack((best[0], best[1].astype(np.uint64))).data)


def counts_of_all(tokens: list[Path], sizes: list[Path], drawn: list[Path]) -> TokenCounts:
    """Merge the counts of all workers."""
    sample = Sample()
    for path in drawn:
        sample.draw(*pickle.loads(path.read_bytes()))
    none = TokenCounts.empty()
    best = none.tokens, none.frequencies
    for path in tokens:
        rows = np.fromfile(path, np.uint64).reshape(-1, 2)
        best = _best(best, (rows[:, 0], rows[:, 1].astype(np.int64)))
    rows = np.concatenate([np.fromfile(path, np.uint64) for path in sizes]).reshape(-1, 2)
    size, holders = _summed(by_key(rows))
    return TokenCounts(size.astype(np.int64), holders, *best, sample.sets)


def _summed(rows: np.ndarray) -> Column:
    """Return the distinct values, and the sum of each one's counts, of rows by value."""
    starts = starts_of_runs(rows[:, 0])
    return rows[starts, 0], np.add.reduceat(rows[:, 1], starts).astype(np.int64)


def _best(some: Column, more: Column) -> Column:
    """Return the most frequent tokens of both, by token."""
    return most_frequent(*map(np.concatenate, zip(some, more)))
