"""`curve`: the S-curve of a setting, as a table and as a picture.

The probability that two records share a key, by their similarity.  Right of the threshold it should
be high: that is the recall.  Left of it low: who meets there is compared in vain.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from neardup import options
from neardup.evaluation.svg import picture
from neardup.options import SCHEME_OPTIONS, Settings
from neardup.process.errors import UsageError
from neardup.process.program import run
from neardup.schemes.scheme import shown
from neardup.similarity.measures import MEASURES

NAME = "neardup curve"
ASKED = ("--scheme", "--exact", "--measure", "--threshold", *SCHEME_OPTIONS)
STEPS, FINE_STEPS = 20, 200  # of the table, and of the picture
BAR = 40
DESCRIPTION = """Show with what probability two records share a key, for each similarity.

Reads no file: the options of the job decide.  From the threshold on it is the recall, and below it
the share of others that are compared in vain.

    python3 -m neardup curve --threshold 0.8 --max-bands 32
    python3 -m neardup curve --bands 10 --rows 10 --svg curve.svg
"""


def main() -> int:
    return run(NAME, _curve)


def _curve() -> None:
    parser = options.parser(f"python3 -m {NAME}", DESCRIPTION, ASKED)
    parser.add_argument("--svg", metavar="FILE", help="write the curve as a picture, too")
    args = parser.parse_args()
    if args.svg == "":
        raise UsageError("--svg: the name of the file is empty")
    settings = options.settings_before_counts(args)
    scheme = settings.scheme
    fine = [(i / FINE_STEPS, scheme.recall(i / FINE_STEPS)) for i in range(FINE_STEPS + 1)]
    if all(chance in (0, 1) for _, chance in fine):
        raise UsageError(f"there is no chance in it, so no curve: {scheme.promise}")
    mark = _mark(args, settings)
    if args.svg is not None:
        axis = f"{scheme.measures[0]} similarity"
        marked = None if mark is None else (mark, scheme.recall(mark))
        Path(args.svg).write_text(picture(fine, marked, axis, scheme.promise), encoding="utf-8")
    places = {i / STEPS for i in range(STEPS + 1)} | ({mark} if mark is not None else set())
    print(f"{scheme.promise}\n\n{scheme.measures[0]:<10}  probability to meet")
    for place in sorted(places):
        print(table_row(place, scheme.recall(place), place == mark))


def _mark(args: argparse.Namespace, settings: Settings) -> float | None:
    """Where the threshold is on the axis, which is by the scheme's own measure; None if nowhere."""
    own = settings.scheme.measures[0]
    if args.measure in (None, own):
        return float(settings.threshold)
    least = MEASURES[args.measure](settings.threshold).resemblance
    return float(least) if own == "jaccard" and least else None


def table_row(similarity: float, chance: float, marked: bool) -> str:
    """
    >>> print(table_row(0.9, 0.5, True))
    0.9         0.500000  ####################                      <- the threshold
    """
    bar = "#" * round(chance * BAR)
    note = f"{bar:{BAR}}  <- the threshold" if marked else bar
    return f"{similarity:<10.6g}  {shown(chance)}  {note}".rstrip()
