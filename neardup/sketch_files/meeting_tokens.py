"""Where sketches meet: each pair whose estimate reaches t shares one of these tokens.

*Hashes* (min, mod).  A pair at t shares ⌈t·n⌉ hashes at least, where n is the larger of both
sketches: the estimate has no more than what is shared above, and no less than the larger below.
(Of two MIN_s, the sample has s hashes, or both are whole sets, and then their union.)  So if each
sketch orders its n hashes in one and the same way, the first n - ⌈t·n⌉ + 1 of both have one in
common: the prefix filter (Chaudhuri, Ganti, Kaushik 2006).  The rarest come first, so that few
strangers meet.  Where none is rare, as in a million sets of ten thousand elements in all, a token
is a pair of hashes: the first n - ⌈t·n⌉ + 2 have two in common.  Sketches that need have but one in
common bring single ones, too.

*Signatures*.  A pair at t differs in d places at most.  So it has one of any d + 1 places of x in
common, and x's rarest are taken, as of hashes.  Where places have few bits, none is rare; cut into
d + 1 bands, they are equal in one of them (pigeonhole).  A token is the band and what is in it.

*Containment* of x in y: x has ⌈t·|x|⌉ in common with y, so one of its prefix; y brings all of its.

How rare a hash is is counted by its last bits, in a table of 2^24 counts at most: an order by
estimated counts is an order, too, and misses nothing.

Letters: t the threshold (0.9), n the size of a sketch (64), d places (12).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from neardup.sets.hashing import combine, mix
from neardup.sets.ragged import PAIR_STEP, Ragged, chunks
from neardup.sets.runs import distinct, later_in_run, pairs_in_runs
from neardup.similarity.sketches import SAMPLE_BITS
from neardup.similarity.threshold import Threshold
from neardup.sketch_files.kinds import Kind, Signatures

MOST_COUNTS = 24  # as a power of two
FEW_BITS = 16  # of a place of a signature
RARITY_BITS = 8
MANY_MEETINGS = 100  # of a record with strangers
MOST_PAIRED = 24  # first hashes, that make 276 pairs
ROWS_AT_ONCE = (1 << 64 - SAMPLE_BITS) - 1


@dataclass(frozen=True)
class MeetingTokens:
    """Tokens (uint64 below 2^48) of sketches of one kind; `rarity` (uint8) tells how often hashes
    come, by their last bits; `paired`: whether hashes meet by two and two."""

    kind: Kind
    threshold: Threshold
    rarity: np.ndarray
    paired: bool = False

    def counts(self, sizes: np.ndarray) -> np.ndarray:
        """How many first tokens sketches of these sizes have, at most (int64)."""
        singles, prefix = self._prefixes(sizes)
        return singles + prefix * (prefix - 1) // 2

    def _prefixes(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How many first hashes meet by themselves, and how many two and two (int64)."""
        if isinstance(self.kind, Signatures):
            return np.full(len(sizes), self.apart + 1), np.zeros_like(sizes)
        needed = self.threshold.smallest_partner(sizes)
        singles = np.where(sizes > 0, sizes - needed + 1, 0)
        if not self.paired:
            return singles, np.zeros_like(singles)
        return np.where(needed < 2, singles, 0), np.minimum(sizes, sizes - needed + 2)

    def by_pairs(self, sketches: Ragged, largest: int) -> MeetingTokens:
        """These or, where singles of such sketches would bring many strangers, paired ones;
        `largest` is the most hashes that one has."""
        if isinstance(self.kind, Signatures) or not len(sketches.values):
            return self
        _, prefix = replace(self, paired=True)._prefixes(np.array([largest]))
        if int(prefix[0]) > MOST_PAIRED:
            return self
        tokens = Ragged.from_unsorted(
            *_cut(self._ordered(sketches), sketches.offsets, self.counts(sketches.sizes))
        )
        rarity = tokens.values >> np.uint64(SAMPLE_BITS - RARITY_BITS)
        often = np.exp2(rarity.astype(np.float64) / 8 - 1).sum() / len(sketches)
        share = len(tokens.values) / len(sketches.values)  # of all hashes, that are first ones
        return replace(self, paired=bool(often * share > MANY_MEETINGS))

    @property
    def apart(self) -> int:
        """d, of signatures."""
        assert isinstance(self.kind, Signatures)
        return self.kind.length - self.kind.least_part(self.threshold, self.kind.length)

    def strangers(self, records: int) -> float:
        """With how many strangers each of so many records is compared, where bands are short."""
        if not in_bands(self.kind):
            return 0.0
        assert isinstance(self.kind, Signatures)
        bands = self.apart + 1
        ends = [self.kind.length * i // bands for i in range(bands + 1)]
        lengths = [high - low for low, high in zip(ends, ends[1:])]
        return sum(records / 2.0 ** (self.kind.bits * min(length, 64)) for length in lengths)

    def first(self, sketches: Ragged) -> Ragged:
        """Of each sketch those that it has to have, if anything is alike."""
        if in_bands(self.kind):
            return self._of_bands(sketches)
        ordered, sizes = self._ordered(sketches), sketches.sizes
        singles, prefix = self._prefixes(sizes)
        tokens, _ = _cut(ordered, sketches.offsets, singles)
        if not self.paired:
            return Ragged.from_unsorted(tokens, singles)
        rows = np.repeat(np.arange(len(sizes)), singles)
        later = later_in_run(prefix)
        left, right = pairs_in_runs(later)
        firsts, _ = _cut(ordered, sketches.offsets, prefix)
        pairs = combine(mix(np.stack((firsts[left], firsts[right]))), seed=0)
        tokens = np.concatenate((tokens, pairs >> np.uint64(64 - SAMPLE_BITS)))
        rows = np.concatenate((rows, np.repeat(np.arange(len(sizes)), prefix)[left]))
        order = np.argsort(rows, kind="stable")
        return Ragged.from_unsorted(tokens[order], np.bincount(rows, minlength=len(sizes)))

    def all(self, sketches: Ragged) -> Ragged:
        """Of each sketch all."""
        return Ragged.from_unsorted(self._ordered(sketches), sketches.sizes)

    def _ordered(self, sketches: Ragged) -> np.ndarray:
        """The tokens of hashes, in each sketch rare ones first: rarity above the hash."""
        hashes = hashes_of(self.kind, sketches)
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

    def _of_bands(self, sketches: Ragged) -> Ragged:
        assert isinstance(self.kind, Signatures)
        values, bands = self.kind.values(sketches).astype(np.uint64).T, self.apart + 1
        ends = [self.kind.length * i // bands for i in range(bands + 1)]
        words = np.empty((len(sketches), bands), dtype=np.uint64)
        for band, (low, high) in enumerate(zip(ends, ends[1:])):
            words[:, band] = combine(values[low:high], seed=band)
        tokens = words.ravel() >> np.uint64(64 - SAMPLE_BITS)
        return Ragged.from_unsorted(tokens, np.full(len(sketches), bands))


def in_bands(kind: Kind) -> bool:
    return isinstance(kind, Signatures) and kind.bits < FEW_BITS


def hashes_of(kind: Kind, sketches: Ragged) -> np.ndarray:
    """uint64 below 2^48, random-looking; the places of signatures are none by themselves."""
    if isinstance(kind, Signatures):
        return mix(sketches.values) >> np.uint64(64 - SAMPLE_BITS)
    return sketches.values


def rarity_of(kind: Kind, blocks: Iterable[Ragged], total: int) -> np.ndarray:
    """How often hashes come (uint8, in steps of an eighth), by their last bits; `total` of them."""
    if in_bands(kind):
        return np.zeros(1, dtype=np.uint8)  # nobody asks
    bits = min(max(10, total.bit_length()), MOST_COUNTS)
    counts = np.zeros(1 << bits, dtype=np.uint32)
    for sketches in blocks:
        slots, times = distinct(hashes_of(kind, sketches) & np.uint64(len(counts) - 1))
        counts[slots.astype(np.int64)] += times.astype(np.uint32)
    rarity = np.empty(len(counts), dtype=np.uint8)
    for low in range(0, len(counts), PAIR_STEP):
        some = slice(low, low + PAIR_STEP)
        mantissa, exponent = np.frexp(counts[some])
        steps = 8 * exponent + ((mantissa - 0.5) * 16).astype(np.int64)
        rarity[some] = np.clip(steps, 0, (1 << RARITY_BITS) - 1)
    return rarity


def _cut(
    values: np.ndarray, offsets: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first counts[i] values of each row, and how many these are."""
    place = np.arange(len(values)) - np.repeat(offsets[:-1], np.diff(offsets))
    return values[place < np.repeat(counts, np.diff(offsets))], counts
