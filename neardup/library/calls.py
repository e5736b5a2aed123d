"""`pairs`, `clusters` and `deduplicate`: near-duplicates among records in memory.

Records are texts, or sets or lists of hashables, or (id, record) tuples of these; also a column of
pandas, polars or Arrow.  Without ids, positions stand for them.  The threshold is 0.9 unless given.
Answers hold ids as they were given, or positions, and exact similarities.

`Meeting` is the engine: the stages of run_local.sh in one process, without files or output.

    records ── keys ── the keys that two records share ── batches of buckets ── pairs, or edges
             with_keys           pruned                   in_batches           a join

It holds the records' sets, and 40 bytes for each of their keys while these are pruned.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.decisions.rules import NO_PAIR
from neardup.engines.local.key_pruning import (
    RecordSketches,
    one_key_a_group,
    pruned,
    record_sketches,
)
from neardup.library.keywords import (
    DecisionKeywords,
    Keywords,
    Value,
    as_value_errors,
    options_of,
    with_keywords,
)
from neardup.library.user_records import UserRecords
from neardup.lines.keyed_lines import encode_sets
from neardup.options.settings import Settings, counts_first, settings_before_counts
from neardup.reading.blocks import NEW
from neardup.runtime.counters import Counters
from neardup.sets.ragged import Batch, Ragged
from neardup.sets.token_counts import TokenCounter
from neardup.sets.weighted_sets import bagged, counted
from neardup.similarity.weighted_measures import TokenWeights
from neardup.stages.pairs import decide_edges, portions, tagged, with_keys
from neardup.verification.bucket_batch import BucketBatch, in_batches

if TYPE_CHECKING:  # only 3.12 and later have it in typing
    from typing_extensions import Unpack


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


@with_keywords(Keywords)
def pairs(
    records: Iterable[Any], threshold: Value = None, **options: Unpack[Keywords]
) -> list[Pair]:
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


@with_keywords(Keywords)
def clusters(
    records: Iterable[Any], threshold: Value = None, **options: Unpack[Keywords]
) -> list[list[Any]]:
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


@with_keywords(DecisionKeywords)
def deduplicate(
    records: Iterable[Any], threshold: Value = None, **options: Unpack[DecisionKeywords]
) -> Deduplicated:
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
        cls, output: str, records: Iterable[Any], threshold: Value, options: Mapping[str, Any]
    ) -> _Job:
        given = UserRecords.of(records)
        texts = given.texts or (not len(given) and options.get("shingle") != "bag")
        asked = options_of(output, texts, {"threshold": threshold, **options})
        settings = settings_before_counts(asked)
        form = settings.form
        weights = settings.scheme.weights or TokenWeights()
        gather = counted if weights.repeats else Ragged.from_unsorted
        if form.shingle is not None:
            batches = given.batches_of_texts(form.shingle, form.clean, gather)
        else:
            batches = given.batches_of_sets(bagged if form.bag else gather)
        batches = (batch for batch in batches if batch.ids)
        if counts_first(asked):
            all_, counter = list(batches), TokenCounter()
            for batch in all_:
                counter.add(batch.sets)
            settings, batches = Settings.of(asked, counter.counts()), iter(all_)
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


class NullCounters(Counters):
    """Counts, in memory."""

    def __init__(self) -> None:
        self.counts = {}
        self.promise = ""
        self.repeated = b""

    def alive(self) -> None:
        """Nobody waits for it."""


Similarities = dict[tuple[int, int], Fraction]  # of positions


@dataclass(frozen=True)
class Meeting:
    """n records that have shingles, and where they may meet.

    sets: n rows; places: uint64 (n,); keys: n rows, mostly empty; numbers: int64, of all records
    that were given, what each is called on lines, so that these are in the order of their ids.
    """

    sets: Ragged
    places: np.ndarray
    keys: Ragged
    numbers: np.ndarray

    @classmethod
    def of(cls, batches: Iterable[Batch], numbers: np.ndarray, settings: Settings) -> Meeting:
        kept: list[Batch] = []
        entries, known = [np.empty((0, 2), np.uint64)], [np.empty((0, 2), np.uint64)]
        done = 0
        for batch, keys in with_keys(portions(batches, settings), settings, NullCounters()):
            records = np.arange(done, done + len(batch.ids), dtype=np.uint64)
            done += len(batch.ids)
            entries.append(np.column_stack((keys.values, np.repeat(records, keys.sizes))))
            known.append(record_sketches(batch))
            kept.append(batch)
        of_all = RecordSketches([], [np.concatenate(known)])
        _, rows = pruned(np.concatenate(entries), of_all, settings.measure)
        return cls(
            Ragged.end_to_end([batch.sets for batch in kept]),
            np.concatenate([np.empty(0, np.uint64), *(batch.places for batch in kept)]),
            one_key_a_group(rows, np.arange(done + 1, dtype=np.uint64)),
            numbers,
        )

    def lines(self, settings: Settings) -> list[bytes]:
        """What the output's join makes of all buckets, sorted; ids are numbers."""
        join = settings.join(NullCounters())
        found = b"".join(chain.from_iterable(map(join, self._batches(settings))))
        return sorted(found.splitlines(keepends=True))

    def similarities(self, numbers: np.ndarray, settings: Settings) -> Similarities:
        """Of pairs that reach the threshold (numbers, int64 (p, 2)), in their order; of a measure
        with a direction, of both that reach it."""
        rows, place = np.unique(self._row_of[numbers].ravel(), return_inverse=True)
        sets = self.sets.take(rows)
        first: dict[bytes, int] = {}  # of equal sets: a thousand copies are compared once
        same = np.array([first.setdefault(t, i) for i, t in enumerate(encode_sets(sets))], np.int64)
        pairs = list(zip(*same[place].reshape(-1, 2).T.tolist()))
        left, right = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2).T
        verified = settings.measure.verified(sets, left, right)
        fractions = map(cache(Fraction), verified.part.tolist(), verified.whole.tolist())
        known = dict(zip(zip(verified.left.tolist(), verified.right.tolist()), fractions))
        found: Similarities = {}
        ends = self._positions[rows][place].reshape(-1, 2).tolist()
        for (i, j), (x, y) in zip(ends, pairs):
            if (x, y) in known:
                found[i, j] = known[x, y]
            if settings.measure.directed and (y, x) in known:
                found[j, i] = known[y, x]
        return found

    @property
    def _positions(self) -> np.ndarray:
        return (self.places - np.uint64(NEW)).astype(np.int64)

    @property
    def _row_of(self) -> np.ndarray:
        """The row of each number; -1 without shingles."""
        rows = np.full(len(self.numbers), -1)
        rows[self.numbers[self._positions]] = np.arange(len(self.places))
        return rows

    def _batches(self, settings: Settings) -> Iterator[BucketBatch]:
        some = np.flatnonzero(self.keys.sizes)
        ids = [b"%010d" % number for number in self.numbers[self._positions[some]].tolist()]
        batch = tagged(Batch(ids, self.sets.take(some), places=self.places[some]), settings)
        keys = self.keys.take(some)
        owner = np.repeat(np.arange(len(some)), keys.sizes)
        return in_batches(keys.values, owner, batch.ids, batch.sets)
