"""Precision of a run, from verdicts on pairs that were drawn evenly over strata of similarity.

Each stratum has the exact interval of its own draw (Clopper, Pearson 1934).  Strata differ in size:
the precision of all pairs is the mean of theirs, each weighted by its pairs.  H intervals, each of
which misses with probability at most α/H, all hold together with probability 1 - α (Bonferroni),
and so does the weighted mean of their ends, for all thresholds at once.

Letters: H strata, with N pairs each of which n are judged and k the same; α = 0.05.
"""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from neardup.similarity.intervals import clopper_pearson
from neardup.verification.not_pairs import SAME, Two

ALPHA = 0.05
GOAL = 0.99
WIDTHS = (1, 2, 5, 10)  # hundredths of similarity
MAX_STRATA = 10


class Strata(NamedTuple):
    """Ranges of similarity, from `lows` (millionths, ascending), with the numbers of pairs in them.

    >>> Strata.of({90: 5, 93: 7, 100: 2})
    Strata(lows=[900000, 930000, 1000000], sizes=[5, 7, 2])
    """

    lows: list[int]
    sizes: list[int]

    @classmethod
    def of(cls, hundredths: Mapping[int, int]) -> "Strata":
        """Merge counts of pairs by hundredths of similarity; pairs at 1 have their own stratum."""
        for width in WIDTHS:
            sizes: dict[int, int] = {}
            for each, count in sorted(hundredths.items()):
                low = each // width * width if each < 100 else 100
                sizes[low * 10_000] = sizes.get(low * 10_000, 0) + count
            if len(sizes) <= MAX_STRATA:
                break
        return cls(list(sizes), list(sizes.values()))

    def number(self, millionths: int) -> int:
        """Return the number of the stratum of a similarity."""
        return int(np.searchsorted(self.lows, millionths, side="right")) - 1

    def prefixes(
        self, draws: Sequence[tuple[Two, int]], known: Container[Two]
    ) -> list[tuple[Two, int]]:
        """Return the draws of each stratum before its first one that is not in `known`.

        Later ones are not a random sample: they have verdicts because they were easy, or because
        their texts were also in another draw.

        draws: (texts, similarity in millionths), in random order; known: those with a verdict.

        >>> one, two = (b"a", b"b"), (b"a", b"c")
        >>> Strata([900000], [4]).prefixes([(one, 900000), (two, 910000), (one, 900000)], {one})
        [((b'a', b'b'), 900000)]
        """
        ended: set[int] = set()
        counted = []
        for key, millionths in draws:
            number = self.number(millionths)
            if key not in known:
                ended.add(number)
            elif number not in ended:
                counted.append((key, millionths))
        return counted


def ends(hits: int, n: int, size: int, alpha: float) -> tuple[float, float]:
    """Return the interval of the share of a stratum's pairs that are the same."""
    if n >= size:  # all of them are judged
        return hits / n, hits / n
    return clopper_pearson(hits, n, alpha) if n else (0.0, 1.0)


def mean(values: Sequence[float], sizes: Sequence[int]) -> float:
    return float(np.dot(values, sizes)) / sum(sizes)


def report(strata: Strata, verdicts: Sequence[tuple[int, bytes]]) -> list[str]:
    """Return the lines of the table, and the threshold for a precision of 99 %.

    verdicts: (similarity in millionths, verdict) of each drawn pair.
    """
    if not strata.sizes:
        return ["no pairs"]
    every = [(strata.number(millionths), verdict == SAME) for millionths, verdict in verdicts]
    n, k = Counter(number for number, _ in every), Counter(number for number, same in every if same)
    rows = [(k[number], n[number], size) for number, size in enumerate(strata.sizes)]
    lines = [_row("similarity", "pairs", "judged", "same", "precision, with its 95% interval")]
    for low, (same, judged, size) in zip(strata.lows, rows):
        share = _share(same / judged, *ends(same, judged, size, ALPHA)) if judged else "-"
        lines.append(_row(f"from {low / 10**6:g}", f"{size:,}", f"{judged:,}", f"{same:,}", share))
    if len(n) == len(rows):
        alpha = ALPHA / len(rows)
        each = [(same / judged, *ends(same, judged, size, alpha)) for same, judged, size in rows]
        share = _share(*(mean(some, strata.sizes) for some in zip(*each)))
        total = f"{sum(strata.sizes):,}", f"{len(every):,}", f"{sum(k.values()):,}"
        lines.append(_row("all", *total, f"{share}, each row weighted by its pairs"))
    return [*lines, _threshold(strata.lows, rows)]


def _row(name: str, pairs: str, judged: str, same: str, share: str) -> str:
    return f"{name:12}{pairs:>12}{judged:>8}{same:>8}  {share}"


def _share(share: float, low: float, high: float) -> str:
    return f"{share:.4f}  {floor(low * 10**4) / 10**4:.4f} to {ceil(high * 10**4) / 10**4:.4f}"


def _threshold(lows: Sequence[int], rows: Sequence[tuple[int, int, int]]) -> str:
    """Return a line with the lowest threshold that has the precision; rows: (k, n, N)."""
    goal = f"a precision of {GOAL:.0%} with {1 - ALPHA:.0%} confidence"
    for i, low in enumerate(lows):
        if _low_end(rows[i:], len(rows)) >= GOAL:
            return f"threshold {low / 10**6:g} has {goal}"
    return f"no threshold has {goal} yet"


def _low_end(rows: Sequence[tuple[int, int, int]], strata: int) -> float:
    # One-sided, so that all of α is below; a stratum without judgements may have no true pair.
    return mean([ends(*row, 2 * ALPHA / strata)[0] for row in rows], [size for *_, size in rows])
