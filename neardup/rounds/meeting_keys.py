"""Which keys of a partition two records share, and of those that bring the same records together,
the smallest.

    key     records
    000:a   1  7         lines
    001:b   9            no lines: nobody to meet
    002:c   1  7         no lines: the same group of records as at 000:a
    003:d   1  7  9      lines

Near-copies share a dozen keys.  No pair is lost by that: it is printed at the smallest key it
shares, and a key is left out only if a smaller one has the same records.  A group is known by the
sum of its records' hashes; a key of very many records is a group of its own.  Of the keys of other
partitions nothing is known here, so with many partitions fewer keys are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from neardup.process.errors import StageError
from neardup.rounds.digests import digests_of, partition_of
from neardup.rounds.key_blocks import SHARED, unpack
from neardup.rounds.rows_by_word import RowsByWord
from neardup.sets.hashing import mix
from neardup.sets.runs import starts_of_runs


def meeting_keys(
    blocks: Iterable[bytes], partition: int, partitions: int, options: bytes = b""
) -> Iterator[np.ndarray]:
    """uint64, each key once: where records that are in these blocks meet.

    StageError where a block is none of this partition, or damaged, or of other options.
    """
    with RowsByWord() as entries, RowsByWord() as groups:
        for block in blocks:
            entries.add(_checked(block, partition, partitions, options))
        for some in entries.together():
            groups.add(groups_of(some))
        for some in groups.together():
            starts = starts_of_runs(some[:, 0])
            yield np.minimum.reduceat(some[:, 1], starts) if len(starts) else some[:, 1]


def groups_of(entries: np.ndarray) -> np.ndarray:
    """Of entries (uint64 (n, 2), by key) the keys of several records, as (group, key)."""
    starts = starts_of_runs(entries[:, 0])
    if not len(starts):
        return entries
    keys, hashes = entries[starts, 0], entries[:, 1]
    several = np.diff(starts, append=len(entries)) > 1
    sums = np.add.reduceat(mix(hashes + np.uint64(1)), starts)
    of_its_own = np.logical_or.reduceat(hashes == SHARED, starts)
    sums[of_its_own] = mix(keys[of_its_own] + np.uint64(1))
    return np.column_stack((sums[several], keys[several]))


def _checked(block: bytes, partition: int, partitions: int, options: bytes) -> np.ndarray:
    try:
        entries = unpack(block, options)
        if (partition_of(digests_of(entries[:, 0]), partitions) == partition).all():
            return entries
    except ValueError:
        pass
    raise StageError(
        "expected blocks of keys, as share_keys.py map writes them: this one is damaged, or no "
        "such, or map had other options: give reduce the same"
    )
