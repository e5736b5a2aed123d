"""`pairs`, `clusters` and `deduplicate`: the calls of the library.

What the library answers: ids as they were given, or positions, and exact similarities.

Keyword arguments → `Settings`: the options of the command line, with underscores.

All complaints are those of the command line, as ValueError.

The three questions: which pairs are near-duplicates, how they cluster, and who stays.

Records are texts, or sets or lists of hashables, or (id, record) tuples of these; also a column of
pandas, polars or Arrow.  Without ids, positions stand for them.  The threshold is 0.9
unless told.  Options are those of the command line, with underscores: shingle="char:5", exact=True.
"""

from __future__ import annotations

import argparse
import io
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, NamedTuple, Union

import numpy as np

from neardup.decisions.rules import NO_PAIR
from neardup.library.memory_engine import Meeting, NullCounters
from neardup.library.user_records import UserRecords
from neardup.options.settings import Settings, counts_first, settings_before_counts
from neardup.options.table import OPTIONS, parser
from neardup.reading.blocks import NEW
from neardup.reading.input_format import InputFormat
from neardup.runtime.errors import StageError, UsageError
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import TokenCounter
from neardup.sets.weighted_sets import bagged, counted
from neardup.similarity.weighted_measures import TokenWeights
from neardup.stages.deciding import decide_edges


class Pair(NamedTuple):
    """Two records that are near-duplicates, a before b.

    By the measure containment, a is contained in b, and a pair may be there twice.  The cosine is
    rounded to millionths; all others are exact.
    """

    a: Any
    b: Any
    similarity: Fraction


class Removed(NamedTuple):
    """A record that goes, and because of which one that stays; with the rule "cluster" the two may
    be no pair, and there is no similarity."""

    id: Any
    because: Any
    similarity: Fraction | None


class Deduplicated(NamedTuple):
    """The ids of the records that stay, and those that go, both in the order of the records."""

    kept: list[Any]
    removed: list[Removed]


Value = Union[str, int, float, Fraction, Decimal, None]
FOR_FILES = "is for files and programs; the library has its records in memory"
ABSENT = {
    "--input": "records are texts where they are str, and sets of shingles where they are not",
    "--output": "call neardup.pairs, neardup.clusters or neardup.deduplicate",
    "--counts": "the library counts the tokens of the records itself, where a scheme asks for it",
    "--own-counts": "the library counts the tokens of the records itself",
    "--verify": "sketches give estimates, and the library is exact; ./run_local.sh has --verify",
    "--against": "the library has one collection; ./run_local.sh has --against",
    "--between": "the library has one collection; ./run_local.sh has --between",
    "--input-files": FOR_FILES,
    "--max-line": FOR_FILES,
    "--max-bad": "the library always stops at the first bad record",
    "--id": "give (id, record) tuples",
    "--text": "give the texts themselves, such as a column of a table",
    "--strict": "the library always stops at the first bad record",
}
OWN_WEIGHTS = "--weights own: an element of a set has no weight here; ./run_local.sh takes a file"


@contextmanager
def as_value_errors() -> Iterator[None]:
    """What ends a program is a ValueError in a library."""
    try:
        yield
    except (UsageError, StageError) as error:
        raise ValueError(str(error)) from None


def arguments(
    output: str, texts: bool, threshold: Value, options: Mapping[str, Value]
) -> argparse.Namespace:
    """As if they had been read from a command line; UsageError where one is none.

    >>> args = arguments("pairs", True, 0.9, {"shingle": "char:5", "exact": True, "seed": 7})
    >>> args.input, args.threshold, args.shingle, args.exact, args.seed
    ('text', '0.9', 'char:5', True, '7')
    """
    args = parser("neardup", "").parse_args([])
    for name, value in {"threshold": threshold, **options}.items():
        flag = "--" + name.replace("_", "-")
        if flag not in OPTIONS or "-" in name:  # which would be set, and never read
            known = (known[2:].replace("-", "_") for known in OPTIONS if known not in ABSENT)
            raise UsageError(f"{name}: no such option; there are {', '.join(known)}")
        if flag in ABSENT:
            raise UsageError(f"{flag}: {ABSENT[flag]}")
        if value is not None:
            switch = OPTIONS[flag].get("action") == "store_true"
            setattr(args, name, _switch(flag, value) if switch else _text(flag, value))
    if args.weights == "own":
        raise UsageError(OWN_WEIGHTS)
    args.output, args.input = output, "text" if texts else "shingles"
    return args


def _switch(flag: str, value: Value) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{flag}: {value!r} is not True or False")
    return value


