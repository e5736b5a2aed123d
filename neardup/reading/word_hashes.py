"""Words → 64-bit hashes: BLAKE2b of what a word is in UTF-8.

The hashes of many words are asked for as bytes, 8 for each, which costs half of what numbers would.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

HASH_BYTES = 8
MOST_WORDS = 1 << 16  # that are remembered: some 10 MB; those that are frequent soon are again
_UNFED = blake2b(digest_size=HASH_BYTES)  # a copy of it takes half the time of another one


class WordHashes(dict[bytes, bytes]):
    """Word → its hash, remembered for the next time.

    >>> hashes = WordHashes()
    >>> numbers(hashes.of([b"to", b"be", b"to"])).tolist()
    [17317425407431806273, 2924855485883047595, 17317425407431806273]
    """

    def __missing__(self, word: bytes) -> bytes:
        if len(self) >= MOST_WORDS:
            self.clear()
        fed = _UNFED.copy()
        fed.update(word)
        hash_ = self[word] = fed.digest()
        return hash_

    def of(self, words: Iterable[bytes]) -> bytes:
        """Those of all these words, end to end."""
        return b"".join(map(self.__getitem__, words))


def numbers(hashes: bytes) -> np.ndarray:
    """uint64: hashes laid end to end."""
    return np.frombuffer(hashes, "<u8").astype(np.uint64, copy=False)
