"""`pairs`, `clusters`, `deduplicate` and `passages`, for records in memory.

Records are texts, or sets or lists of hashables, or with measure="hamming" bit vectors, or (id,
record) tuples of these; also a column of pandas, polars or Arrow.  Answers have the given ids, or
else positions.

`_Run` has the stages of a job in one process, without output:

    records ─┬─ pairs_in_memory ──────────────────────────────────────────────┬─ pairs, or edges
             └─ keys ── the keys that two records share ── batches of buckets ─┘
               with_keys       candidate_keys               in_batches

It holds the records' sets, and their keys: 40 bytes for each while candidate keys are found.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import chain
from numbers import Integral
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple, Union, overload

import numpy as np

from neardup.library import keywords
from neardup.library.deduplicated import Deduplicated, FoundEdges, rows_at
from neardup.library.frames import (
    HasColumnNames,
    HasColumns,
    Limit,
    Table,
    UserVectors,
    records_of,
    taken,
)
from neardup.library.keywords import DecisionKeywords, PairKeywords, Value, with_keywords
from neardup.library.user_records import UserRecords
from neardup.options.settings import (
    Settings,
    counts_first,
    form_of,
    names_no_scheme,
    settings_before_counts,
)
from neardup.reading.blocks import NEW
from neardup.reading.field_values import valued
from neardup.reading.fingerprint_lines import FINGERPRINTS
from neardup.runtime.counters import Counters
from neardup.runtime.program import cores, whole
from neardup.sets.ragged import Batch, Ragged
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import Verified
from neardup.stages import pairs_in_memory
from neardup.stages.candidate_keys import candidate_keys, rows_of
from neardup.stages.near_keys import near_keys
from neardup.stages.pairs import decide_edges, portions, with_keys
from neardup.stages.pairs_in_memory import Choice
from neardup.stages.repeated_runs import find_passages
from neardup.stages.word_lines import WordLines, Words
from neardup.verification import JoinParts
from neardup.verification.bucket_batch import in_batches
from neardup.verification.record_pairs import PairLines

if TYPE_CHECKING:  # typing has it from Python 3.12 on
    from typing_extensions import Unpack

Records = Union[Iterable[Any], HasColumns, HasColumnNames]


class Pair(NamedTuple):
    """Two near-duplicates: their ids a and b, and their similarity.

    a comes before b.  With the measure containment, instead, a is contained in b, and with
    tversky:A,B the similarity is that of a to b: both directions may be returned.  The cosine is
    rounded to millionths; other similarities are exact.
    """

    a: Any
    b: Any
    similarity: Fraction


@with_keywords(PairKeywords)
def pairs(
    records: Records,
    threshold: Value = None,
    *,
    text: str | None = None,
    id: str | None = None,
    **options: Unpack[PairKeywords],
) -> list[Pair]:
    """Return the pairs at or above the threshold (default 0.9), in the order of their ids.

    Of a table, `text` names the column of texts or sets, and `id` that of the ids.

    >>> pairs(["to be or not to be", "or not", "To be, or not to be"], 0.8, shingle="word:1")
    [Pair(a=0, b=2, similarity=Fraction(4, 5))]
    >>> pairs([("x", {1, 2, 3}), ("y", {1, 2, 3, 4})], "3/4")
    [Pair(a='x', b='y', similarity=Fraction(3, 4))]
    """
    with keywords.as_value_errors():
        run = _Run("pairs", *records_of(records, text, id, options), threshold)
        lines = run.lines()
    best: dict[tuple[Hashable, Hashable], Fraction] = {}
    fraction = cache(Fraction)
    for line in lines:
        a, b, similarity = line.decode().split("\t")
        ids = run.id(run.position[int(a)]), run.id(run.position[int(b)])
        value = fraction(similarity)
        if ids[0] != ids[1]:  # records of one id do not form a pair
            best[ids] = max(value, best[ids]) if ids in best else value
    order = {id_: i for i, id_ in enumerate(dict.fromkeys(map(run.id, run.position)))}
    if len(order) < len(run.position):  # records with one id have numbers one after another
        best = dict(sorted(best.items(), key=lambda each: [order[id_] for id_ in each[0]]))
    return [Pair(*ids, similarity) for ids, similarity in best.items()]


@with_keywords(PairKeywords)
def clusters(
    records: Records,
    threshold: Value = None,
    *,
    text: str | None = None,
    id: str | None = None,
    **options: Unpack[PairKeywords],
) -> list[list[Any]]:
    """Return the clusters: connected components of the pairs, as lists of ids in order.

    Of a table, `text` names the column of texts or sets, and `id` that of the ids.

    >>> clusters(["a b c d", "e f", "a b c d", "a b c d e", "g h"], 0.5)
    [[0, 2, 3]]
    """
    with keywords.as_value_errors():
        run = _Run("clusters", *records_of(records, text, id, options), threshold)
        found: dict[bytes, list[Any]] = defaultdict(list)
        for line in run.decided():
            first, number = line.split(b"\t")
            found[first].append(run.id(run.position[int(number)]))
    return list(found.values())


@overload
def deduplicate(
    records: Table,
    threshold: Value = ...,
    *,
    text: str,
    id: str | None = ...,
    **options: Unpack[DecisionKeywords],
) -> Table: ...


@overload
def deduplicate(
    records: Iterable[Any], threshold: Value = ..., **options: Unpack[DecisionKeywords]
) -> Deduplicated: ...


@with_keywords(DecisionKeywords)
def deduplicate(
    records: Any,
    threshold: Value = None,
    *,
    text: str | None = None,
    id: str | None = None,
    **options: Unpack[DecisionKeywords],
) -> Any:
    """Return the ids of the kept records, and each removed record with the one it duplicates.

    Of a table (pandas, polars, Arrow, `datasets`) whose column of texts or sets `text` names,
    instead, its kept rows are returned, as a table of the same type.  `id` names that of the ids,
    which only keep="smallest" uses.

    In order of priority (keep="first", "longest" or "smallest"), a record is kept unless it forms a
    pair with a record already kept.

    >>> answer = deduplicate(["a b c d", "", "A b c  d", "e f"])
    >>> answer.kept
    [0, 1, 3]
    >>> answer.removed
    [Removed(id=2, because=0, similarity=Fraction(1, 1))]
    """
    with keywords.as_value_errors():
        is_series = hasattr(records, "iloc") and not hasattr(records, "columns")
        named = is_series and all(isinstance(each, tuple) for each in records)  # (id, record)
        if is_series and not named and [*records.index] != [*range(len(records))]:
            warnings.warn(
                "ids are positions, not labels of the index, which is not 0, 1, …: use "
                "records.iloc[answer.kept], or give records.items()",
                stacklevel=2,
            )
        run = _Run("removed", *records_of(records, text, id, options), threshold)
        found = run.found_edges()
        return found.answer() if text is None else taken(records, found.kept())


class _Run:
    """A job on n records in memory, which finds the keys, the pairs, and the decisions.

    Records are numbered in the order of ids, and have these numbers on lines.  position: of each
    number's record; numbers (int64): of each position.
    """

    def __init__(
        self,
        output: str,
        records: Iterable[Any],
        options: Mapping[str, Any],
        limit: Limit | None,
        threshold: Value,
    ):
        values = {"threshold": threshold, **options}
        self.given: UserRecords | UserVectors
        if keywords.of_vectors(options):
            asked = keywords.options_of(output, FINGERPRINTS, values)
            bits = form_of(asked).bits if "--bits" in asked.own else None
            self.given = vectors = UserVectors.of(records, bits)
            asked = asked.with_values({"--bits": str(vectors.bits)})
        else:
            self.given = given = UserRecords.of(records)
            texts = given.texts or (not len(given) and options.get("shingle") != "bag")
            asked = keywords.options_of(output, "text" if texts else "shingles", values)
        if limit:
            asked = asked.with_values({limit.flag: "id:(?s)(.*)"})  # any text, as a whole
        self._asked, self.settings = asked, settings_before_counts(asked)
        self.position = _in_order(self.given)
        self.numbers = np.empty(len(self.given), dtype=np.int64)
        self.numbers[self.position] = np.arange(len(self.given))
        weights = self.settings.scheme.weights
        batches = self.given.batches(self.settings.form, bool(weights and weights.repeats))
        if limit:
            if len(limit.values) != len(self.given):
                number = f"{len(limit.values):,} values for {len(self.given):,} records"
                raise ValueError(f"{limit.flag.strip('-')}: {number}; give one for each")
            batches = (self._valued(batch, limit.values) for batch in batches)
        self._batches = [self._numbered(batch) for batch in portions(batches, self.settings)]
        places = [np.empty(0, np.uint64), *(batch.places for batch in self._batches)]
        self._positions = (np.concatenate(places) - np.uint64(NEW)).astype(np.int64)

    @cached_property
    def _records(self) -> Batch:
        """All records at once: a copy, which a join in memory does not need."""
        return Batch.end_to_end(self._batches)

    def _valued(self, batch: Batch, values: list[Any]) -> Batch:
        form = self.settings.form
        assert form.values
        positions = (batch.places - np.uint64(NEW)).tolist()
        return valued(batch, [form.values.text(values[i]) for i in positions], form.sets_apart)

    def _numbered(self, batch: Batch) -> Batch:
        numbers = self.numbers[(batch.places - np.uint64(NEW)).astype(np.int64)]
        return replace(batch, ids=[b"%010d" % number for number in numbers.tolist()])

    def id(self, position: int) -> Any:
        """Return the id that the user gave to the record at a position, or else the position."""
        return position if self.given.ids is None else self.given.ids[position]

    def lines(self) -> list[bytes]:
        """Return the sorted output lines of the join, with record numbers in place of ids."""
        found = None
        if names_no_scheme(self._asked):
            self._choose()
        settings = _exact(self.settings)
        if pairs_in_memory.is_possible(settings):
            threads, memory = cores(), sys.maxsize  # the records are held anyway
            sketch = partial(pairs_in_memory.Sketches.of, settings=settings)
            with ThreadPoolExecutor(threads) as pool:  # kernels work without Python's lock
                known = pairs_in_memory.Sketches.end_to_end(pool.map(sketch, self._batches))
            how = settings, _counters(), memory, threads
            found = pairs_in_memory.pair_lines(known, lambda: self._batches, *how)
        lines = b"".join(found.blocks if found else self._lines_of_buckets())
        return sorted(lines.splitlines(keepends=True))

    def _choose(self) -> None:
        """Take an exact join if it costs less than the default scheme, as a run on files does."""
        choice = Choice()
        for batch in self._batches:
            choice.add(batch.sets)
        if choice.is_exact(self.settings):
            self._asked = replace(self._asked, exact=True)
            self.settings = settings_before_counts(self._asked)

    def _lines_of_buckets(self) -> Iterator[bytes]:
        """Yield the output lines of buckets: those of keys at which records may form pairs."""
        if counts_first(self._asked):
            self.settings = Settings.of(self._asked, TokenCounts.of_sets(self._records.sets))
        keys = self._keys()
        some = np.flatnonzero(keys.sizes)
        batch = self._records.take(some)
        if self.settings.tag:
            batch = self.settings.tag.tagged(batch)
        keys = keys.take(some)
        owner = np.repeat(np.arange(len(some)), keys.sizes)
        join = _exact(self.settings).join(_counters())
        buckets = in_batches(keys.values, owner, batch.ids, batch.sets)
        return chain.from_iterable(map(join, buckets))

    def _keys(self) -> Ragged:
        """Return the candidate keys of each record, at which records may form pairs."""
        scheme = self.settings.scheme
        if scheme.joined_in_memory:
            return near_keys(scheme, [self._records.sets], every=False)
        each = with_keys(self._batches, self.settings, _counters())
        keys = Ragged.end_to_end([keys for _, keys in each])
        shared = [np.empty(0, np.uint64), *candidate_keys([rows_of(keys)])]
        return keys.where(np.isin(keys.values, np.concatenate(shared)))

    def decided(self) -> list[bytes]:
        """Return the output lines of a decision, with record numbers in place of ids."""
        edges = [b"".join(self.lines())]
        return list(decide_edges(edges, self.settings, _counters(), io.BytesIO))

    def found_edges(self) -> FoundEdges:
        """Return the edges that a decision needs, and the sets of the records in them."""
        edges = self.lines()
        tagged = list(dict.fromkeys(line.partition(b"\t")[0] for line in edges))
        some = np.unique(rows_at(self.settings, tagged, self._positions))
        how = self.settings, edges, self.position
        rows, sets = self._positions[some], self._records.sets.take(some)
        return FoundEdges(self.given.ids, len(self.given), *how, rows, sets)


class ExactLines(PairLines):
    """Lines of pairs with the exact similarity, such as 9/10."""

    equal = b"1"

    def similarities(self, found: Verified) -> list[bytes]:
        return [b"%d/%d" % each for each in zip(found.part.tolist(), found.whole.tolist())]


def _exact(settings: Settings) -> Settings:
    """Return settings whose pairs, if all are asked for, have their exact similarity."""
    if settings.output.decides:
        return settings
    return settings._replace(output=settings.output._replace(parts=JoinParts(lines=ExactLines)))


def _counters() -> Counters:
    """Return counters for one call; their values are not printed anywhere."""
    return Counters("library", reports="nowhere")


def _in_order(given: UserRecords | UserVectors) -> list[int]:
    """Return positions by id: strings by code points, integers by value, others as given."""
    if given.ids is None:
        return list(range(len(given)))
    ids: list[Any] = given.ids
    kinds = set(map(type, ids))
    if not any(all(issubclass(kind, of) for kind in kinds) for of in (str, Integral)):
        first: dict[Any, int] = {}
        ids = [first.setdefault(id_, len(first)) for id_ in ids]
    return sorted(range(len(ids)), key=ids.__getitem__)


class PassagePlace(NamedTuple):
    """A place of a passage: the id of its text, of which it is `text[begin:end]`."""

    id: Any
    begin: int
    end: int


class Passage(NamedTuple):
    """A passage: the number of its words, that of the texts that have it, and all of its places."""

    words: int
    records: int
    places: list[PassagePlace]


def passages(
    records: Records,
    length: int = 50,
    *,
    text: str | None = None,
    id: str | None = None,
    min_records: int = 1,
    clean: str | None = None,
) -> list[Passage]:
    """Return the runs of at least `length` words that are repeated, the longest first.

    Each goes on as far as all of its places have the same words.  Counts are exact.  `min_records`
    texts have it at least; one text may have it twice.  Of a table, `text` names the column of
    texts, and `id` that of the ids.

    >>> for found in passages(["To be, or not", "so to  be, or NOT", "to be, or"], length=3):
    ...     print(found.words, found.records, *found.places[0])
    3 3 0 0 9
    3 2 0 3 13
    """
    with keywords.as_value_errors():
        for name, value in (("length", length), ("min_records", min_records)):
            try:
                whole(1, 1 << 20)(str(value))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        rows, options, _ = records_of(records, text, id, {"clean": clean})
        given = UserRecords.of(rows)
        if given.records and not given.texts:
            raise ValueError("records: passages are of texts, and record 0 is not a str")
        clean_words = form_of(keywords.options_of("pairs", "text", options)).clean
        if "html" in clean_words.names:
            raise ValueError(
                "clean: a word may have a tag inside, so places in pages are not known; leave html "
                "out, or give the texts of the pages"
            )
    words = Words(clean_words)
    with TemporaryFile() as file:
        lines = WordLines.written(map(words.line, given.records), file)
        found = find_passages(lines, int(length), int(min_records))
    by_first: dict[int, Passage] = {}
    for record in np.unique(found[1]).tolist():
        spans, name = words.spans(given.records[record]), given.ids[record] if given.ids else record
        low, high = np.searchsorted(found[1], [record, record + 1])
        for _, _, word, first, _, of, size in found[:, low:high].T.tolist():
            span = int(spans[word, 0]), int(spans[word + size - 1, 1])
            by_first.setdefault(first, Passage(size, of, [])).places.append(
                PassagePlace(name, *span)
            )
    return sorted(by_first.values(), key=lambda each: (-each.words, -len(each.places)))