def _text(flag: str, value: Value) -> str:
    """As it would be typed."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, complex)) or not isinstance(value, (Real, Decimal)):
        raise UsageError(f"{flag}: expected text or a number, got {value!r}")
    if isinstance(value, (int, Fraction)):
        return str(value)
    if isinstance(value, float):  # of numpy, too, whose repr is longer
        value = float(value)
    text = str(value)  # the shortest decimals that are this number
    return format(Decimal(text), "f") if "e" in text.lower() else text


def pairs(records: Iterable[Any], threshold: Value = None, **options: Value) -> list[Pair]:
    """All pairs at the threshold (0.9) or above, in the order of their ids; a comes before b.

    >>> pairs(["to be or not to be", "or not", "To be, or not to be"], 0.8, shingle="word:1")
    [Pair(a=0, b=2, similarity=Fraction(4, 5))]
    >>> pairs([("x", {1, 2, 3}), ("y", {1, 2, 3, 4})], "3/4")
    [Pair(a='x', b='y', similarity=Fraction(3, 4))]
    """
    with as_value_errors():
        job = _Job.of("pairs", records, threshold, options)
        lines = job.meeting.lines(job.settings)
        # Of a measure with a direction, both ways may be there.
        both = sorted({tuple(sorted(map(int, line.split(b"\t", 2)[:2]))) for line in lines})
        found = job.meeting.similarities(np.array(both, np.int64).reshape(-1, 2), job.settings)
    number = job.numbers.tolist()
    best: dict[tuple[Hashable, Hashable], Fraction] = {}
    for a, b in sorted(found, key=lambda pair: (number[pair[0]], number[pair[1]])):
        ids = job.id(a), job.id(b)
        if ids[0] != ids[1]:  # records of one id are no pair
            best[ids] = max(found[a, b], best.get(ids, found[a, b]))
    return [Pair(*ids, similarity) for ids, similarity in best.items()]


def clusters(records: Iterable[Any], threshold: Value = None, **options: Value) -> list[list[Any]]:
    """The records that pairs connect, each cluster in the order of ids; others are in none.

    >>> clusters(["a b c d", "e f", "a b c d", "a b c d e", "g h"], 0.5)
    [[0, 2, 3]]
    """
    with as_value_errors():
        job = _Job.of("clusters", records, threshold, options)
        found: dict[bytes, list[Any]] = defaultdict(list)
        for line in job.decided():
            first, number = line.split(b"\t")
            found[first].append(job.id_of(int(number)))
    return list(found.values())


def deduplicate(records: Iterable[Any], threshold: Value = None, **options: Value) -> Deduplicated:
    """Which records stay, and because of whom each other goes; both in the order of the records.

    In order of priority (keep="first", "longest" or "smallest") a record stays unless one that
    stays before it is a pair with it.

    >>> answer = deduplicate(["a b c d", "", "A b c  d", "e f"])
    >>> answer.kept
    [0, 1, 3]
    >>> answer.removed
    [Removed(id=2, because=0, similarity=Fraction(1, 1))]
    """
    with as_value_errors():
        job = _Job.of("removed", records, threshold, options)
        because: dict[int, int] = {}
        chained: set[int] = set()
        for line in job.decided():
            place, _, kept, similarity = line.rstrip(b"\n").split(b"\t")
            because[int(place, 16) - NEW] = job.position[int(kept)]
            if similarity == NO_PAIR:
                chained.add(int(place, 16) - NEW)
        sure = [pair for pair in because.items() if pair[0] not in chained]
        both = job.numbers[np.array(sure, dtype=np.int64).reshape(-1, 2)]
        found = job.meeting.similarities(both, job.settings)
    return Deduplicated(
        [job.id(i) for i in range(len(job.given)) if i not in because],
        [Removed(job.id(i), job.id(j), found.get((i, j))) for i, j in sorted(because.items())],
    )


@dataclass(frozen=True)
class _Job:
    """What was given and asked; position: of the record of each number."""

    given: UserRecords
    settings: Settings
    meeting: Meeting
    position: list[int]

    @classmethod
    def of(
        cls, output: str, records: Iterable[Any], threshold: Value, options: Mapping[str, Value]
    ) -> _Job:
        given = UserRecords.of(records)
        texts = given.texts or (not len(given) and options.get("shingle") != "bag")
        args = arguments(output, texts, threshold, options)
        settings = settings_before_counts(args)
        form = InputFormat.of(args.input, args.shingle, args.clean)
        weights = settings.scheme.weights or TokenWeights()
        gather = counted if weights.repeats else Ragged.from_unsorted
        if form.shingle is not None:
            batches = given.batches_of_texts(form.shingle, form.clean, gather)
        else:
            batches = given.batches_of_sets(bagged if form.bag else gather)
        batches = (batch for batch in batches if batch.ids)
        if counts_first(args):
            all_, counter = list(batches), TokenCounter()
            for batch in all_:
                counter.add(batch.sets)
            settings, batches = Settings.of(args, counter.counts()), iter(all_)
        position = _in_order(given)
        numbers = np.empty(len(given), dtype=np.int64)
        numbers[position] = np.arange(len(given))
        return cls(given, settings, Meeting.of(batches, numbers, settings), position)

    @property
    def numbers(self) -> np.ndarray:
        return self.meeting.numbers

    def decided(self) -> list[bytes]:
        """The lines of a decision, on numbers."""
        edges = [b"".join(self.meeting.lines(self.settings))]
        return list(decide_edges(edges, self.settings, NullCounters(), io.BytesIO))

    def id(self, position: int) -> Any:
        return position if self.given.ids is None else self.given.ids[position]

    def id_of(self, number: int) -> Any:
        return self.id(self.position[number])


def _in_order(given: UserRecords) -> list[int]:
    """The positions of the records in the order of ids, and of equal ids as they come.

    Strings are in the order of their bytes in UTF-8, numbers in theirs, all others as they come.
    """
    if given.ids is None:
        return list(range(len(given)))
    ids: list[Any] = given.ids
    kinds = set(map(type, ids))
    if not any(all(issubclass(kind, of) for kind in kinds) for of in (str, Integral)):
        first: dict[Any, int] = {}
        ids = [first.setdefault(id_, len(first)) for id_ in ids]
    return sorted(range(len(ids)), key=ids.__getitem__)
