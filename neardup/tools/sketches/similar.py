"""`similar`: write the pairs of records with similar sketches, with confidence intervals."""

import argparse
import os
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from neardup.commands.exact_answers import share
from neardup.engines.local.answer_file import file_answer
from neardup.lines.answer_lines import format_estimate
from neardup.lines.answer_tables import ESTIMATES
from neardup.options.command_parser import CommandParser, flags
from neardup.options.table import DEFAULT_THRESHOLD
from neardup.reading.blocks import check_inputs
from neardup.runtime.counters import Counters
from neardup.runtime.program import UsageError, one_of
from neardup.similarity.measures import Threshold
from neardup.tools.sketches.similar_pairs import CANDIDATES, Alike, Search, shown
from neardup.tools.sketches.sketch_file import SketchFile, check_agreement
from neardup.tools.sketches.sketch_kinds import CONTAINMENT, JACCARD

DESCRIPTION = """Write all pairs whose similarity, estimated from sketches, reaches a threshold.

    A TAB B TAB ~LOW..HIGH TAB ESTIMATE

The exact similarity is between LOW and HIGH with probability --confidence; for sketches that hold
whole sets, all three values are exact.  With two files, A is from SKETCHES and B from MORE.

    python3 -m neardup sketch videos.txt --to videos.sketches
    python3 -m neardup similar videos.sketches --threshold 0.8 > pairs.tsv
    python3 -m neardup similar videos.sketches --of VIDEO_1 --of VIDEO_3
"""


def main() -> None:
    args = _command_line()
    alpha = 1 - Fraction(str(args.confidence))
    files = [name for name in (args.sketches, args.more) if name is not None]
    check_inputs(files)
    file = SketchFile(args.sketches)
    other = SketchFile(args.more) if args.more is not None else None
    if other:
        check_agreement(file, other)
    if args.measure not in file.kind.measures:
        raise UsageError(
            f"--measure {args.measure} needs sketches of --kind mod:M, and {args.sketches} has "
            f"{file.kind.text}; make such sketches, or leave --measure out"
        )
    of = file.rows_of(map(os.fsencode, args.of)) if args.of else None
    counters = Counters("similar", progress=CANDIDATES, verbosity=args.verbosity)
    for name in (CANDIDATES, "pairs"):
        counters.add(name, 0)
    search = Search(file, other, args.threshold, args.measure, of, counters)
    with file_answer("-o", args.answer, files, ESTIMATES) as answer:
        answer.write(b"".join(_lines_of(search, alike, alpha)) for alike in search.pairs())
    counters.report()


def _command_line() -> argparse.Namespace:
    parser = CommandParser("python3 -m neardup similar", DESCRIPTION)
    own = flags(
        f"""
        sketches SKETCHES  a file made by `neardup sketch`
        more MORE       a second file of sketches, to pair with SKETCHES
        --threshold T   the minimum estimate of a pair, 0 < T <= 1, such as 0.9 or 9/10
                        [{DEFAULT_THRESHOLD}]
        --confidence P  confidence of each interval [0.95]
        --measure NAME  jaccard; or, for sketches of --kind mod:M, containment of A in B [{JACCARD}]
        --of ID…        only pairs with this record of SKETCHES; may be repeated
        """,
        more={"nargs": "?"},
        threshold=Threshold.parse,
        confidence=share,
        measure=one_of(JACCARD, CONTAINMENT),
    )
    parser.add(*own)
    parser.add_shared("-o")
    return parser.parse_intermixed_args()


def _lines_of(search: Search, alike: Alike, alpha: Fraction) -> Iterator[bytes]:
    file, other = search.file, search.other or search.file
    figures = cache(lambda part, whole, known: shown(part, whole, known, alpha))
    numbers = zip(alike.part.tolist(), alike.whole.tolist(), alike.known.tolist())
    for a, b, number in zip(file.ids(alike.asked), other.ids(alike.passing), numbers):
        if search.other is None:
            if a == b:
                search.counters.repeated_id(a)
                continue
            if alike.swapped or (search.measure == JACCARD and b < a):
                a, b = b, a
        yield format_estimate(a, b, *figures(*number))
