"""The S-curve of banding, and bands and rows from a promise.

A signature of b·r min-hashes cut into b bands of r rows makes two records of similarity s share a
key with probability P(s) = 1 - (1 - s^r)^b (Leskovec, Rajaraman, Ullman, Mining of Massive
Datasets, ch. 3).  The knee (1/b)^(1/r) is not what to tune for: only some 63 % of the pairs there
are found.  So the promise is the recall *at the threshold*, and everything above it is found
with a higher probability still.

Letters: s similarity, t threshold, b bands (15), r rows (7), recall (0.9999).
"""

from __future__ import annotations

import math

HAIR = 1e-12
MAX_ROWS = 32  # more rows than this save nothing: a key is hashed from the rows anyway


def recall(similarity: float, bands: int, rows: int) -> float:
    """The probability that a pair of this similarity (0 … 1) shares a key.

    >>> round(recall(0.9, 15, 7), 6)
    0.999942
    >>> recall(1, 15, 7), recall(0, 15, 7)
    (1.0, 0.0)
    """
    hit = similarity**rows  # the probability that one band agrees
    return 1.0 if hit == 1 else abs(math.expm1(bands * math.log1p(-hit)))


def bands_needed(similarity: float, rows: int, promise: float) -> int:
    """The fewest bands of `rows` rows whose recall at `similarity` is at least `promise`.

    >>> bands_needed(0.9, 7, 0.9999)
    15
    """
    hit = similarity**rows
    if hit >= 1:
        return 1
    # Subtle: a promise that is met exactly may look missed by a hair, in either line.
    bands = max(1, math.ceil(math.log1p(-promise) / math.log1p(-hit) - HAIR))
    while recall(similarity, bands, rows) < promise - HAIR:
        bands += 1
    return bands


def choose(threshold: float, promise: float, max_bands: int) -> tuple[int, int]:
    """(bands, rows): as many rows as still keep the promise within `max_bands`.

    More rows make a key rarer among unrelated records, so fewer false candidates are verified.
    ValueError when even one row needs more bands than that.

    >>> choose(0.9, 0.9999, 16)
    (15, 7)
    """
    if bands_needed(threshold, 1, promise) > max_bands:
        raise ValueError(
            f"needs {bands_needed(threshold, 1, promise)} bands, even of 1 row, "
            f"and at most {max_bands} are allowed (--max-bands)"
        )
    rows = 1
    while rows < MAX_ROWS and bands_needed(threshold, rows + 1, promise) <= max_bands:
        rows += 1
    return bands_needed(threshold, rows, promise), rows
