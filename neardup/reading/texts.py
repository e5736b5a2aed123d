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
    some = list(texts)
    whole = [text for _, _, text in some]
    values, sizes = shingler.many(list(map(clean, whole)) if clean.names else whole)
    full = np.flatnonzero(sizes)
    numbers = np.array([number for number, _, _ in some], dtype=np.uint64)
    return Batch(
        [some[i].id for i in full.tolist()],
        gather(values, sizes[full]),
        tuple(numbers[sizes == 0].tolist()),
        numbers[full],
    )
