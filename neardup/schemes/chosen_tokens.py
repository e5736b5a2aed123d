"""I-Match and SpotSigs: keys from the tokens of middle frequency, or from the rarest tokens.

*I-Match*: records share a key if the same tokens of both are kept, neither rare nor frequent ones.
Tokens are kept by their inverse document frequency, log(N / df) / log N for df of N records; a key
is the SHA-1 of the sorted tokens kept (Chowdhury, Frieder, Grossman, McCabe, "Collection statistics
for fast duplicate document detection", 2002).  One more or one fewer kept token changes the key.
So each further lexicon drops a third of all tokens at random, and records that agree in any lexicon
share a key (Kołcz, Chowdhury, Alspector, "Improved robustness of signature-based near-replica
detection via lexicon randomization", 2004).

Letters: low and high, the idf band (0.1 and 0.9); L lexicons (1), of which number 0 drops nothing.
Records that differ in d kept tokens share a key where all d are dropped: 1 - (1 - 3^-d)^(L-1).

A record that keeps no token in a lexicon has no key for it; all such records would share that key.
Tokens are single words in both papers; most longer shingles are too rare to be kept.

*SpotSigs*: every pair at the threshold shares a rare token among sets of similar size.  Sizes are
cut into the smallest partitions such that a pair is in one of them or in two neighbours (Theobald,
Siddharth, Paepcke, "SpotSigs: robust and efficient near duplicate detection in large web
collections", 2008).  A pair shares one of the first n - ⌈t·n⌉ + 1 tokens, its prefix, with the
rarest first if they were counted (`exact.Prefix`).  A key is a partition and a token of the prefix.
A set has keys for its own partition and, if it can be the larger set of a pair, the one before.

    t = 0.9    partitions   1   2   3 … 18   19 20   21 22   23 24   25 26   27 28   29 30 31 …
    size 22    3 tokens     in partition 21 22 and, for partners of size 20, in 19 20

Letters: t (0.9); n, a set's size (100: 11 tokens, 22 keys).  It was made for spots (chains of
words that begin at a stop word), but works for any sets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha1
from math import ceil, floor
from typing import ClassVar

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS, MAX_BANDS
from neardup.runtime.flags import Flag, flags
from neardup.runtime.program import whole
from neardup.schemes.by_size import prefix_sizes, rarest
from neardup.schemes.exact import Prefix
from neardup.schemes.scheme import Request, Scheme, required_counts
from neardup.sets.hashing import combine, mix, random_words
from neardup.sets.ragged import Ragged, first_of_run, spans
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import NINE_TENTHS, Threshold

DROPPED = np.uint64((1 << 64) // 3)  # a token with a lower word is not in the lexicon
HAIR = 1e-9  # machines may round a power differently; an idf equal to LOW or HIGH is inside


def _idf_band(text: str) -> tuple[float, float]:
    """Parse a range of idf, such as 0.1:0.9, into (low, high); ValueError for anything else."""
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise ValueError(f"{text!r} is not LOW:HIGH, such as 0.1:0.9") from None
    if not 0 <= low < high <= 1:
        raise ValueError(f"{text} is outside 0 <= LOW < HIGH <= 1")
    return low, high


KEPT, LEXICONS = flags(
    """
    --idf LOW:HIGH  with --scheme imatch: which tokens are kept, by their idf as a share of the
                    highest possible [0.1:0.9]
    --lexicons L    with --scheme imatch: number of random lexicons; records must agree in one [1]
    """,
    idf=_idf_band,
    lexicons=whole(1, 100),
)


@dataclass(eq=False)
class IMatch(Scheme):
    """The scheme imatch: keys from tokens with an idf of low … high (1 is the highest possible).

    `seed` (0 … 2^64-1) draws the lexicons.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2, 4], [1, 3, 9], [1, 8]])
    >>> scheme = IMatch(TokenCounts.of_sets(sets), 0.1, 0.9)  # 2 and 3 are kept
    >>> keys = scheme.keys(Ragged.from_rows([[1, 2, 3], [2, 3, 7], [2, 4], [1, 8]]))
    >>> keys.sizes.tolist(), bool(keys.values[0] == keys.values[1])
    ([1, 1, 1, 0], True)
    """

    counts: TokenCounts
    low: float
    high: float
    lexicons: int = 1
    seed: int = 0
    options: ClassVar[tuple[Flag, ...]] = (KEPT, LEXICONS)
    counting: ClassVar[bool] = True
    suits_shingle: "ClassVar[str | None]" = "word:1"

    @classmethod
    def of(cls, request: Request) -> "IMatch":
        counts = required_counts(request, "--scheme imatch")
        low, high = request.value(KEPT)
        return cls(counts, low, high, request.value(LEXICONS), request.seed)

    @property
    def promise(self) -> str:
        where = "" if self.lexicons == 1 else f", in one of {self.lexicons} lexicons"
        return (
            f"every pair is found whose records have the same tokens of idf {self.low:g} to "
            f"{self.high:g}{where}; a record without such tokens is not in a pair"
        )

    def recall(self, similarity: float) -> float:
        """Return the recall in the worst case: all tokens in which a pair differs are kept."""
        return float(similarity == 1)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), self.lexicons)

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        lexicons = range(low, min(high, self.lexicons))
        kept = sets.where(self._in_band(sets.values))
        there = np.zeros((len(sets), len(lexicons)), dtype=bool)
        keys = np.zeros((len(sets), len(lexicons)), dtype=np.uint64)
        for i, lexicon in enumerate(lexicons):
            some = kept.where(self._in_lexicon(kept.values, lexicon))
            there[:, i] = some.sizes > 0
            keys[there[:, i], i] = list(_digests(some))
            keys[:, i] |= np.uint64(lexicon << HASH_BITS)
        return Ragged(keys[there], np.concatenate(([0], np.cumsum(there.sum(axis=1)))))

    def _in_band(self, tokens: np.ndarray) -> np.ndarray:
        """Return a mask of the kept tokens: low ≤ log(N/df) / log N ≤ high, by bounds on df."""
        records = max(self.counts.records, 1)
        least = ceil(records ** (1 - self.high) * (1 - HAIR))
        most = floor(records ** (1 - self.low) * (1 + HAIR))
        frequencies = self.counts.of(tokens)
        return (least <= frequencies) & (frequencies <= most)

    def _in_lexicon(self, tokens: np.ndarray, lexicon: int) -> np.ndarray:
        if lexicon == 0:
            return np.ones(len(tokens), dtype=bool)
        words = mix(mix(tokens) ^ random_words(self.seed, lexicon, stream=4)[-1])
        return words >= DROPPED


def _digests(sets: Ragged) -> Iterator[int]:
    """Yield, for each non-empty set, the first 40 bits of the SHA-1 of its tokens."""
    data = memoryview(sets.values.astype("<u8").tobytes())
    offsets = (8 * sets.offsets).tolist()
    for start, stop in zip(offsets, offsets[1:]):
        if start < stop:
            yield int.from_bytes(sha1(data[start:stop]).digest()[: HASH_BITS // 8], "big")


@dataclass(eq=False)
class SpotSigs(Prefix):
    """The scheme spotsigs: a key is a size partition and one of a set's first tokens (band 0).

    >>> sets = Ragged.from_rows([[*range(20)], [*range(22)], [*range(18)], [*range(50, 72)]])
    >>> keys = SpotSigs().keys(sets)
    >>> keys.sizes.tolist()
    [6, 6, 4, 6]
    >>> [len({*keys.row(i).tolist()} & {*keys.row(1).tolist()}) > 0 for i in (0, 2, 3)]
    [True, False, False]
    """

    resemblance: Threshold = NINE_TENTHS
    measures: ClassVar[tuple[str, ...]] = Scheme.measures
    suits_shingle: "ClassVar[str | None]" = "spot:2:1"
    name: ClassVar[str] = "spotsigs"

    @property
    def promise(self) -> str:
        return f"every pair at {self.resemblance} or above is found"

    def probe(self) -> str:
        return Scheme.probe(self)  # its counts reject no set

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        own, before = self._partitions(sizes)
        return prefix_sizes(sizes, self.resemblance) * np.where(before < own, 2, 1)

    def _keys(self, sets: Ragged) -> Ragged:
        prefixes = rarest(sets, self.counts, prefix_sizes(sets.sizes, self.resemblance))
        tokens = mix(prefixes.values ^ random_words(self.seed, 1, stream=1))
        own, before = self._partitions(sets.sizes)
        rows = np.repeat(np.arange(len(sets)), 2)
        partitions = np.column_stack((own, before)).ravel()
        distinct = first_of_run(rows) | first_of_run(partitions)
        rows, partitions = rows[distinct], partitions[distinct]
        sizes = prefixes.sizes[rows]
        columns = (
            tokens[spans(prefixes.offsets[rows], sizes)],
            np.repeat(mix(partitions.astype(np.uint64)), sizes),
        )
        words = combine(np.stack(columns), seed=0) >> np.uint64(64 - HASH_BITS)
        return Ragged.from_unsorted(words, self.key_counts(sets.sizes))

    def _partitions(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest sizes in the partitions of each set and of its smallest partner."""
        smallest = self.resemblance.smallest_partner(sizes)
        return first_sizes(self.resemblance, sizes), first_sizes(self.resemblance, smallest)


def first_sizes(threshold: Threshold, sizes: np.ndarray) -> np.ndarray:
    """Return, for each size, the smallest size in its partition (int64).

    >>> first_sizes(NINE_TENTHS, np.array([1, 18, 19, 20, 21, 22, 23, 1000])).tolist()
    [1, 18, 19, 19, 21, 21, 23, 984]
    """
    starts = _starts(threshold, 1 << int(sizes.max(initial=1)).bit_length())
    place = np.searchsorted(starts, sizes, side="right") - 1
    return np.where(sizes < starts[0], sizes, starts[place])


@lru_cache
def _starts(threshold: Threshold, most: int) -> np.ndarray:
    """Return the first size of each partition of more than one size, up to `most` (int64).

    A partition from m to n is followed by one that ends at the largest partner of m - 1.
    """
    num, den = threshold.num, threshold.den
    start = most if num == den else min(most, -(-(num + den) // (den - num)))
    starts = [start]
    while start < most:
        start = (start - 1) * den // num + 1
        starts.append(start)
    return np.array(starts, dtype=np.int64)
