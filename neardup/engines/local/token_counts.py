"""Token counts on one machine: `neardup.count_stages` without lines and without sorts.

    records → entries of partition 0, 1 … ─┬─ worker 1 ─ its best million ─┬─ the best of these
                                           └─ worker 2 ─ its best million ─┘
                  partial counts                sums                          TokenCounts

An entry is a mixed token and a count.  A worker has one partition of them in memory at a time, or
where that is too large, a part of it; as in `sieve`, which has files like these.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from neardup.engines.local.entries import (
    ENTRIES_AT_ONCE,
    ENTRY_BYTES,
    MOST_PARTITIONS,
    EntryWriter,
    all_of,
    chosen_of,
)
from neardup.sets.hashing import mix, unmix
from neardup.sets.ragged import Ragged
from neardup.sets.runs import starts_of_runs
from neardup.token_counts.counts import TokenCounts, most_frequent, partial_counts
from neardup.token_counts.sample import Sample


def write_counts(
    batches: Iterable[Ragged], tokens: Sequence[IO[bytes]], sizes: IO[bytes], drawn: BinaryIO
) -> int:
    """The partial counts of one mapper's records, a file for each partition of the tokens.

    Returns how many bytes that were.
    """
    entries, sample, written = EntryWriter(list(tokens)), Sample(), 0
    for (size, holders), (token, frequency) in partial_counts(sample.watch(batches)):
        sizes.write(np.stack((size, holders.astype(np.uint64)), axis=1).tobytes())
        each_its_own = Ragged(mix(token), np.arange(len(token) + 1))
        entries.add(each_its_own, frequency.astype(np.uint64))
        written += ENTRY_BYTES * (len(size) + len(token))
    pickle.dump((sample.hashes, sample.sets), drawn)
    return written + drawn.tell()


def sum_counts(partitions: Iterable[list[Path]], target: Path) -> None:
    """Of each partition all mappers' files: the most frequent tokens of all go to `target`."""
    none = TokenCounts.empty()
    best = none.tokens, none.frequencies
    for sources in partitions:
        count = sum(source.stat().st_size for source in sources) // ENTRY_BYTES
        parts = 1 + count // ENTRIES_AT_ONCE
        for part in range(parts):
            entries = np.concatenate([_part_of(source, part, parts) for source in sources])
            mixed, frequencies = _summed(entries)
            best = _best(best, (unmix(mixed), frequencies))
    target.write_bytes(np.stack((best[0], best[1].astype(np.uint64)), axis=1).tobytes())


def counts_of_all(tokens: list[Path], sizes: list[Path], drawn: list[Path]) -> TokenCounts:
    """From what all workers have found."""
    sample = Sample()
    for path in drawn:
        sample.draw(*pickle.loads(path.read_bytes()))
    none = TokenCounts.empty()
    best = none.tokens, none.frequencies
    for path in tokens:
        entries = all_of(path)
        best = _best(best, (entries[:, 0], entries[:, 1].astype(np.int64)))
    size, holders = _summed(np.concatenate([all_of(path) for path in sizes]))
    return TokenCounts(size.astype(np.int64), holders, *best, sample.sets)


def _part_of(source: Path, part: int, parts: int) -> np.ndarray:
    if parts == 1:
        return all_of(source)
    return chosen_of(source, lambda mixed: mixed // MOST_PARTITIONS % parts == part)


def _summed(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Entries (uint64 (n, 2)) → their distinct values, ascending, and the sums of their counts."""
    entries = entries[np.argsort(entries[:, 0])]
    starts = starts_of_runs(entries[:, 0])
    sums = np.add.reduceat(entries[:, 1], starts)
    return entries[starts, 0], sums.astype(np.int64)


def _best(
    some: tuple[np.ndarray, np.ndarray], more: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent tokens of both, by token."""
    return most_frequent(*map(np.concatenate, zip(some, more)))
