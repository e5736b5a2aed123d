"""Candidate keys: keys that two records share, one for each group of records.

    key     records
    000:a   1  7         a candidate key
    001:b   9            no other record has this key
    002:c   1  7         the same group of records as at 000:a
    003:d   1  7  9      a candidate key

Near-copies share a dozen keys, and one is enough.  No pair is lost: it is printed at the smallest
key that its records share, and a key is left out only if a smaller one has the same records.  A
group of records is known by the sum of their hashes, mixed again.

A record is known by a hash of all its keys: records with the same keys are together at each of
them, and two different groups share 48 bits once in 2^48.  Keys of other partitions are not known,
so with many partitions fewer are left out.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged, first_of_run, starts_of_runs
from neardup.stages.external_group import by_key, grouped

HASH_BITS = 48
DIGEST_BITS = 40  # of a key in a filter, where a false positive costs a line and no pair
MANY = 256  # rows of one key, of those that are in memory together
SHARED = np.uint64((1 << HASH_BITS) - 1)  # instead of a record's hash


def digests_of(keys: np.ndarray) -> np.ndarray:
    """Return digests of keys (uint64), below 2^40, for a filter."""
    return mix(keys) >> np.uint64(64 - DIGEST_BITS)


def partition_of(digests: np.ndarray, partitions: int) -> np.ndarray:
    """Return the number of each digest's partition (uint64)."""
    return digests % np.uint64(partitions)


def rows_of(keys: Ragged) -> np.ndarray:
    """Return (key, hash of the record) for each key of some records: uint64 (n, 2).

    >>> rows = rows_of(Ragged.from_rows([[1, 2], [], [3]]))
    >>> rows[:, 0].tolist(), len(set(rows[:, 1].tolist()))
    ([1, 2, 3], 2)
    """
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mix(keys.values + np.uint64(1)))))
    hashes = mix(sums[keys.offsets[1:]] - sums[keys.offsets[:-1]]) >> np.uint64(64 - HASH_BITS)
    return np.column_stack((keys.values, np.repeat(hashes, keys.sizes)))


def at_most_twice(rows: np.ndarray) -> np.ndarray:
    """Return rows, sorted by key, without the third and further repeats of a row.

    Subtle: groups of records stay the same, since records with one hash are together at all their
    keys and are dropped together.  Where more than MANY rows of a key are left, two that are
    `SHARED` stand for them: it is a candidate key, whatever its group.

    >>> at_most_twice(np.array([[3, 1], [5, 2], [5, 4], [5, 2], [5, 2]], np.uint64)).tolist()
    [[3, 1], [5, 2], [5, 2], [5, 4]]
    """
    members = _members(rows)
    several = np.flatnonzero(members > 2)
    if not len(several):
        return rows
    some = rows[several]
    rows[several] = some[np.lexsort((some[:, 1], some[:, 0]))]
    kept = first_of_run(rows[:, 0]) | first_of_run(rows[:, 1])
    kept[1:] |= kept[:-1].copy()
    rows = rows[kept]
    many = _members(rows) > MANY
    if many.any():
        keys = rows[many, 0]
        keys = np.repeat(keys[first_of_run(keys)], 2)
        shared = np.column_stack((keys, np.full(len(keys), SHARED)))
        rows = by_key(np.concatenate((rows[~many], shared)))
    return rows


def _members(rows: np.ndarray) -> np.ndarray:
    """Return how many rows have the key of each row, sorted by key."""
    starts = starts_of_runs(rows[:, 0])
    members = np.diff(starts, append=len(rows))
    return np.repeat(members, members)


def candidate_keys(pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield arrays of the distinct candidate keys (uint64), from pieces of rows (uint64 (n, 2))."""
    for rows in grouped(map(_groups, grouped(pieces))):
        starts = starts_of_runs(rows[:, 0])
        yield np.minimum.reduceat(rows[:, 1], starts) if len(starts) else rows[:, 1]


def _groups(rows: np.ndarray) -> np.ndarray:
    """Return (group of records, key) for each key that several rows have.

    A `SHARED` key is a group of its own.
    """
    starts = starts_of_runs(rows[:, 0])
    if not len(starts):
        return rows
    keys, hashes = rows[starts, 0], rows[:, 1]
    several = np.diff(starts, append=len(rows)) > 1
    sums = np.add.reduceat(mix(hashes + np.uint64(1)), starts)
    of_its_own = np.logical_or.reduceat(hashes == SHARED, starts)
    sums[of_its_own] = mix(keys[of_its_own] + np.uint64(1))
    return np.column_stack((sums[several], keys[several]))
