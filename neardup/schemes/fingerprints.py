"""The scheme fingerprints: find bit vectors, made elsewhere, that differ in at most D bits.

Perceptual hashes of pictures, SimHashes and binary embeddings are compared by their Hamming
distance.  A record has one or more fingerprints: first its own, then those of variants such as its
mirror image.  Two records are a pair if the first fingerprint of one differs in at most D bits from
any fingerprint of the other.

A key is the bits that a mask selects (`bit_keys`).  Blocks find every pair; random masks find a
pair at D with probability --recall.  --exact uses the cheaper of two kinds of masks:

*Blocks* of all but D of m blocks: `bit_keys.Blocks`.

*Most of a block*.  F bits are cut into m blocks.  One of them has at most e = ⌊D/m⌋ differing bits,
so two fingerprints agree in one block without e of its bits (Norouzi, Punjani, Fleet, "Fast search
in Hamming space with multi-index hashing", CVPR 2012; they look up all values that differ in e bits
instead).

    F = 256, D = 31, m = 16, e = 1     16 · 16 keys of 15 bits; unrelated ones share one with 0.0041
    F = 256, D = 31, drawn             114 keys of 19 bits, recall 0.9999; 0.0002

Letters: F bits (256), D bits that may differ (31), m blocks (16), e bits left out of a block (1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np

from neardup.lines.keyed_lines import MAX_BANDS
from neardup.runtime.flags import Flag
from neardup.schemes import banding, bit_keys
from neardup.schemes.scheme import Request, shown
from neardup.sets.bit_vectors import BLOCK_BITS, DEFAULT_BITS, Prints, bits_apart
from neardup.sets.hashing import random_words
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Measure, Threshold, UnboundedMeasure, Verified

DISTANCE_OF_256 = 31  # bits, for PDQ hashes; other lengths in proportion
UNRELATED = 0.5  # the share of equal bits in unrelated fingerprints
MANY = 10**6  # records, for which costs are estimated
KEY, PAIR = 1.0, 0.05  # microseconds; only their ratio matters
WORTH_SAYING = 1000  # candidate pairs for each record, from which a run prints a warning


@dataclass(eq=False)
class Hamming(UnboundedMeasure):
    """The measure hamming: the share of equal bits; at most `distance` of `bits` bits differ."""

    bits: int
    distance: int

    @property
    def threshold(self) -> Threshold:
        return Threshold(self.bits - self.distance, self.bits)

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        some, place = np.unique(np.concatenate((left, right)), return_inverse=True)
        prints = Prints.of(sets.take(some), self.bits)
        x, y = place.reshape(2, -1)
        apart = np.full(len(x), self.bits)
        own = prints.own
        for a, b in ((x, y), (y, x)):
            for variant in range(int(prints.counts.max(initial=0))):
                has = np.flatnonzero(prints.counts[b] > variant)
                rows = prints.vectors[own[a[has]]], prints.vectors[own[b[has]] + variant]
                apart[has] = np.minimum(apart[has], bits_apart(*rows))
        good = apart <= self.distance
        whole = np.full(int(good.sum()), self.bits)
        return Verified(left[good], right[good], self.bits - apart[good], whole)


@dataclass(frozen=True)
class NearBlocks(bit_keys.OfBlocks):
    """Masks that each select most bits of one of `number` blocks; `distance` bits may differ.

    >>> ways = NearBlocks(bits=256, number=16, distance=31)
    >>> len(ways), ways.recall(225), ways.recall(224), round(ways.by_chance(0.5), 4)
    (256, 1.0, 0.0, 0.0041)
    """

    @property
    def left_out(self) -> int:
        return self.distance // self.number

    def __len__(self) -> int:
        return sum(comb(len(block), self.left_out) for block in self.blocks)

    @cached_property
    def masks(self) -> np.ndarray:
        return bit_keys.words_of(
            [
                sum(1 << bit for bit in block) - sum(1 << bit for bit in out)
                for block in self.blocks
                for out in combinations(block, self.left_out)
            ],
            self.bits,
        )

    def by_chance(self, agreement: float) -> float:
        missed = 1.0
        for block in self.blocks:
            missed *= 1 - banding.at_least(len(block) - self.left_out, len(block), agreement)
        return 1 - missed


def exact_ways(bits: int, distance: int) -> bit_keys.Ways:
    """Return the cheapest masks under which all fingerprints within `distance` share a key.

    >>> exact_ways(256, 31), exact_ways(64, 3)
    (NearBlocks(bits=256, number=16, distance=31), Blocks(bits=64, number=4, distance=3))
    """
    able: list[bit_keys.Ways] = []
    for number in range(distance + 1, bits + 1):
        if comb(number, distance) > MAX_BANDS:
            break
        able.append(bit_keys.Blocks(bits, number, distance))
    for number in range(1, distance + 1):
        if number * comb(-(-bits // number), distance // number) <= MAX_BANDS:
            able.append(NearBlocks(bits, number, distance))
    return min(able, key=cost_of)


def cost_of(ways: bit_keys.Ways) -> float:
    """Estimate the microseconds that one record costs among MANY unrelated records."""
    return len(ways) * KEY + ways.by_chance(UNRELATED) * MANY / 2 * PAIR


@dataclass(eq=False)
class Fingerprints(bit_keys.BitScheme):
    """The scheme fingerprints: a pair has fingerprints that differ in at most `distance` bits."""

    bits: int
    distance: int
    ways: bit_keys.Ways
    measures: ClassVar[tuple[str, ...]] = ("hamming",)
    options: ClassVar[tuple[Flag, ...]] = (bit_keys.DISTANCE, bit_keys.BITS, *banding.OPTIONS)
    finds_more: ClassVar[str] = banding.FINDS_MORE
    keeps_recall: ClassVar[bool] = True
    one_a_band: ClassVar[bool] = False
    joined_in_memory: ClassVar[bool] = True

    @classmethod
    def of(cls, request: Request) -> Fingerprints:
        if request.threshold_given:
            raise ValueError("--threshold does not apply to fingerprints; use --distance")
        bits = request.value(bit_keys.BITS) or DEFAULT_BITS
        distance = request.values.get("--distance", DISTANCE_OF_256 * bits // DEFAULT_BITS)
        if distance > bits // 2:
            raise ValueError(
                f"--distance {distance} is more than half of {bits} bits, the distance of "
                "unrelated fingerprints; take a smaller one"
            )
        if not request.exact:
            ways = bit_keys.asked_ways(request, bits, bits - distance, UNRELATED)
            by_hand = not {"--bands", "--rows", "--max-bands"}.isdisjoint(request.values)
            able = [ways] if by_hand else [ways, exact_ways(bits, distance)]
            return cls(bits, distance, min(able, key=cost_of))
        if given := [option.name for option in banding.OPTIONS if option.name in request.values]:
            raise ValueError(
                f"{given[0]} has no use with --exact, which finds all pairs; leave it out"
            )
        return cls(bits, distance, exact_ways(bits, distance))

    @property
    def promise(self) -> str:
        most = f"{self.distance} of {self.bits} bits"
        if not isinstance(self.ways, bit_keys.Drawn):
            return f"every pair is found whose fingerprints differ in {most} or fewer"
        return (
            f"{len(self.ways)} bands of {self.ways.width} bits find fingerprints that differ in "
            f"{most} with probability {shown(self.ways.recall(self.bits - self.distance))}"
        )

    def option_values(self, request: Request) -> dict[str, Any]:
        own = {"--bits": self.bits, "--distance": self.distance, "--exact": request.exact or None}
        return {**own, **super().option_values(request), **own}  # in this order

    def cost(self) -> list[str]:
        pairs = self.ways.by_chance(UNRELATED) * MANY / 2
        if pairs < WORTH_SAYING:
            return []
        return [
            f"--distance {self.distance} of {self.bits} bits: {len(self.ways)} keys a record, and "
            f"among {MANY:,} unrelated fingerprints {pairs * MANY:.1g} candidate pairs; "
            "run_local.sh needs far fewer"
        ]

    def measure(self, name: str, threshold: Threshold) -> Measure:
        return Hamming(self.bits, self.distance)

    def vectors(self, sets: Ragged) -> np.ndarray:
        return Prints.of(sets, self.bits).vectors

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        blocks: int = -(-self.bits // BLOCK_BITS)
        counts: np.ndarray = sizes // blocks * len(self.ways)
        return counts

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        return self.keys_of(Prints.of(sets, self.bits), low, high)

    def keys_of(self, prints: Prints, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """Return the keys of bands low … high-1, one row for each record of `prints`."""
        keys = bit_keys.keys_of(self.ways, prints.vectors, low, high)
        if len(prints.vectors) == len(prints.counts):
            return keys
        sizes = prints.counts * (len(keys.values) // len(prints.vectors))
        return Ragged.from_unsorted(keys.values, sizes)

    def probe(self) -> str:
        """Return a digest of the keys of eight fixed fingerprints, in 16 hexadecimal digits."""
        words = random_words(1, 8 * -(-self.bits // BLOCK_BITS)).reshape(8, -1)
        places = np.arange(words.shape[1], dtype=np.uint64) << np.uint64(BLOCK_BITS)
        sets = Ragged((words >> np.uint64(48) | places).ravel(), np.arange(9) * words.shape[1])
        return blake2b(self.keys(sets).values.astype("<u8").tobytes(), digest_size=8).hexdigest()
