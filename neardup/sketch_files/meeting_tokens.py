"""Where sketches meet: each pair whose estimate reaches t shares one of these tokens.

*Hashes* (min, mod).  A pair at t shares ⌈t·n⌉ hashes at least, where n is the larger of both
sketches: the estimate has no more than what is shared above, and no less than the larger below.
(Of two MIN_s, the sample has s hashes, or both are whole sets, and then their union.)  So if each
sketch orders its n hashes in one and the same way, the first n - ⌈t·n⌉ + 1 of both have one in
common: the prefix filter (Chaudhuri, Ganti, Kaushik 2006).  The rarest come first, so that few
strangers meet.

*Signatures*.  A pair at t differs in d places at most.  Cut into d + 1 bands, they are equal in one
of them (pigeonhole).  A token is the band and a hash of what stands in it.

*Containment* of x in y: x has ⌈t·|x|⌉ in common with y, so one of its prefix; y brings all of its.

How rare a hash is is counted by its last bits, in a table of 2^24 counts at most: an order by
estimated counts is an order, too, and misses nothing.

Letters: t the threshold (0.9), n the size of a sketch (64), d places (12).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from neardup.sets.hashing import combine
from neardup.sets.ragged import PAIR_STEP, Ragged, chunks
from neardup.sets.runs import distinct
from neardup.similarity.sketches import SAMPLE_BITS
from neardup.similarity.threshold import Threshold
from neardup.sketch_files.kinds import Kind, Signatures

MOST_COUNTS = 24  # as a power of two
RARITY_BITS = 8
ROWS_AT_ONCE = (1 << 64 - SAMPLE_BITS) - 1


@dataclass(frozen=True)
class MeetingTokens:
    """Tokens (uint64 below 2^48) of sketches of one kind; `rarity` (uint8) tells how often hashes
    come, by their last bits."""

    kind: Kind
    threshold: Threshold
    rarity: np.ndarray

    def counts(self, sizes: np.ndarray) -> np.ndarray:
        """How many first tokens sketches of these sizes have, at most (int64)."""
        if isinstance(self.kind, Signatures):
            return np.full(len(sizes), self.bands)
        return np.where(sizes > 0, sizes - self.threshold.smallest_partner(sizes) + 1, 0)

    @property
    def bands(self) -> int:
        """Of a signature."""
        assert isinstance(self.kind, Signatures)
        length = self.kind.length
        return length - self.kind.least_part(self.threshold, length) + 1

    def first(self, sketches: Ragged) -> Ragged:
        """Of each sketch those that it has to have, if anything is alike."""
        if isinstance(self.kind, Signatures):
            return self._of_bands(self.kind, sketches)
        counts = self.counts(sketches.sizes)
        return Ragged.from_unsorted(*_cut(self._ordered(sketches), sketches.offsets, counts))

    def all(self, sketches: Ragged) -> Ragged:
        """Of each sketch all."""
        return Ragged.from_unsorted(self._ordered(sketches), sketches.sizes)

    def _ordered(self, sketches: Ragged) -> np.ndarray:
        """The tokens of hashes, in each sketch rare ones first: rarity above the hash."""
        hashes = sketches.values
        rare = self.rarity[(hashes & np.uint64(len(self.rarity) - 1)).astype(np.int64)]
        # Subtle: what the rarity displaces are the lowest bits, so that two hashes may be one
        # token; but equal hashes always are.
        tokens = hashes >> np.uint64(RARITY_BITS)
        tokens |= rare.astype(np.uint64) << np.uint64(SAMPLE_BITS - RARITY_BITS)
        for low, high in chunks(sketches.sizes + PAIR_STEP // ROWS_AT_ONCE, PAIR_STEP):
            some = slice(sketches.offsets[low], sketches.offsets[high])
            row = np.arange(high - low, dtype=np.uint64) << np.uint64(SAMPLE_BITS)
            words = tokens[some] | np.repeat(row, sketches.sizes[low:high])
            words.sort()
            tokens[some] = words & np.uint64((1 << SAMPLE_BITS) - 1)
        return tokens

    def _of_bands(self, kind: Signatures, sketches: Ragged) -> Ragged:
        values = kind.values(sketches).astype(np.uint64).T
        ends = [kind.length * i // self.bands for i in range(self.bands + 1)]
        words = np.empty((len(sketches), self.bands), dtype=np.uint64)
        for band, (low, high) in enumerate(zip(ends, ends[1:])):
            words[:, band] = combine(values[low:high], seed=band)
        tokens = words.ravel() >> np.uint64(64 - SAMPLE_BITS)
        return Ragged.from_unsorted(tokens, np.full(len(sketches), self.bands))


def rarity_of(blocks: Iterable[Ragged], total: int) -> np.ndarray:
    """How often hashes come (uint8, in steps of an eighth), by their last bits; `total` of them."""
    bits = min(max(10, total.bit_length()), MOST_COUNTS)
    counts = np.zeros(1 << bits, dtype=np.uint32)
    for sketches in blocks:
        slots, times = distinct(sketches.values & np.uint64(len(counts) - 1))
        counts[slots.astype(np.int64)] += times.astype(np.uint32)
    mantissa, exponent = np.frexp(counts)
    steps = 8 * exponent + ((mantissa - 0.5) * 16).astype(np.int64)
    return np.clip(steps, 0, (1 << RARITY_BITS) - 1).astype(np.uint8)


def _cut(
    values: np.ndarray, offsets: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first counts[i] values of each row, and how many these are."""
    place = np.arange(len(values)) - np.repeat(offsets[:-1], np.diff(offsets))
    return values[place < np.repeat(counts, np.diff(offsets))], counts
