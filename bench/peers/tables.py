"""Records as tables with a row for each key, token or set, for peers that join tables.

A table is its columns, name → array.  `row` is the row number of a record.
"""

from __future__ import annotations

import numpy as np

from bench.peers.reading import Records, ranks
from neardup.sets.hashing import band_words
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Threshold

Columns = dict[str, np.ndarray]
SEED = 1
COMMON = (
    3  # tokens that two prefixes have to share: with 1, dissimilar records are 150 times as many
)


def keys_of(records: Records, bands: int, rows: int) -> Columns:
    """Return the columns row and key: one key (uint64) for each record and band."""
    sets = Ragged(records.values, records.offsets)  # min-hashes ask for no order
    keys = band_words(sets, np.arange(bands), rows, SEED)
    return {"row": np.repeat(np.arange(len(sets), dtype=np.int32), bands), "key": keys.ravel()}


def tokens_of(sets: Ragged) -> Columns:
    """Return the columns row and token: the members of each set, renumbered from 0."""
    row = np.repeat(np.arange(len(sets), dtype=np.int32), sets.sizes)
    return {"row": row, "token": ranks(sets.values).astype(np.int32)}


def sizes_of(sets: Ragged, threshold: Threshold) -> Columns:
    """Return the columns row, size, fewest and prefix: each set's size, and two limits for a join.

    A partner shares at least `fewest` members.  Of those, COMMON (or all, if they are fewer) are
    among the first `prefix` of both sets, in any order that is the same for all sets.
    """
    sizes = sets.sizes.astype(np.int32)
    fewest = threshold.smallest_partner(sets.sizes).astype(np.int32)
    row = np.arange(len(sets), dtype=np.int32)
    return {"row": row, "size": sizes, "fewest": fewest, "prefix": sizes - fewest + COMMON}
