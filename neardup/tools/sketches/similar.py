"""`similar`: write the pairs of records with similar sketches, with confidence intervals.

The tokens of one file are in memory in order, each with the number of its record: the *postings*.
The records of the other file, or of the same, pass by in blocks, and are compared with the records
that share a token with them: see `SharedTokens`.

Held in memory: 32 bytes for each posting while they are sorted, 12 afterwards (at t = 0.9 a record
has 7 of them with min:64, 28 as pairs of hashes, and 13 with signature:128); 16 bytes and the id of
each record; and some 100 MB of counts and blocks.  Free memory for the file makes it faster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Callable, NamedTuple

import numpy as np

from neardup.commands.truth import share
from neardup.engines.local.answer_file import file_answer
from neardup.joins.inverted_index import InvertedIndex
from neardup.lines.answer_lines import ESTIMATES, format_estimate
from neardup.options.command_parser import CommandParser
from neardup.options.table import DEFAULT_THRESHOLD
from neardup.reading.blocks import check_inputs
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import UsageError, one_of
from neardup.sets.ragged import Ragged, chunks
from neardup.similarity.intervals import exact_interval
from neardup.similarity.measures import Threshold
from neardup.tools.sketches.sketch import NUMBERS_AT_ONCE, SketchFile, check_agreement
from neardup.tools.sketches.sketch_kinds import CONTAINMENT, JACCARD, SharedTokens, rarity_of

PAIR_NUMBERS = 32  # the fixed cost of a pair, in numbers of its sketches
CANDIDATES = "candidate pairs"
Tokens = Callable[[Ragged], Ragged]
OWN = flags(
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
DESCRIPTION = """Write all pairs whose similarity, estimated from sketches, reaches a threshold.

    A TAB B TAB ~LOW..HIGH TAB ESTIMATE

The exact similarity is between LOW and HIGH with probability --confidence; for sketches that hold
whole sets, all three values are exact.  With two files, A is from SKETCHES and B from MORE.

    python3 -m neardup sketch videos.txt --to videos.sketches
    python3 -m neardup similar videos.sketches --threshold 0.8 > pairs.tsv
    python3 -m neardup similar videos.sketches --of VIDEO_1 --of VIDEO_3
"""


def main() -> None:
    parser = CommandParser("python3 -m neardup similar", DESCRIPTION)
    parser.add(*OWN)
    parser.add_shared("-o")
    args = parser.parse_intermixed_args()
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


class Alike(NamedTuple):
    """Pairs of records by number (int64), in which `part` of `whole` items agree."""

    asked: np.ndarray
    passing: np.ndarray
    part: np.ndarray
    whole: np.ndarray
    known: np.ndarray
    swapped: bool


@dataclass(frozen=True)
class Search:
    """A search for similar pairs within a file of sketches, or between it and `other`."""

    file: SketchFile
    other: SketchFile | None
    threshold: Threshold
    measure: str
    of: np.ndarray | None
    counters: Counters

    def pairs(self) -> Iterator[Alike]:
        """Yield batches of the pairs whose estimate reaches the threshold, each pair once.

        If `of` is given, only pairs with one of these records are compared.
        """
        files = [self.file] if self.other is None else [self.file, self.other]
        total = sum(int(self.file.kind.numbers(file.items).sum()) for file in files)
        blocks = (sketches for file in files for _, sketches in file.blocks())
        tokens = SharedTokens(
            self.file.kind, self.threshold, rarity_of(self.file.kind, blocks, total)
        )
        if self.measure == JACCARD:
            _, sample = next(self.file.blocks(), (0, Ragged.from_rows([])))
            largest = max(int(file.items.max(initial=0)) for file in files)
            tokens = tokens.by_pairs(sample, largest)
            yield from self._found(postings_of(self.file, self.of, tokens), tokens.first)
            return
        yield from self._found(postings_of(self.file, self.of, tokens), tokens.all)
        if self.other is None and self.of is not None:
            every = postings_of(self.file, self.of, tokens, every=True)
            yield from self._found(every, tokens.first, swapped=True)

    def _found(
        self, postings: InvertedIndex, passing: Tokens, swapped: bool = False
    ) -> Iterator[Alike]:
        for first, sketches in (self.other or self.file).blocks():
            for y, x, _ in postings.overlaps(passing(sketches)):
                keep = self._wanted(x, y + first, swapped)
                x, y = x[keep], y[keep]
                self.counters.add(CANDIDATES, len(x))
                weights = self.file.kind.numbers(self.file.items[x]) + PAIR_NUMBERS
                for some in (slice(*bounds) for bounds in chunks(weights, NUMBERS_AT_ONCE)):
                    yield self._alike(x[some], y[some], first, sketches, swapped)

    def _wanted(self, x: np.ndarray, y: np.ndarray, swapped: bool) -> np.ndarray:
        """Return which pairs (x, y) to compare (bool), so that no pair is compared twice."""
        if self.other is not None:
            return np.ones(len(x), dtype=bool)
        again = np.ones(len(y), dtype=bool) if self.of is None else np.isin(y, self.of)
        if self.measure == JACCARD:
            return (x < y) | ((x > y) & ~again)
        return (x != y) & ~(swapped & again)

    def _alike(
        self, x: np.ndarray, y: np.ndarray, first: int, block: Ragged, swapped: bool
    ) -> Alike:
        rows, left = np.unique(x, return_inverse=True)
        sketches = self.file.take(rows).beside(block)
        right = y + len(rows)
        if swapped:
            left, right = right, left
        part, whole, known = self.file.kind.counted(sketches, left, right, self.measure)
        wholes, place = np.unique(whole, return_inverse=True)
        least = [self.file.kind.least_part(self.threshold, n) for n in wholes.tolist()]
        good = (part >= np.array(least, dtype=np.int64)[place]) & (whole > 0)
        self.counters.add("pairs", int(np.count_nonzero(good)))
        return Alike(x[good], y[good] + first, part[good], whole[good], known[good], swapped)


def postings_of(
    file: SketchFile, rows: np.ndarray | None, tokens: SharedTokens, every: bool = False
) -> InvertedIndex:
    """Index a file's sketches, or those in `rows`, by first tokens, or by all tokens if `every`."""
    items = file.items if rows is None else file.items[rows]
    room = int((items if every else tokens.counts(items)).sum())
    values, holders, done = np.empty(room, np.uint64), np.empty(room, np.uint32), 0
    for first, sketches in file.blocks():
        numbers = np.arange(first, first + len(sketches))
        if rows is not None:
            numbers = numbers[np.isin(numbers, rows)]
            sketches = sketches.take(numbers - first)
        some = tokens.all(sketches) if every else tokens.first(sketches)
        end = done + len(some.values)
        values[done:end] = some.values
        holders[done:end] = np.repeat(numbers, some.sizes)
        done = end
    order = np.argsort(values[:done], kind="stable")
    return InvertedIndex(file.records, values[order], holders[order])


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


def shown(part: int, whole: int, known: bool, alpha: Fraction) -> tuple[int, int, int]:
    """Return (low, high, estimate) of a similarity in millionths; all equal if it is `known`."""
    estimate = round(Fraction(part, whole) * 10**6)
    if known:
        return estimate, estimate, estimate
    return (*exact_interval(part, whole, alpha), estimate)
