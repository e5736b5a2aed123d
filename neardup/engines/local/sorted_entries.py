"""The entries of a partition in order of keys, in bounded memory.

What is too large to be sorted at once is cut into ranges of keys, as even as a look at 65,536 parts
of the range allows.  The entries of one key that very many records share need no sorting.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from neardup.engines.local import entries
from neardup.engines.local.entries import all_of, chosen_of, pieces_of
from neardup.lines.keys import KEY_BITS
from neardup.sets.ragged import chunks

DIGIT_BITS = 16


def in_order(sources: list[Path], count: int) -> Iterator[np.ndarray]:
    """uint64 (n, 2): all `count` entries of these files, some at a time; of a key in any order."""
    if count <= entries.ENTRIES_AT_ONCE:
        yield _sorted([all_of(source) for source in sources])
    else:
        yield from _cut(sources, 0, KEY_BITS)


def _cut(sources: list[Path], low: int, bits: int) -> Iterator[np.ndarray]:
    """Those with keys from `low` on, of which this many bits differ."""
    shift = max(0, bits - DIGIT_BITS)
    sizes = np.zeros(1 << bits - shift, dtype=np.int64)
    for source in sources:
        for piece in pieces_of(source):
            digits = piece[:, 0] - np.uint64(low) >> np.uint64(shift)
            mine = digits[(piece[:, 0] >= low) & (digits < len(sizes))]
            sizes += np.bincount(mine.astype(np.int64), minlength=len(sizes))
    for first, last in chunks(sizes, entries.ENTRIES_AT_ONCE):
        start, stop = (np.uint64(low + (digit << shift)) for digit in (first, last))

        def mine_of(
            keys: np.ndarray, start: np.uint64 = start, stop: np.uint64 = stop
        ) -> np.ndarray:
            return (keys >= start) & (keys < stop)

        if sizes[first:last].sum() <= entries.ENTRIES_AT_ONCE:
            yield _sorted([chosen_of(source, mine_of) for source in sources])
        elif shift:
            yield from _cut(sources, int(start), shift)
        else:  # of one key
            for source in sources:
                yield from (piece[mine_of(piece[:, 0])] for piece in pieces_of(source))


def _sorted(some: list[np.ndarray]) -> np.ndarray:
    found = np.concatenate(some)
    return found[np.argsort(found[:, 0])]
