"""Texts, however they were read, → a batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from neardup.reading.bad_lines import Gather
from neardup.reading.cleaning import Cleaning
from neardup.reading.shingling import Shingler
from neardup.sets.batch import Batch


class Text(NamedTuple):
    number: int  # of its line in its block, from 0
    id: bytes
    text: str


def batch_of_texts(
    texts: Iterable[Text], shingler: Shingler, clean: Cleaning, gather: Gather
) -> Batch:
    """The records of some texts; `gather` makes sets of their shingles.

    There may be no shingles in a text of which cleaning leaves nothing, or that has no spots: such
    records are only counted.
    """
    ids: list[bytes] = []
    sets: list[np.ndarray] = []
    places: list[int] = []
    without_shingles: list[int] = []
    for number, id_, text in texts:
        shingles = shingler(clean(text))
        if not len(shingles):
            without_shingles.append(number)
        else:
            ids.append(id_)
            sets.append(shingles)
            places.append(number)
    sizes = np.array([len(shingles) for shingles in sets], dtype=np.int64)
    values = np.concatenate(sets) if sets else np.empty(0, np.uint64)
    records = gather(values, sizes)
    return Batch(ids, records, tuple(without_shingles), np.array(places, np.uint64))
