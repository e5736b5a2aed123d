"""The keys that similar fingerprints share, by an exact join instead of a shuffle of all keys.

A fingerprint has a hundred keys or more; most of them are shared by no other record, or only by
dissimilar ones.  On one machine all fingerprints fit into memory, so records within the distance
are found first (`joins.near_bits`), and keys are made for these only: a pair without a shared key
is not found here either.

A record gets the smallest key that it shares with each similar one, at which they are compared.
Only --output links looks at others, where an edge may connect two records without being written.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from neardup.joins.near_bits import near_records
from neardup.schemes.fingerprints import Fingerprints
from neardup.schemes.scheme import Scheme
from neardup.sets.bit_vectors import Prints
from neardup.sets.ragged import Ragged, first_of_run, shared, spans
from neardup.similarity.sketches import bitmaps_and_sums

PAIRS_AT_ONCE = 1 << 12
MANY_NEW = 1 << 20  # keys with repeats, of pairs


def near_keys(scheme: Scheme, parts: Iterable[Ragged], every: bool) -> Ragged:
    """Return the keys that each row of `parts`, end to end, shares with similar rows.

    every: return all keys that two similar rows share, instead of the smallest.  Equal rows are
    compared once.
    """
    assert isinstance(scheme, Fingerprints)
    each = [
        (Prints.of(sets, scheme.bits), bitmaps_and_sums(sets)[1])
        for sets in chain([Ragged.from_rows([])], parts)
    ]
    sums = np.concatenate([some for _, some in each])
    # Rows with equal sums are equal sets, a kind: only the first row of each kind is compared.
    _, first, kind = np.unique(sums, return_index=True, return_inverse=True)
    prints = Prints.end_to_end([some for some, _ in each]).take(first)
    copies = np.bincount(kind, minlength=len(first))
    # Copies meet at the keys of their own kind; `rows` and `held` are pairs (kind, key).
    copied = np.flatnonzero(copies > 1)
    keys = scheme.keys_of(prints.take(copied), 0, len(scheme.ways) if every else 1)
    rows = np.column_stack((np.repeat(copied, keys.sizes).astype(np.uint64), keys.values))
    held, new = [rows], 0
    # Similar kinds meet at the keys they share; repeats are dropped when there are many.
    for left, right, key in _meeting(scheme, prints, every):
        held += [np.column_stack((side.astype(np.uint64), key)) for side in (left, right)]
        new += 2 * len(key)
        if new > MANY_NEW + len(held[0]):
            held, new = [_distinct(np.concatenate(held))], 0
    of_kind, key = _distinct(np.concatenate(held)).T
    of_kind = of_kind.astype(np.int64)
    # Each row of a kind gets the keys of the kind; `order` has the rows of one kind together.
    order = np.argsort(kind, kind="stable")
    records = order[spans((np.cumsum(copies) - copies)[of_kind], copies[of_kind])]
    keys_of_copies = np.repeat(key, copies[of_kind])
    order = np.lexsort((keys_of_copies, records))
    return Ragged.of_sizes(keys_of_copies[order], np.bincount(records, minlength=len(sums)))


def _distinct(rows: np.ndarray) -> np.ndarray:
    rows = rows[np.lexsort(rows.T[::-1])]
    return rows[first_of_run(rows[:, 0]) | first_of_run(rows[:, 1])]


def _meeting(
    scheme: Fingerprints, prints: Prints, every: bool
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (left, right, key): similar records, and the smallest key or `every` key of both.

    A pair may be repeated.  As in `pair_join`, keys of more and more bands are made for fewer and
    fewer pairs.
    """
    bands = len(scheme.ways)
    for pairs in near_records(prints.rows, None, scheme.bits, scheme.distance):
        for start in range(0, len(pairs[0]), PAIRS_AT_ONCE):
            left, right = (side[start : start + PAIRS_AT_ONCE] for side in pairs)
            low, high = 0, bands if every else 1
            while low < bands and len(left):
                # Make the keys of the next bands, once for each record of the pairs that are left.
                rows, place = np.unique((left, right), return_inverse=True)
                keys = scheme.keys_of(prints.take(rows), low, high)
                found = shared(keys, *place.reshape(2, -1))
                pair = np.repeat(np.arange(len(left)), found.sizes)
                taken = np.ones(len(pair), bool) if every else first_of_run(pair)
                yield left[pair[taken]], right[pair[taken]], found.values[taken]
                # A pair with a key is done; the others need the keys of twice as many bands.
                left, right = (np.delete(side, pair) for side in (left, right))
                low, high = high, 2 * high
