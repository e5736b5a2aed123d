"""Elements of sets → shingles.

0 … 2^64-1      themselves, as on a line of shingles; 7.0 is 7, as in Python
strings         hashed as a word of a text is with --shingle word:1
tuples          hashed by their elements
all others      numbered as they come: equal elements of one call are one shingle
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from numbers import Number
from typing import Any

import numpy as np

from neardup.reading.shingling import runs
from neardup.reading.word_hashes import WordHashes, numbers
from neardup.sets.hashing import WORD


class Elements(dict[Hashable, int]):
    """Element → shingle, for one call.

    >>> elements = Elements()
    >>> elements.of([7, 7.0, True]).tolist()
    [7, 7, 1]
    >>> elements.of(["to", ("to", "be"), ("to", "be")]).tolist()[:1] == elements.of(["to"]).tolist()
    True
    """

    def __init__(self) -> None:
        self._words = WordHashes()

    def of(self, elements: list[Any]) -> np.ndarray:
        """uint64; TypeError or ValueError where one can be in no set."""
        kinds = set(map(type, elements))
        if kinds == {str}:
            return self._of_words(elements)
        if kinds == {int} and min(elements) >= 0 and max(elements) < WORD:
            return np.array(elements, dtype=np.uint64)
        return np.array([self[element] for element in elements], dtype=np.uint64)

    def _of_words(self, words: list[str]) -> np.ndarray:
        units = numbers(self._words.of(word.encode() for word in words))
        return runs(units, np.ones(len(words), np.int64), 1)[0]

    def __missing__(self, element: Any) -> int:
        self[element] = value = self._value(element)
        return value

    def _value(self, element: Any) -> int:
        if isinstance(element, str):
            return int(self._of_words([element])[0])
        if element is None or element != element:
            raise ValueError(f"{element} is no element")
        if isinstance(element, tuple):
            return _hash(b"tuple", b"".join(self[part].to_bytes(8, "little") for part in element))
        number = _whole(element) if isinstance(element, Number) else None
        return _hash(b"other", b"%d" % len(self)) if number is None else number


def _hash(kind: bytes, data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8, person=kind).digest(), "little")


def _whole(number: Any) -> int | None:
    """The shingle that this number is equal to."""
    try:
        whole = int(number)
    except (TypeError, ValueError, OverflowError):  # a complex number, or infinity
        return None
    return whole if whole == number and 0 <= whole < WORD else None
