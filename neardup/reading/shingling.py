"""Text → shingles (Broder 1997): every run of k words, or of k characters, as a set or as a bag.

    word:K  char:K          the set of all runs of K words or characters
    word:K:bag  char:K:bag  the bag: a run seen before is another shingle, run#2, run#3, …
    spot:C:D                the spots (see spots.py): chains of C words, D words apart

Words are separated by white space; in scripts without blanks between words, such as Chinese,
Japanese and Thai, each letter is a word (see unspaced.py).

The text is first made canonical, so that what a reader takes for the same text is the same text:
Unicode NFC, case folded, and every run of white space squeezed to one blank.  Shingles are hashed
to 64 bits.  A text of fewer than k words or characters is one shingle, so that equal short texts
are still found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from neardup.reading.spots import bare_words, spots
from neardup.reading.unspaced import words
from neardup.reading.word_hashes import HASH_BYTES, WordHashes, numbers
from neardup.sets.bags import numbered
from neardup.sets.hashing import combine, mix
from neardup.sets.runs import spans

RUNS = re.compile("(word|char):([0-9]{1,3})(:bag)?")
SPOTS = re.compile("spot:([0-9]{1,3}):([0-9]{1,3})")
MAX_WIDTH = 100
# ASCII as `str.lower` and `str.split` take it: bytes.split knows no blanks from 28 to 31.
FOLDED = bytes(range(256)).lower().replace(bytes(range(28, 32)), b"    ")


def canonical(text: str) -> str:
    """NFC, case folded, white space squeezed and trimmed.

    >>> canonical("  The\\tSAME \\n Straße ")
    'the same strasse'
    """
    return " ".join(_folded(text).split())


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    # Folding may undo the normal form, so it is restored.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def canonical_words(text: str) -> list[str]:
    """
    >>> canonical_words("The  SAME\\t東京")
    ['the', 'same', '東', '京']
    """
    return words(_folded(text))


def utf8_words(text: str) -> list[bytes]:
    """The same in UTF-8.

    >>> utf8_words("The\\tSAME Straße")
    [b'the', b'same', b'strasse']
    """
    if text.isascii():
        return text.encode().translate(FOLDED).split()
    return " ".join(canonical_words(text)).encode().split()


@dataclass(frozen=True)
class Shingler:
    """Turns texts into shingles of `width` words or characters, or into spots of that many words.

    >>> words = Shingler.parse("word:2")
    >>> shingles = words("to be or not to be")
    >>> len(shingles), bool(shingles[0] == shingles[4])
    (5, True)
    """

    unit: str
    width: int
    bag: bool = False
    distance: int = 1  # from word to word of a spot
    hashes: WordHashes = field(default_factory=WordHashes, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Shingler:
        """Read "word:3", "char:5:bag" or "spot:2:1"; ValueError says what the forms are."""
        made = None
        if match := RUNS.fullmatch(text):
            made = cls(match[1], int(match[2]), bag=bool(match[3]))
        elif match := SPOTS.fullmatch(text):
            made = cls("spot", int(match[1]), distance=int(match[2]))
        if not (made and 1 <= made.width <= MAX_WIDTH and 1 <= made.distance <= MAX_WIDTH):
            raise ValueError(
                f"{text!r} is not word:K, char:K, word:K:bag, char:K:bag or spot:C:D, "
                f"with K, C and D from 1 to {MAX_WIDTH} (such as word:3)"
            )
        return made

    def __str__(self) -> str:
        if self.unit == "spot":
            return f"spot:{self.width}:{self.distance}"
        return f"{self.unit}:{self.width}" + ":bag" * self.bag

    def __call__(self, text: str) -> np.ndarray:
        """The shingles as a uint64 array, in order and, but for bags, with repeats.

        It is empty for an empty text, and for one without a spot.
        """
        return self.many([text])[0]

    def many(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The same of many texts, end to end, and how many each has (int64).

        >>> Shingler.parse("char:3").many(["to be", "", "or"])[1].tolist()
        [3, 0, 1]
        """
        if self.unit == "spot":
            return self._spots(texts)
        if self.unit == "char":
            units, sizes = characters([canonical(text) for text in texts])
        else:
            rows = [self.hashes.of(utf8_words(text)) for text in texts]
            units = numbers(b"".join(rows))
            sizes = np.array([len(row) for row in rows], dtype=np.int64) // HASH_BYTES
        shingles, sizes = runs(units, sizes, self.width)
        return numbered(shingles, sizes) if self.bag else shingles, sizes

    def _spots(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        rows = [bare_words(canonical_words(text)) for text in texts]
        all_words = list(chain.from_iterable(rows))
        ids = numbers(self.hashes.of(word.encode() for word in all_words))
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        return spots(all_words, ids, sizes, self.width, self.distance)


def characters(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The hash of each character of some texts (uint64), end to end, and their lengths (int64)."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4")
    return mix(codes.astype(np.uint64)), np.array([len(text) for text in texts], dtype=np.int64)


def runs(units: np.ndarray, sizes: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The hash of every run of `width` units (uint64) of rows of so many units (int64), end to end;
    of all units of a row together where they are fewer.  And how many each row has (int64).

    >>> runs(np.arange(8, dtype=np.uint64), np.array([5, 0, 2, 1]), width=3)[1].tolist()
    [3, 0, 1, 1]
    """
    counts = np.where(sizes < width, np.minimum(sizes, 1), sizes - width + 1)
    starts, places = np.cumsum(sizes) - sizes, np.cumsum(counts) - counts
    found = np.empty(int(counts.sum()), dtype=np.uint64)
    long = sizes >= width
    if long.any():
        # Runs are made of all units as if they were one row; most are inside of one.
        windows = np.lib.stride_tricks.sliding_window_view(units, width)
        inside = spans(starts[long], counts[long])
        found[spans(places[long], counts[long])] = combine(windows.T, seed=width)[inside]
    for size in np.unique(sizes[~long & (sizes > 0)]).tolist():
        rows = np.flatnonzero(sizes == size)
        columns = units[starts[rows] + np.arange(size)[:, np.newaxis]]
        found[places[rows]] = combine(columns, seed=size)
    return found, counts
