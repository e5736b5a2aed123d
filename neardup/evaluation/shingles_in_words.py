"""Shingles in words: a text, as it is shingled → of each hash what of the text it stands for.

A shingle of words is its words, one of characters its characters, a spot the antecedent and its
chain.  In a bag the second of equal ones has its number behind it: `to be #2`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from neardup.reading.shingling import Shingler, canonical, canonical_words
from neardup.reading.spots import bare_words
from neardup.reading.stopwords import ANTECEDENTS, STOP_WORDS

Units = TypeVar("Units", str, "list[str]")


def shingles_in_words(text: str, shingler: Shingler) -> dict[int, str]:
    """What each shingle stands for, in the order of the text, which has been cleaned.

    >>> list(shingles_in_words("To be or not to be", Shingler.parse("word:2:bag")).values())
    ['to be', 'be or', 'or not', 'not to', 'to be #2']
    """
    width = shingler.width
    if shingler.unit == "spot":
        shingles = list(_spots(bare_words(canonical_words(text)), width, shingler.distance))
    elif shingler.unit == "char":
        shingles = _runs(canonical(text), width)
    else:
        shingles = [" ".join(words) for words in _runs(canonical_words(text), width)]
    if shingler.bag:
        shingles = list(_numbered(shingles))
    return dict(zip(shingler(text).tolist(), shingles))


def _runs(units: Units, width: int) -> list[Units]:
    width = min(width, len(units))
    return [units[i : i + width] for i in range(len(units) - width + 1)] if units else []


def _spots(words: Sequence[str], chain: int, distance: int) -> Iterator[str]:
    """One after the other, as spots.py has them in arrays."""
    for start in range(len(words)):
        if words[start] in ANTECEDENTS:
            places = [start]
            for _ in range(chain):
                place = places[-1] + distance
                while place < len(words) and words[place] in STOP_WORDS:
                    place += 1
                places.append(place)
            if places[-1] < len(words):
                yield " ".join(words[place] for place in places)


def _numbered(shingles: Iterable[str]) -> Iterator[str]:
    """
    >>> list(_numbered(["to", "be", "to"]))
    ['to', 'be', 'to #2']
    """
    seen: Counter[str] = Counter()
    for shingle in shingles:
        seen[shingle] += 1
        yield f"{shingle} #{seen[shingle]}" if seen[shingle] > 1 else shingle
