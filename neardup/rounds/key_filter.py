"""The keys that two records share, as a filter of bounded size that every mapper looks keys up in.

A blocked Bloom filter (Putze, Sanders, Singler, WEA 2007), of words of 48 bits: each key sets four
bits of one word, or two where there are few bits for each.  A key that is no one's partner passes
by accident, which costs a line and no pair; none that is shared is ever refused.  Of a thousand
others pass:

    bits a key    32    16    13    10     8     6     4     2
    pass         1.2   6.7    11    21    37    74   160   400

Each reducer of the first round writes one part, of its partition of the digests, with 32 bits a key
as long as all parts together are not too large.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from neardup.process.errors import StageError
from neardup.rounds.digests import digests_of, partition_of
from neardup.rounds.filter_text import (
    ADVICE,
    WORD_BITS,
    bit_in_word,
    format_part,
    parse_parts,
    place_in_text,
    words_in_text,
)
from neardup.sets.hashing import mix

MAPPED_BYTES = 2 << 30  # of all parts, as files, which processes have in common
HELD_BYTES = 256 << 20  # of all parts, where each process has its own
PART_BYTES = 256 << 20  # of one, in the memory of its reducer
BITS_A_KEY = 32
SETS_FOUR = 5  # bits a key, from where on it sets four of them
_BIT = bit_in_word(np.arange(256) * WORD_BITS >> 8)  # of each byte of a hash
_TWO_BITS = np.bitwise_or.outer(_BIT, _BIT).ravel()


def fingerprint(keys_of: Mapping[str, str]) -> bytes:
    """What the options that keys depend on are known by: 16 hexadecimal digits."""
    told = "\n".join(f"{flag} {keys_of[flag]}" for flag in sorted(keys_of))
    return sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:16].encode()


def filter_part(
    shared: Iterable[np.ndarray], partition: int, partitions: int, options: bytes, most: int
) -> Iterator[bytes]:
    """The lines of a part, of the digests (uint64, each once) of a partition.

    The words of all parts together take `most` bytes at most, and those of this one PART_BYTES.
    """
    with tempfile.TemporaryFile() as file:
        count = 0
        for digests in shared:
            file.write(digests.data)
            count += len(digests)
        bound = min(most // partitions, PART_BYTES) // 8
        words = max(1, min(bound, count * BITS_A_KEY // WORD_BITS))
        text = words_in_text(words)
        file.seek(0)
        while data := file.read(8 << 16):
            place, bits = _marks(np.frombuffer(data, np.uint64), _sets_four(words, count))
            np.bitwise_or.at(text, _scaled(place, np.uint64(words)), bits)
    yield from format_part(partition, partitions, count, words, text, options)


def _sets_four(words: int, digests: int) -> bool:
    return words * WORD_BITS >= SETS_FOUR * digests


def _marks(digests: np.ndarray, four: bool | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each digest: which word is its own, of 2^32, and its bits there; uint64 (n,)."""
    mixed = mix(digests + np.uint64(1))
    low, high = (mixed.astype(np.int64) >> shift & 0xFFFF for shift in (0, 16))
    bits = _TWO_BITS[low]
    return mixed >> np.uint64(32), np.where(four, bits | _TWO_BITS[high], bits)


def _scaled(place: np.ndarray, words: np.ndarray | np.uint64) -> np.ndarray:
    """From 2^32 to so many words, as they lie in a text; int64."""
    return place_in_text(place * words >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True)
class KeyFilter:
    """text: uint64, in which all parts lie; of each part: start (int64), its first word in there;
    words (uint64), how many it has; four (bool), whether keys set so many bits."""

    text: np.ndarray
    starts: np.ndarray
    words: np.ndarray
    four: np.ndarray
    digests: int  # how many keys are shared

    @classmethod
    def of(cls, text: bytes | mmap.mmap, options: bytes) -> KeyFilter | None:
        """From all parts, in any order; None of no text, as an empty input has.

        StageError where a part is damaged or missing, or of other `options` (see `fingerprint`).
        """
        parts = sorted(parse_parts(memoryview(text), options))
        if not parts:
            return None
        if [(part.number, part.of) for part in parts] != [
            (i, len(parts)) for i in range(len(parts))
        ]:
            raise StageError(f"the shared keys are not whole, or of several runs; {ADVICE}")
        return cls(
            np.frombuffer(text, "<u8", len(text) // 8),
            np.array([part.start for part in parts], np.int64),
            np.array([part.words for part in parts], np.uint64),
            np.array([_sets_four(part.words, part.digests) for part in parts]),
            sum(part.digests for part in parts),
        )

    def has(self, keys: np.ndarray) -> np.ndarray:
        """bool (n,): which of these keys (uint64) may be shared; of those that are, all."""
        digests = digests_of(keys)
        part = partition_of(digests, len(self.words)).astype(np.int64)
        place, bits = _marks(digests, self.four[part])
        words = self.text[self.starts[part] + _scaled(place, self.words[part])]
        return (words & bits) == bits
