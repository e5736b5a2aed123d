"""Banding: the S-curve, bands and rows from a promise or by hand, and the options for that.

A signature of b·r min-hashes cut into b bands of r rows makes two records of similarity s share a
key with probability P(s) = 1 - (1 - s^r)^b (Leskovec, Rajaraman, Ullman, Mining of Massive
Datasets, ch. 3).  The knee (1/b)^(1/r) is not what to tune for: only some 63 % of the pairs there
are found.  So the promise is the recall *at the threshold*, and everything above it is found
with a higher probability still.

Letters: s similarity, t threshold, b bands (15), r rows (7), recall (0.9999).
"""

from __future__ import annotations

import math

from neardup.lines.keys import MAX_BANDS
from neardup.schemes.request import Option, Request, probability, whole
from neardup.schemes.scheme import shown

RECALL = Option(
    "--recall",
    "P",
    "the promise: a pair exactly at T is found with probability P or more, and one above T still "
    "more likely; bands and rows follow from it (default: 0.9999)",
    probability,
    finds_more="a higher --recall, with more --max-bands if it asks for them, misses fewer",
)
DEFAULT_RECALL = 0.9999  # where neither it nor bands and rows are given
MOST = Option(
    "--max-bands",
    "N",
    "the most bands the promise may cost; each band sends every record once more, and fewer bands "
    "leave more false candidates to verify (default: 16; projection 128)",
    whole(1, MAX_BANDS),
)
BANDS = Option("--bands", "B", "bands by hand, together with --rows", whole(1, MAX_BANDS))
ROWS = Option(
    "--rows",
    "R",
    "min-hashes (bits, with projection) in a band, together with --bands",
    whole(1, 256),
)
OPTIONS = (RECALL, MOST, BANDS, ROWS)

HAIR = 1e-12
NEARLY_ONE = math.nextafter(1, 0)  # no chance is certainty, however floats round it
STRANGERS = 0.1  # as similar as records may be that have nothing to do with each other
DEARER = 100  # times the candidate pairs, from which a run says so before it starts
MAX_ROWS = 32  # more rows than this save nothing: a key is hashed from the rows anyway


def recall(similarity: float, bands: int, rows: int) -> float:
    """The probability that a pair of this similarity (0 … 1) shares a key.

    >>> round(recall(0.9, 15, 7), 6)
    0.999942
    >>> recall(1, 15, 7), recall(0, 15, 7)
    (1.0, 0.0)
    """
    hit = similarity**rows  # the probability that one band agrees
    return 1.0 if hit == 1 else min(abs(math.expm1(bands * math.log1p(-hit))), NEARLY_ONE)


def bands_needed(similarity: float, rows: int, promise: float) -> int:
    """The fewest bands of `rows` rows whose recall at `similarity` is at least `promise`.

    >>> bands_needed(0.9, 7, 0.9999)
    15
    """
    hit = similarity**rows
    if hit >= 1:
        return 1
    # Subtle: a promise that is met exactly may look missed by a hair, in either line.
    bands = max(1, math.ceil(math.log1p(-promise) / math.log1p(-hit) - HAIR))
    while recall(similarity, bands, rows) < promise - HAIR:
        bands += 1
    return bands


def choose(threshold: float, promise: float, max_bands: int) -> tuple[int, int]:
    """(bands, rows): as many rows as still keep the promise within `max_bands`.

    More rows make a key rarer among unrelated records, so fewer false candidates are verified.
    ValueError when even one row needs more bands than that.

    >>> choose(0.9, 0.9999, 16)
    (15, 7)
    """
    if bands_needed(threshold, 1, promise) > max_bands:
        raise ValueError(
            f"needs {bands_needed(threshold, 1, promise)} bands, even of 1 row, "
            f"and at most {max_bands} are allowed (--max-bands)"
        )
    rows = 1
    while rows < MAX_ROWS and bands_needed(threshold, rows + 1, promise) <= max_bands:
        rows += 1
    return bands_needed(threshold, rows, promise), rows


def asked_for(request: Request, agreement: float, max_bands: int) -> tuple[int, int]:
    """(bands, rows) for pairs at the threshold, whose rows agree with this probability.

    From the promise within `max_bands` (unless others were asked for), or by hand and not against
    the promise; ValueError where that cannot be.
    """
    promise, most, bands, rows = (request.value(option) for option in OPTIONS)
    if bands is None and rows is None:
        promise = promise or DEFAULT_RECALL
        try:
            return choose(agreement, promise, max_bands if most is None else most)
        except ValueError as error:
            asked = f"a recall of {promise} at threshold {request.threshold}"
            raise ValueError(f"{asked} {error}") from None
    if bands is None or rows is None:
        given, missing = ("--rows", "--bands") if bands is None else ("--bands", "--rows")
        raise ValueError(f"{given} needs {missing}; or leave both to --recall")
    if most is not None and bands > most:
        raise ValueError(f"--bands {bands} is more than --max-bands {most}")
    reached = recall(agreement, bands, rows)
    if promise and reached < promise:
        raise ValueError(
            f"{bands} bands of {rows} rows have a recall of {shown(reached)} at threshold "
            f"{request.threshold}, and --recall asks for {promise}"
        )
    return bands, rows


def dearer_by_hand(
    agreement: float, strangers: float, bands: int, rows: int, most: int
) -> list[str]:
    """What to say of bands and rows at which strangers meet far more often than they need to.

    agreement, strangers: how likely a row agrees for a pair at the threshold, and for strangers.

    >>> dearer_by_hand(0.9, 0.1, 15, 7, 16)
    []
    >>> dearer_by_hand(0.9, 0.1, 16, 1, 16)[0][:60]
    '16 bands of 1 rows: strangers meet with probability 0.814697'
    """
    try:
        usual = choose(agreement, DEFAULT_RECALL, most)
    except ValueError:
        return []
    here, there = recall(strangers, bands, rows), recall(strangers, *usual)
    if here < STRANGERS or here < DEARER * there:
        return []
    return [
        f"{bands} bands of {rows} rows: strangers meet with probability {shown(here)}, and with "
        f"--recall {DEFAULT_RECALL} only with {there:.1g}: it compares far fewer of them"
    ]
