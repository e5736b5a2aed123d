"""`curve`: the S-curve of a setting, as a table and as a picture.

The probability that two records share a key, by their similarity.  Right of the threshold it should
be high: that is the recall.  Left of it low: who meets there is compared in vain.
"""

from __future__ import annotations

import argparse
from math import nextafter
from pathlib import Path

from neardup.evaluation.curve_plot import Areas, Mark, areas, picture, shown_area
from neardup.options import table
from neardup.options.settings import Settings, settings_before_counts
from neardup.options.table import SCHEME_OPTIONS, Options
from neardup.runtime.errors import UsageError
from neardup.runtime.program import run
from neardup.schemes.scheme import shown
from neardup.similarity.measures import MEASURES

NAME = "neardup curve"
ASKED = ("--scheme", "--exact", "--measure", "--threshold", *SCHEME_OPTIONS)
STEPS, FINE_STEPS = 20, 200  # of the table, and of the picture
BAR = 40
DESCRIPTION = """Show with what probability two records share a key, for each similarity.

Reads no file: the options of the job decide.  From the threshold on it is the recall, and below it
the share of others that are compared in vain.  The areas of what is missed above the threshold,
and of what meets below it, are told in numbers, and shaded in the picture.

    python3 -m neardup curve --threshold 0.8 --max-bands 32
    python3 -m neardup curve --bands 10 --rows 10 --svg curve.svg
"""


def main() -> int:
    return run(NAME, _curve)


def _curve() -> None:
    parser = table.parser(f"python3 -m {NAME}", DESCRIPTION, ASKED)
    parser.add_argument("--svg", metavar="FILE", help="write the curve as a picture, too")
    args = parser.parse_args()
    if args.svg == "":
        raise UsageError("--svg: the name of the file is empty")
    settings = settings_before_counts(Options.of(args))
    scheme = settings.scheme
    threshold = _threshold(args, settings)
    fine = [(place, scheme.recall(place)) for place in _fine_places(threshold)]
    if all(chance in (0, 1) for _, chance in fine):
        raise UsageError(f"there is no chance in it, so no curve: {scheme.promise}")
    mark = None
    if threshold is not None:
        mark = Mark(threshold, scheme.recall(threshold), areas(scheme.recall, threshold))
    if args.svg is not None:
        axis = f"{scheme.measures[0]} similarity"
        Path(args.svg).write_text(picture(fine, mark, axis, scheme.promise), encoding="utf-8")
    places = {i / STEPS for i in range(STEPS + 1)} | ({mark.threshold} if mark else set())
    print(f"{scheme.promise}\n\n{scheme.measures[0]:<10}  probability to meet")
    for place in sorted(places):
        print(table_row(place, scheme.recall(place), place == threshold))
    if mark:
        print("", *area_rows(mark.areas), sep="\n")


def _threshold(args: argparse.Namespace, settings: Settings) -> float | None:
    """Where the threshold is on the axis, which is by the scheme's own measure; None if nowhere."""
    own = settings.scheme.measures[0]
    if args.measure in (None, own):
        return float(settings.threshold)
    least = MEASURES[args.measure](settings.threshold).resemblance
    return float(least) if own == "jaccard" and least else None


def _fine_places(threshold: float | None) -> list[float]:
    """For the picture; those next to the threshold too, since a curve may jump there."""
    places = {i / FINE_STEPS for i in range(FINE_STEPS + 1)}
    return sorted(places | ({threshold, nextafter(threshold, 0)} if threshold else set()))


def table_row(similarity: float, chance: float, marked: bool) -> str:
    """
    >>> print(table_row(0.9, 0.5, True))
    0.9         0.500000  ####################                      <- the threshold
    """
    bar = "#" * round(chance * BAR)
    note = f"{bar:{BAR}}  <- the threshold" if marked else bar
    return f"{similarity:<10.6g}  {shown(chance)}  {note}".rstrip()


def area_rows(areas: Areas) -> list[str]:
    """
    >>> print(*area_rows(Areas(4.80823e-7, 0.26806)), sep="\\n")
    false negatives  4.81e-7      area above the curve from the threshold on: pairs that never meet
    false positives  0.269        area below it up to the threshold: strangers that are compared
    """
    missed, vain = map(shown_area, areas)
    if not areas.false_positives:
        vain, note = "-", "nothing is promised of pairs below the threshold"
    else:
        note = "area below it up to the threshold: strangers that are compared"
    above = "area above the curve from the threshold on: pairs that never meet"
    return [
        f"false negatives  {missed:11}  {above}",
        f"false positives  {vain:11}  {note}",
    ]
