"""Banding: the S-curve, and bands and rows derived from the promised recall or set by hand.

A signature of b·r min-hashes cut into b bands of r rows makes two records of similarity s share a
key with probability P(s) = 1 - (1 - s^r)^b (Leskovec, Rajaraman, Ullman, Mining of Massive
Datasets, ch. 3).  Only some 63 % of the pairs at the knee of this curve, (1/b)^(1/r), are found.
So the promise is the recall *at the threshold*; more similar pairs have a higher recall.

Letters: s similarity, t threshold, b bands (15), r rows (7), recall (0.9999).
"""

import math
from math import comb, fsum
from typing import Callable

from neardup.lines.keyed_lines import MAX_BANDS
from neardup.runtime.flags import flags
from neardup.runtime.program import whole
from neardup.schemes.scheme import Request, shown


def _probability(text: str) -> float:
    """Parse a probability, strictly between 0 and 1; ValueError for anything else."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not 0 < value < 1:
        raise ValueError(f"{text} is outside 0 < P < 1; to find every pair, use --exact")
    return value


OPTIONS = RECALL, MOST, BANDS, ROWS = flags(
    """
    --recall P      minimum probability that a pair exactly at T is found; determines bands and rows
                    (default: 0.9999)
    --max-bands N   maximum number of bands for --recall; each band sends every record once more,
                    and fewer bands leave more false candidates to verify (default: 16; projection
                    and fingerprints 128; more at thresholds for which these are too few)
    --bands B       number of bands, set by hand together with --rows
    --rows R        number of min-hashes (with projection and fingerprints: bits) in a band, set
                    together with --bands
    """,
    recall=_probability,
    max_bands=whole(1, MAX_BANDS),
    bands=whole(1, MAX_BANDS),
    rows=whole(1, 256),
)
DEFAULT_RECALL = 0.9999  # if --recall, --bands and --rows are omitted
FINDS_MORE = "a higher --recall, with more --max-bands if needed, misses fewer"

HAIR = 1e-12
NEARLY_ONE = math.nextafter(1, 0)  # a probability below 1 is never rounded to 1
DISSIMILAR = 0.1  # the similarity that dissimilar records may have
DEARER = 100  # a run prints a warning if it has this many times the candidate pairs
MAX_WORTH_IT = 64  # bands of one row; if more are needed, --exact costs less
MAX_ROWS = 32  # more rows than this save nothing: a key is hashed from the rows anyway

Hit = Callable[[float, int], float]
"""(similarity, rows) → the probability that a band of so many rows agrees; by default s^r."""


def recall(similarity: float, bands: int, rows: int, hit: Hit = pow) -> float:
    """Return the probability that a pair of this similarity (0 … 1) shares a key.

    >>> round(recall(0.9, 15, 7), 6)
    0.999942
    >>> recall(1, 15, 7), recall(0, 15, 7)
    (1.0, 0.0)
    """
    one = hit(similarity, rows)
    return 1.0 if one == 1 else min(abs(math.expm1(bands * math.log1p(-one))), NEARLY_ONE)


def bands_needed(similarity: float, rows: int, promise: float, hit: Hit = pow) -> int:
    """Return the minimum number of bands that reaches a recall of `promise` at `similarity`.

    >>> bands_needed(0.9, 7, 0.9999)
    15
    """
    one = hit(similarity, rows)
    if one >= 1:
        return 1
    # Subtle: rounding may make a promise that is met exactly look missed, in both lines.
    bands = max(1, math.ceil(math.log1p(-promise) / math.log1p(-one) - HAIR))
    while recall(similarity, bands, rows, hit) < promise - HAIR:
        bands += 1
    return bands


def choose(threshold: float, promise: float, max_bands: int, hit: Hit = pow) -> tuple[int, int]:
    """Return (bands, rows) for a recall of `promise`: up to 32 rows, as many as `max_bands` allows.

    With more rows, unrelated records share fewer keys, so fewer false candidates are verified.
    ValueError if even one row needs more bands.

    >>> choose(0.9, 0.9999, 16)
    (15, 7)
    """
    needed = bands_needed(threshold, 1, promise, hit)
    if needed > max_bands:
        raise ValueError(
            f"needs {needed} bands, even of 1 row, "
            f"and at most {max_bands} are allowed (--max-bands)"
        )
    rows = 1
    while rows < MAX_ROWS and hit(threshold, rows + 1) > 0:
        more = bands_needed(threshold, rows + 1, promise, hit)
        if more > max_bands:
            break
        needed, rows = more, rows + 1
    return needed, rows


def asked_for(
    request: Request, agreement: float, max_bands: int, hit: Hit = pow
) -> tuple[int, int]:
    """Return (bands, rows) from --bands and --rows, or else from --recall.

    agreement: the probability that a row agrees for a pair at the threshold; max_bands: the default
    of --max-bands; if it is too small for the recall, as many bands of one row as needed are used.
    ValueError if the recall cannot be reached.
    """
    promise, most, bands, rows = (request.value(option) for option in OPTIONS)
    if bands is None and rows is None:
        promise = promise or DEFAULT_RECALL
        if most is None:
            needed = bands_needed(agreement, 1, promise, hit)
            most = max(max_bands, min(needed, MAX_BANDS))
        try:
            return choose(agreement, promise, most, hit)
        except ValueError as error:
            asked = f"a recall of {promise} at threshold {request.threshold}"
            raise ValueError(f"{asked} {error}") from None
    if bands is None or rows is None:
        given, missing = ("--rows", "--bands") if bands is None else ("--bands", "--rows")
        raise ValueError(f"{given} needs {missing}; or omit both and use --recall")
    if most is not None and bands > most:
        remedy = "lower one or raise the other"
        raise ValueError(f"--bands {bands} is more than --max-bands {most}; {remedy}")
    reached = recall(agreement, bands, rows, hit)
    if promise and reached < promise:
        raise ValueError(
            f"{bands} bands of {rows} rows have a recall of {shown(reached)} at threshold "
            f"{request.threshold}, but --recall asks for {promise}; "
            "give more bands or fewer rows, or omit --recall"
        )
    return bands, rows


def is_too_low(resemblance: float) -> bool:
    """Return True if --exact costs less than the bands that the default recall needs.

    If so many bands of one row are needed, nearly all pairs share a key, and most share many.

    >>> is_too_low(0.15), is_too_low(0.1)
    (False, True)
    """
    return bands_needed(resemblance, 1, DEFAULT_RECALL) > MAX_WORTH_IT


def dearer(
    what: str,
    here: float,
    agreement: float,
    dissimilar: float,
    most: int,
    instead: str = f"--recall {DEFAULT_RECALL}",
    hit: Hit = pow,
) -> list[str]:
    """Return [a warning] if dissimilar records collide far more often than at the default recall.

    what: the options used; here: the probability with them; agreement,
    dissimilar: the probability that a row agrees for a pair at the threshold, and for dissimilar
    records; most: the maximum number of bands; instead: the option that the warning recommends.

    >>> dearer("15 bands of 7 rows", recall(0.1, 15, 7), 0.9, 0.1, 16)
    []
    >>> dearer("16 bands of 1 rows", recall(0.1, 16, 1), 0.9, 0.1, 16)[0][:72]
    '16 bands of 1 rows: dissimilar records collide with probability 0.814697'
    """
    if here < DISSIMILAR:
        return []
    try:
        there = recall(dissimilar, *choose(agreement, DEFAULT_RECALL, most, hit))
    except ValueError:
        return []
    if here < DEARER * there:
        return []
    return [
        f"{what}: dissimilar records collide with probability {shown(here)}; {instead} "
        f"compares far fewer of them, with probability {there:.1g}"
    ]


def at_least(needed: int, parts: int, chance: float) -> float:
    """Return the probability that `needed` or more of `parts` independent parts agree.

    A sum of binomial terms C(S, k) · p^k · (1-p)^(S-k), stable at both ends: below one half no term
    is negative, and above it is 1 minus the sum of the others.  Only p = 1 gives 1.

    >>> at_least(2, 6, 0.5) == 57 / 64, at_least(2, 6, 1), at_least(2, 6, 0)
    (True, 1.0, 0.0)
    """
    if chance == 1:
        return 1.0

    def sum_of(numbers: range) -> float:
        return fsum(comb(parts, k) * chance**k * (1 - chance) ** (parts - k) for k in numbers)

    reached = sum_of(range(needed, parts + 1))
    return reached if reached < 0.5 else min(1 - sum_of(range(needed)), NEARLY_ONE)
