"""Text → shingles (Broder 1997): every run of k words, or of k characters, as a set.

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

from neardup.hashing import combine, mix

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


@dataclass(frozen=True)
class Shingler:
    """Turns texts into shingles of `width` words or characters.

    >>> words = Shingler.parse("word:2")
    >>> shingles = words("to be or not to be")
    >>> len(shingles), bool(shingles[0] == shingles[4])
    (5, True)
    """

    unit: str
    width: int
    word_ids: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Shingler:
        """Read "word:3" or "char:5"; ValueError says what is wrong with anything else."""
        match = re.fullmatch(r"(word|char):([0-9]{1,3})", text)
        if not match or not 1 <= int(match[2]) <= MAX_WIDTH:
            raise ValueError(
                f"{text!r} is not word:K or char:K, with K from 1 to {MAX_WIDTH} (such as word:3)"
            )
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.unit}:{self.width}"

    def __call__(self, text: str) -> np.ndarray:
        """The shingles as a uint64 array, in order and with repeats; empty for an empty text."""
        text = canonical(text)
        if self.unit == "char":
            units = mix(np.frombuffer(text.encode("utf-32-le"), dtype="<u4").astype(np.uint64))
        else:
            units = np.array([self._word_id(word) for word in text.split()], dtype=np.uint64)
        width = min(self.width, len(units))
        if not width:
            return units
        return combine(np.lib.stride_tricks.sliding_window_view(units, width).T, seed=width)

    def _word_id(self, word: str) -> int:
        id_ = self.word_ids.get(word)
        if id_ is None:
            if len(self.word_ids) >= WORD_CACHE:
                self.word_ids.clear()
            id_ = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
            self.word_ids[word] = id_
        return id_
