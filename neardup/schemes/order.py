"""The prefix filter: two similar sets share one of their first tokens, in any order of all tokens.

Sets of n elements that share ⌈t·n⌉ of them cannot keep all of these out of their first
n-⌈t·n⌉+1 (Chaudhuri, Ganti, Kaushik, ICDE 2006; Bayardo, Ma, Srikant, WWW 2007).  Any order will
do; with the rare tokens first, few strangers have one in common.
"""

from __future__ import annotations

import numpy as np

from neardup.counts import TokenCounts
from neardup.errors import StageError
from neardup.hashing import mix, random_words
from neardup.measures import Threshold
from neardup.ragged import Ragged

HASH_BITS = 40
MOST = (1 << 64 - HASH_BITS) - 1


def prefix_sizes(sizes: np.ndarray, threshold: Threshold | None) -> np.ndarray:
    """How many first tokens sets of these sizes (int64) need; all of them without a threshold.

    >>> prefix_sizes(np.array([1, 9, 10, 35]), Threshold.parse("0.9")).tolist()
    [1, 1, 2, 4]
    """
    if threshold is None:
        return sizes
    return sizes + 1 - -(-sizes * threshold.num // threshold.den)


def first_tokens(
    sets: Ragged, take: np.ndarray, counts: TokenCounts | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """(row, token) of the first take[i] tokens of each row i, rare ones first; int64 and uint64.

    Tokens that the counts know to be in one record only are left out: nobody meets there.  So the
    counts must be of all records that are to meet; StageError where they cannot be.
    """
    frequency = np.ones(len(sets.values), np.int64) if counts is None else counts.of(sets.values)
    # Equally frequent tokens come in the order of a hash, and those of equal hashes as they are.
    word = mix(sets.values ^ random_words(seed, 1, stream=3)) >> np.uint64(64 - HASH_BITS)
    word |= np.minimum(frequency, MOST).astype(np.uint64) << np.uint64(HASH_BITS)
    row = np.repeat(np.arange(len(sets)), sets.sizes)
    order = np.lexsort((word, row))
    place = np.arange(len(order)) - np.repeat(sets.offsets[:-1], sets.sizes)
    order = order[place < np.repeat(take, sets.sizes)]
    if counts is not None and counts.complete:
        strange = np.setdiff1d(sets.sizes, counts.sizes)
        if len(strange):
            raise StageError(
                f"--counts: not the counts of this input, which has a record of {strange[0]} "
                "shingles; count_tokens.py makes them"
            )
        order = order[frequency[order] > 1]
    return row[order], sets.values[order]
