"""`curve`: print the S-curve of a setting as a table.

The distance of the curve from the ideal, a step at the threshold t, is two areas:

    false negatives   ∫ 1 - P(s) ds, t … 1     above the curve: pairs that are missed
    false positives   ∫ P(s) ds,     0 … t     below it: dissimilar pairs compared

If all similarities from 0 to 1 were equally likely, these would be the shares of all pairs that are
false negatives or positives (Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, ch. 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_UP, Context
from typing import NamedTuple

import numpy as np

from neardup.options import table
from neardup.options.settings import settings_before_counts
from neardup.reading.fingerprint_lines import FINGERPRINTS
from neardup.runtime.program import UsageError
from neardup.schemes.fingerprints import Hamming
from neardup.schemes.scheme import shown
from neardup.similarity.measures import measure_of

ASKED = ("--scheme", "--exact", "--measure", "--threshold", *table.SCHEME_OPTIONS)
STEPS, BAR = 20, 40  # rows of the table, and the length of their bars
DESCRIPTION = """Show the probability that two records share a key, for each similarity.

No file is read: the probability follows from the options of the job.  From the threshold on it is
the recall; below it, the share of dissimilar pairs that are compared in vain.  The areas of missed
pairs above the threshold, and of pairs compared below it, are printed, too.

    python3 -m neardup curve --threshold 0.8 --max-bands 32
    python3 -m neardup curve --bands 10 --rows 10
    python3 -m neardup curve --scheme fingerprints --bits 64 --distance 7
"""


def main() -> None:
    args = table.parser("python3 -m neardup curve", DESCRIPTION, ASKED).parse_args()
    options = table.Options.of(args)
    if args.scheme == FINGERPRINTS:
        options = replace(options, input=FINGERPRINTS)
    settings = settings_before_counts(options)
    scheme, measure = settings.scheme, settings.measure
    axis = scheme.measures[0]
    threshold: float | None = float(settings.threshold)
    if args.measure not in (None, axis):  # converted to the measure on the axis, if possible
        least = measure_of(args.measure, settings.threshold).resemblance
        threshold = float(least) if axis == "jaccard" and least else None
    places = {i / STEPS for i in range(STEPS + 1)}
    bits = measure.bits if isinstance(measure, Hamming) else 0
    if bits:
        places = {(bits - i * bits // (2 * STEPS)) / bits for i in range(STEPS + 1)}
    if threshold is not None:
        places.add(threshold)
    if all(scheme.recall(place) in (0, 1) for place in places):
        raise UsageError(f"no curve, because no chance is involved: {scheme.promise}")
    print(f"{scheme.promise}\n\n{'bits apart' if bits else axis:<10}  probability of sharing a key")
    for place in sorted(places, reverse=bits > 0):
        chance, shown_at = scheme.recall(place), round((1 - place) * bits) if bits else place
        bar = "#" * round(chance * BAR)
        note = f"{bar:{BAR}}  <- the threshold" if place == threshold else bar
        print(f"{shown_at:<10.6g}  {shown(chance)}  {note}".rstrip())
    if threshold is not None:
        print("", *area_rows(areas(scheme.recall, threshold)), sep="\n")


def area_rows(areas: Areas) -> list[str]:
    """Return lines with the areas of false negatives and of false positives, one line each.

    >>> print(*area_rows(Areas(4.80823e-7, 0.26806)), sep="\\n")
    false negatives  4.81e-7      area above the curve from the threshold on: pairs that are missed
    false positives  0.269        area below it up to the threshold: dissimilar pairs compared
    """
    missed, vain = map(shown_area, areas)
    note = "area below it up to the threshold: dissimilar pairs compared"
    if not areas.false_positives:
        vain, note = "-", "nothing is promised about pairs below the threshold"
    above = "area above the curve from the threshold on: pairs that are missed"
    return [f"false negatives  {missed:11}  {above}", f"false positives  {vain:11}  {note}"]


POINTS, WEIGHTS = (column.tolist() for column in np.polynomial.legendre.leggauss(16))  # on -1 … 1
PRECISION = 1e-15  # error for which an interval is not halved again
MAX_HALVINGS = 40
KNOWN = 1e-12  # smaller areas may be rounding errors
UP = Context(prec=3, rounding=ROUND_UP)


class Areas(NamedTuple):
    false_negatives: float
    false_positives: float  # 0 if the scheme promises nothing below the threshold


def areas(recall: Callable[[float], float], threshold: float) -> Areas:
    """Return the areas of false negatives and false positives for a curve and a threshold."""
    return Areas(integral(lambda s: 1 - recall(s), threshold, 1), integral(recall, 0, threshold))


def integral(
    f: Callable[[float], float], low: float, high: float, halvings: int = MAX_HALVINGS
) -> float:
    """Integrate f from `low` to `high` by 16-point Gauss quadrature, on intervals halved as needed.

    The rule never evaluates f at the ends: a curve may jump at the threshold.
    """
    middle = (low + high) / 2
    left, right = _by_gauss(f, low, middle), _by_gauss(f, middle, high)
    if abs(left + right - _by_gauss(f, low, high)) <= PRECISION or not halvings:
        return left + right
    return integral(f, low, middle, halvings - 1) + integral(f, middle, high, halvings - 1)


def _by_gauss(f: Callable[[float], float], low: float, high: float) -> float:
    middle, half = (low + high) / 2, (high - low) / 2
    return half * float(sum(w * f(middle + half * x) for x, w in zip(POINTS, WEIGHTS)))


def shown_area(area: float) -> str:
    """Format an area, rounded up to three significant digits, or as "below 1e-12"."""
    if area < KNOWN:
        return "below 1e-12"
    return str(UP.create_decimal(f"{area:.12g}")).replace("E", "e")  # 0.25 may be a hair above
