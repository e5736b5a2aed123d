"""Bit vectors as rows of 64-bit words, and fingerprints as sets of 16-bit blocks.

The fingerprints of a record are stored and sent like any other set: as the set of their blocks of
16 bits, each with its place and the number of the variant:

    variant << 24 | place << 16 | block

The last block of a fingerprint may have fewer bits.  `BlockPlaces` makes such sets from hexadecimal
digits, and `Prints` makes rows of words from them.

Letters: F bits (256), W words of 64 bits; n records with V fingerprints in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from neardup.runtime.program import WireError
from neardup.sets.ragged import Batch, Ragged, spans

DEFAULT_BITS, MIN_BITS, MAX_BITS = 256, 32, 1024  # of a fingerprint
WORD_BITS = 64
DIGIT_BITS, BLOCK_BITS, PLACE_BITS = 4, 16, 8
DIGITS_OF_BLOCK = BLOCK_BITS // DIGIT_BITS

_count = getattr(np, "bitwise_count", None)  # since numpy 2.0
_ONES = np.zeros(1, dtype=np.uint8)  # the number of bits that are set in 0 … 2^16-1
for _ in range(16):  # one more bit, which is set in the upper half
    _ONES = np.concatenate((_ONES, _ONES + np.uint8(1)))


def popcount(words: np.ndarray) -> np.ndarray:
    """Return the number of set bits of each word (uint64) as int64.

    >>> popcount(np.array([0, 7, 2**64 - 1], np.uint64)).tolist()
    [0, 3, 64]
    """
    if _count:
        return np.asarray(_count(words), np.int64)
    return _ONES[words.view(np.uint16).reshape(-1, 4)].sum(axis=1, dtype=np.int64)


def bits_apart(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return, for each row of x and y (uint64 (P, W)), the number of differing bits (int64)."""
    apart = np.zeros(len(x), np.int64)
    for a, b in zip(x.T, y.T):
        apart += popcount(a ^ b)
    return apart


def bits_in(rows: np.ndarray, block: range) -> np.ndarray:
    """Return a range of up to 64 consecutive bits of each row (uint64 (n, W)) as uint64 (n,).

    >>> bits_in(np.array([[0xAB << 56, 0xCD]], np.uint64), range(60, 72)).tolist() == [0xCDA]
    True
    """
    word, shift = divmod(block.start, WORD_BITS)
    values = rows[:, word] >> np.uint64(shift)
    if shift + len(block) > WORD_BITS:
        values |= rows[:, word + 1] << np.uint64(WORD_BITS - shift)
    return values & np.uint64((1 << len(block)) - 1)


class BlockPlaces(NamedTuple):
    """The division of the hex digits of a `bits`-bit fingerprint into blocks."""

    bits: int

    @property
    def digits(self) -> int:
        return self.bits // DIGIT_BITS

    @property
    def blocks(self) -> int:
        return -(-self.bits // BLOCK_BITS)

    def tokens(self, digits: np.ndarray, variants: np.ndarray) -> np.ndarray:
        """Return n fingerprints as tokens, uint64 (n, blocks), given digits and variant numbers."""
        missing = self.blocks * DIGITS_OF_BLOCK - self.digits  # in front of the last block
        if missing:
            at = self.digits - DIGITS_OF_BLOCK + missing
            digits = np.insert(digits, [at] * missing, 0, axis=1)
        blocks = np.zeros((len(digits), self.blocks), np.uint16)
        for i in range(DIGITS_OF_BLOCK):
            blocks <<= np.uint16(DIGIT_BITS)
            blocks |= digits[:, i::DIGITS_OF_BLOCK]
        places = np.arange(self.blocks) | variants[:, np.newaxis] << PLACE_BITS
        return blocks | (places << BLOCK_BITS).astype(np.uint64)

    def batch(
        self, ids: list[bytes], numbers: np.ndarray, digits: np.ndarray, counts: np.ndarray
    ) -> Batch:
        """Make a batch of records from the hex digits of their fingerprints.

        numbers: the place of each record; digits: uint8 (V, F/4), below 16, of all fingerprints;
        counts: int64 (n,), how many fingerprints each record has.
        """
        variants = np.arange(len(digits)) - np.repeat(np.cumsum(counts) - counts, counts)
        offsets = np.append(0, np.cumsum(counts * self.blocks))
        sets = Ragged(self.tokens(digits, variants).ravel(), offsets)
        return Batch(ids, sets, places=numbers.astype(np.uint64))


@dataclass(eq=False)
class Prints:
    """The fingerprints of n records: V rows of W words; those of a record are consecutive rows."""

    vectors: np.ndarray  # uint64 (V, W)
    counts: np.ndarray  # int64 (n,), rows of each record; the first is its own fingerprint

    @classmethod
    def of(cls, sets: Ragged, bits: int) -> Prints:
        """Make fingerprints from their blocks; WireError if blocks are missing or misplaced.

        >>> sets = Ragged.from_rows([[1, 1 << 16 | 2], [3, 1 << 16, 1 << 24, 1 << 24 | 1 << 16]])
        >>> prints = Prints.of(sets, 32)
        >>> prints.vectors[:, 0].tolist(), prints.counts.tolist()
        ([131073, 3, 0], [1, 2])
        """
        blocks, words = -(-bits // BLOCK_BITS), -(-bits // WORD_BITS)
        numbers = np.arange(len(sets.values)) - np.repeat(sets.offsets[:-1], sets.sizes)
        places = numbers // blocks << PLACE_BITS | numbers % blocks
        tops = sets.values >> np.uint64(BLOCK_BITS)
        if (sets.sizes % blocks).any() or (tops != places.astype(np.uint64)).any():
            raise WireError(
                f"expected fingerprints of {bits} bits, got something else: mapper and reducer "
                "need the same --input and --bits"
            )
        whole = np.zeros((len(sets.values) // blocks, words * 4), "<u2")
        whole[:, :blocks] = (sets.values & np.uint64(0xFFFF)).reshape(-1, blocks)
        return cls(whole.view("<u8").astype(np.uint64), sets.sizes // blocks)

    @classmethod
    def end_to_end(cls, parts: Sequence[Prints]) -> Prints:
        vectors, counts = ([getattr(p, name) for p in parts] for name in ("vectors", "counts"))
        return cls(np.concatenate(vectors), np.concatenate(counts))

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        return self.vectors, self.counts

    @cached_property
    def own(self) -> np.ndarray:
        """The index in `vectors` of the first row of each record (int64 (n,))."""
        return np.cumsum(self.counts) - self.counts

    def take(self, some: np.ndarray) -> Prints:
        return Prints(self.vectors[spans(self.own[some], self.counts[some])], self.counts[some])
