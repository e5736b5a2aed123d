"""I-Match: records share a key if they keep the same tokens, neither rare nor everywhere.

Tokens are kept by their inverse document frequency, log(N / df) / log N for df of N records; a key
is the SHA-1 of the sorted tokens kept (Chowdhury, Frieder, Grossman, McCabe, "Collection statistics
for fast duplicate document detection", 2002).  One token more or less makes another key.  So each
further lexicon drops a third of all tokens at random, and records that agree in any lexicon share
a key (Kołcz, Chowdhury, Alspector, "Improved robustness of signature-based near-replica detection
via lexicon randomization", 2004).

Letters: low and high, the idf band (0.1 and 0.9); L lexicons (1), of which number 0 drops nothing.
Records that differ in d kept tokens share a key where all d are dropped: 1 - (1 - 3^-d)^(L-1).

A record that keeps nothing in a lexicon has no key there, which all such records would share.
Tokens are single words in both papers; most longer shingles are too rare to be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha1
from math import ceil, floor
from typing import ClassVar

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS, MAX_BANDS
from neardup.schemes.scheme import Option, Request, Scheme, required_counts, whole
from neardup.sets.hashing import mix, random_words
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import TokenCounts

DROPPED = np.uint64((1 << 64) // 3)  # a token with a lower word is not in the lexicon
HAIR = 1e-9  # machines may round a power differently; an idf exactly at an end is inside


def _idf_band(text: str) -> tuple[float, float]:
    """Read the ends of a range of idf, such as "0.1:0.9"."""
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise ValueError(f"{text!r} is not LOW:HIGH, such as 0.1:0.9") from None
    if not 0 <= low < high <= 1:
        raise ValueError(f"{text} is outside 0 <= LOW < HIGH <= 1")
    return low, high


KEPT = Option(
    "--idf",
    "LOW:HIGH",
    "with --scheme imatch: which tokens are kept, by their idf as a share of the highest possible "
    "(default: 0.1:0.9)",
    _idf_band,
    default=_idf_band("0.1:0.9"),
)
LEXICONS = Option(
    "--lexicons",
    "L",
    "with --scheme imatch: number of random lexicons; records must agree in one (default: 1)",
    whole(1, 100),
    default=1,
)


@dataclass(eq=False)
class IMatch(Scheme):
    """Keys from the tokens with an idf of low … high times the highest; `seed` draws the lexicons.

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
    options: ClassVar[tuple[Option, ...]] = (KEPT, LEXICONS)
    counting: ClassVar[bool] = True
    suits_shingle: ClassVar[str | None] = "word:1"

    @classmethod
    def of(cls, request: Request) -> IMatch:
        counts = required_counts(request, "--scheme imatch")
        low, high = request.value(KEPT)
        return cls(counts, low, high, request.value(LEXICONS), request.seed)

    @property
    def promise(self) -> str:
        where = "" if self.lexicons == 1 else f", in one of {self.lexicons} lexicons"
        return (
            f"every pair is found that keeps the same tokens of idf {self.low:g} to "
            f"{self.high:g}{where}; a record that keeps none is in no pair"
        )

    def recall(self, similarity: float) -> float:
        """Return the recall in the worst case, in which all different tokens are kept ones."""
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
        """Return which tokens are kept: log(N / df) / log N ≥ low means df ≤ N^(1 - low)."""
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
    """Yield the first 40 bits of the SHA-1 of each non-empty set."""
    data = memoryview(sets.values.astype("<u8").tobytes())
    offsets = (8 * sets.offsets).tolist()
    for start, stop in zip(offsets, offsets[1:]):
        if start < stop:
            yield int.from_bytes(sha1(data[start:stop]).digest()[: HASH_BITS // 8], "big")
