"""Resemblance estimated from samples of sets that are too large to send.

One row of numbers is sent for each set, in place of the set:

    below 2^52            the keys of the record, see `lines.keys`
    2^52 + S              one mark, the size of the samples
    2^52 + 2^48 and above MIN_S of the set: its S smallest hashes, or all of them (`sketches`)

Of the S (256) smallest hashes of x∪y, k are in both sets; the resemblance is in the exact interval
of k out of S (`intervals`) for all but one pair in a thousand (CONFIDENCE).  Pairs whose interval
reaches the threshold are written; one in two thousand of those at the threshold is missed.  Sets of
fewer than S elements are sent as a whole, and two such sets have an exact resemblance.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from neardup.sets.ragged import Ragged, in_rows
from neardup.similarity.intervals import MILLION, exact_interval
from neardup.similarity.measures import Threshold, UnboundedMeasure, Verified, rounded_millionths
from neardup.similarity.sketches import SAMPLE_BITS, min_s, sample_of_min_s

DEFAULT_SIZE, LEAST_SIZE, MOST_SIZE = 256, 16, 65536
CONFIDENCE = Fraction(999, 1000)
MARK = np.uint64(1 << 52)
FIRST_HASH = MARK + np.uint64(1 << SAMPLE_BITS)


def sample_size(text: str) -> int:
    """Parse the value of --verify; return the sample size, 0 for exact; ValueError if invalid.

    >>> [sample_size(text) for text in ("exact", "sketch", "sketch:1024")]
    [0, 256, 1024]
    """
    if text == "exact":
        return 0
    kind, colon, size = text.partition(":")
    if kind == "sketch" and not colon:
        return DEFAULT_SIZE
    number = int(size) if size.isascii() and size.isdigit() and len(size) <= 6 else 0
    if kind == "sketch" and LEAST_SIZE <= number <= MOST_SIZE:
        return number
    raise ValueError(
        f"{text!r} is neither exact nor sketch:S, with S from {LEAST_SIZE} to {MOST_SIZE}"
    )


def sampled(sets: Ragged, keys: Ragged, size: int, seed: int) -> Ragged:
    """Return the rows that are sent instead of the sets: keys, sample and sample size of each set.

    >>> sets, keys = Ragged.from_rows([[1, 2, 3], [*range(99)]]), Ragged.from_rows([[7, 9], [7]])
    >>> sampled(sets, keys, size=16, seed=0).sizes.tolist()
    [6, 18]
    """
    sample = min_s(sets, size, seed)
    rows = np.concatenate(
        [np.repeat(np.arange(len(sets)), part.sizes) for part in (keys, sample)]
        + [np.arange(len(sets))]
    )
    marks = np.full(len(sets), MARK + np.uint64(size))
    values = np.concatenate((keys.values, sample.values + FIRST_HASH, marks))
    order = in_rows(values, rows)
    offsets = keys.offsets + sample.offsets + np.arange(len(sets) + 1)
    return Ragged(values[order], offsets)


def samples_of(rows: Ragged) -> Ragged:
    """Extract the sample MIN_S of each set from the rows that `sampled` made."""
    hashes = rows.where(rows.values >= FIRST_HASH)
    return Ragged(hashes.values - FIRST_HASH, hashes.offsets)


def keys_of(rows: Ragged, size: int, low: int, high: int) -> Ragged:
    """Return the keys low … high-1 in each row; none for rows made with another sample size."""
    marked = rows.where(rows.values == MARK + np.uint64(size)).sizes > 0
    mine = (rows.values >= np.uint64(low)) & (rows.values < np.uint64(high))
    return rows.where(mine & np.repeat(marked, rows.sizes))


@dataclass(eq=False)
class EstimatedJaccard(UnboundedMeasure):
    """The measure jaccard, estimated from samples of `size` hashes."""

    threshold: Threshold
    size: int

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        """Return the pairs whose confidence interval ends at or above the threshold.

        Subtle: `part` and `whole` are the ends of the interval here, in millionths.
        """
        some, place = np.unique(np.concatenate((left, right)), return_inverse=True)
        samples = samples_of(sets.take(some))
        a, b = place.reshape(2, -1)
        both, all_, known = sample_of_min_s(samples, self.size, a, b)
        good = np.where(known, self.threshold.reached(both, all_), True)
        low, high = (np.zeros(len(left), dtype=np.int64) for _ in range(2))
        low[known] = high[known] = rounded_millionths(both[known], all_[known])
        for hits in np.unique(both[~known]).tolist():
            mine = ~known & (both == hits)
            low[mine], high[mine] = exact_interval(hits, self.size, 1 - CONFIDENCE)
        good &= known | self.threshold.reached(high, np.full(len(high), MILLION))
        return Verified(left[good], right[good], low[good], high[good])
