"""Text → shingles (Broder 1997): every run of k words, or of k characters, as a set or as a bag.

    word:K  char:K          the set of all runs of K words or characters
    word:K:bag  char:K:bag  the bag: a run seen before is another shingle, run#2, run#3, …
    spot:C:D                the spots (see spots.py): chains of C words, D words apart

The text is first made canonical, so that what a reader takes for the same text is the same text:
Unicode NFC, case folded, and every run of white space squeezed to one blank.  Shingles are hashed
to 64 bits.  A text of fewer than k words or characters is one shingle, so that equal short texts
are still found.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from neardup.reading.spots import bare_words, spots
from neardup.sets.bags import numbered
from neardup.sets.hashing import combine, mix

RUNS = re.compile("(word|char):([0-9]{1,3})(:bag)?")
SPOTS = re.compile("spot:([0-9]{1,3}):([0-9]{1,3})")
MAX_WIDTH = 100
WORD_CACHE = 1 << 18  # words whose hash is remembered: some 30 MB


def canonical(text: str) -> str:
    """NFC, case folded, white space squeezed and trimmed.

    >>> canonical("  The\\tSAME \\n Straße ")
    'the same strasse'
    """
    if text.isascii():
        text = text.lower()
    else:  # folding may undo the normal form, so it is restored
        text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(text.split())


class WordIds(dict[str, int]):
    """Word → 64-bit hash, remembered for the next time."""

    def __missing__(self, word: str) -> int:
        if len(self) >= WORD_CACHE:
            self.clear()
        id_ = self[word] = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
        return id_


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
    word_ids: WordIds = field(default_factory=WordIds, compare=False, repr=False)

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
        text = canonical(text)
        if self.unit == "spot":
            words = bare_words(text)
            return spots(words, self._hashed(words), self.width, self.distance)
        if self.unit == "char":
            units = mix(np.frombuffer(text.encode("utf-32-le"), dtype="<u4").astype(np.uint64))
        else:
            units = self._hashed(text.split())
        shingles = runs(units, self.width)
        return numbered(shingles) if self.bag else shingles

    def _hashed(self, words: list[str]) -> np.ndarray:
        return np.array([self.word_ids[word] for word in words], dtype=np.uint64)


def runs(units: np.ndarray, width: int) -> np.ndarray:
    """The hash of every run of `width` units (uint64); of all together where they are fewer."""
    width = min(width, len(units))
    if not width:
        return units
    return combine(np.lib.stride_tricks.sliding_window_view(units, width).T, seed=width)
