"""The prefix filter: two similar sets share one of their first tokens, in any order of all tokens.

Sets of n elements that share ⌈t·n⌉ of them cannot keep all of these out of their first
n-⌈t·n⌉+1 (Chaudhuri, Ganti, Kaushik, ICDE 2006; Bayardo, Ma, Srikant, WWW 2007).  Any order will
do; with the rare tokens first, few strangers have one in common.
"""

from __future__ import annotations

import numpy as np

from neardup.lines.keys import HASH_BITS
from neardup.process.errors import StageError
from neardup.sets.hashing import mix, random_words
from neardup.sets.ragged import Ragged, chunks
from neardup.sets.runs import spans
from neardup.similarity.threshold import Threshold
from neardup.token_counts.counts import TokenCounts

SORTED_TOKENS = 1 << 16  # at once, so that the number of a set fits 16 bits


def prefix_sizes(sizes: np.ndarray, threshold: Threshold | None) -> np.ndarray:
    """How many first tokens sets of these sizes (int64) need; all of them without a threshold.

    >>> prefix_sizes(np.array([1, 9, 10, 35]), Threshold.parse("0.9")).tolist()
    [1, 1, 2, 4]
    """
    if threshold is None:
        return sizes
    return sizes + 1 - threshold.smallest_partner(sizes)


def rarest(sets: Ragged, counts: TokenCounts | None, take: np.ndarray) -> Ragged:
    """The `take[i]` (int64) rarest tokens of each set i; in order of a hash without counts.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2], [1, 9]])
    >>> rarest(sets, TokenCounts.of_sets(sets), np.array([2, 1, 0])).row(0).tolist()
    [2, 3]
    """
    ranks = mix(sets.values)
    if counts is not None:  # of tokens equally frequent, and equal in 32 bits, the smaller first
        ranks >>= np.uint64(32)
        frequencies = np.minimum(counts.of(sets.values), (1 << 32) - 1).astype(np.uint64)
        ranks |= frequencies << np.uint64(32)
    chosen = np.zeros(len(sets.values), dtype=bool)
    for low, high in chunks(sets.sizes, SORTED_TOKENS):
        start, stop = sets.offsets[low], sets.offsets[high]
        sizes = sets.sizes[low:high]
        owner = np.repeat(np.arange(high - low), sizes).astype(np.uint16)
        order = np.argsort(ranks[start:stop], kind="stable")
        order = order[np.argsort(owner[order], kind="stable")]  # 16 bits: a radix sort
        first = sets.offsets[low:high] - start
        chosen[start + order[spans(first, take[low:high])]] = True
    return sets.where(chosen)


def first_tokens(sets: Ragged, threshold: Threshold | None, counts: TokenCounts | None) -> Ragged:
    """The prefix of each set, without the tokens that the counts know to be in one record only.

    Nobody meets there.  So the counts must be of all records that are to meet; StageError where
    they cannot be.
    """
    prefixes = rarest(sets, counts, prefix_sizes(sets.sizes, threshold))
    if counts is None or not counts.complete:
        return prefixes
    strange = np.setdiff1d(sets.sizes, counts.sizes)
    if len(strange):
        raise StageError(
            f"--counts: not the counts of this input, which has a record of {strange[0]} "
            "shingles; count_tokens.py makes them"
        )
    return prefixes.where(counts.of(prefixes.values) > 1)


def token_keys(tokens: np.ndarray, seed: int) -> np.ndarray:
    """uint64: keys of band 0."""
    return mix(tokens ^ random_words(seed, 1, stream=3)) >> np.uint64(64 - HASH_BITS)
