"""The similarity of two sets in words, exactly: `9/11 = 0.818182`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.measures import MAX_DENOMINATOR, MEASURES, Threshold, six_decimals
from neardup.ragged import Ragged, shared
from neardup.schemes.scheme import Scheme

LEAST = Threshold(1, MAX_DENOMINATOR)


class Similarity(NamedTuple):
    text: str
    value: float


def similarity(scheme: Scheme, name: str, sets: Ragged) -> Similarity:
    """Of sets 0 and 1, by a measure of the scheme (containment: of set 0 in set 1).

    >>> from neardup.schemes.minhash import MinHash
    >>> sets = Ragged.from_rows([[1, 2, 3, 4], [1, 2]])
    >>> for name in "jaccard", "cosine": similarity(MinHash(15, 7), name, sets)
    Similarity(text='2/4 = 0.500000', value=0.5)
    Similarity(text='2/√(4·2) = 0.707107', value=0.707107)
    """
    if name not in MEASURES:
        return _by_scheme(scheme, name, sets)
    common = shared(sets, np.array([0]), np.array([1])).sizes
    x, y = sets.sizes[:1], sets.sizes[1:2]
    columns = (common, x) if name == "containment" else MEASURES[name](LEAST).fraction(common, x, y)
    part, whole = (int(column[0]) for column in columns)
    fraction = f"{common[0]}/√({x[0]}·{y[0]})" if name == "cosine" else f"{part}/{whole}"
    return Similarity(f"{fraction} = {_decimals(part, whole)}", part / whole)


def _by_scheme(scheme: Scheme, name: str, sets: Ragged) -> Similarity:
    """By a measure that only this scheme has; it tells no similarity that is too low for it."""
    found = scheme.measure(name, LEAST).verified(sets, np.array([0]), np.array([1]))
    if not len(found.part):
        return Similarity("too low", 0.0)
    part, whole = int(found.part[0]), int(found.whole[0])
    return Similarity(f"{part}/{whole} = {_decimals(part, whole)}", part / whole)


def _decimals(part: int, whole: int) -> str:
    return six_decimals(np.array([part]), np.array([whole]))[0].decode()
