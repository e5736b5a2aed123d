"""The similarity of two sets in words, exactly: `9/11 = 0.818182`."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from neardup.schemes.equal_bits import EqualBits
from neardup.sets.ragged import Ragged, shared
from neardup.similarity.measures import Measure, SetMeasure, six_decimals
from neardup.similarity.threshold import MAX_DENOMINATOR, Threshold

LEAST = Threshold(1, MAX_DENOMINATOR)  # that all but strangers reach
FIRST, SECOND = np.array([0]), np.array([1])


class Similarity(NamedTuple):
    text: str
    value: float


def similarity(measure: Measure, name: str, sets: Ragged) -> Similarity:
    """Of sets 0 and 1 (containment: of set 0 in set 1), by a measure of this name.

    >>> from neardup.similarity.measures import MEASURES
    >>> sets = Ragged.from_rows([[1, 2, 3, 4], [1, 2]])
    >>> for name in "jaccard", "cosine": similarity(MEASURES[name](LEAST), name, sets)
    Similarity(text='2/4 = 0.500000', value=0.5)
    Similarity(text='2/√(4·2) = 0.707107', value=0.707107)
    """
    if not isinstance(measure, SetMeasure):
        return _by_scheme(measure, sets)
    common = shared(sets, FIRST, SECOND).sizes
    x, y = sets.sizes[:1], sets.sizes[1:2]
    columns = (common, x) if name == "containment" else measure.fraction(common, x, y)
    part, whole = (int(column[0]) for column in columns)
    fraction = f"{common[0]}/√({x[0]}·{y[0]})" if name == "cosine" else f"{part}/{whole}"
    return Similarity(f"{fraction} = {_decimals(part, whole)}", part / whole)


def _by_scheme(measure: Measure, sets: Ragged) -> Similarity:
    """By a measure that only its scheme has."""
    if isinstance(measure, EqualBits):  # which else tells nothing below its least
        measure = replace(measure, least=0)
    found = measure.verified(sets, FIRST, SECOND)
    if not len(found.part):
        return Similarity("next to 0", 0.0)
    part, whole = int(found.part[0]), int(found.whole[0])
    return Similarity(f"{part}/{whole} = {_decimals(part, whole)}", part / whole)


def _decimals(part: int, whole: int) -> str:
    columns = np.array([[part], [whole]], dtype=object)  # of weights, they may be very large
    return six_decimals(*columns)[0].decode()
