"""`neardup.Index`: records on disk; a program can add records and find similar ones.

It is an index of `neardup index`: each may use what the other has made.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

from neardup.engines.local.key_pruning import record_sketches
from neardup.library import keywords
from neardup.library.keywords import Keywords, Value, with_keywords
from neardup.library.user_records import UserRecords, listed
from neardup.lines.count_lines import format_all
from neardup.options.settings import Settings, counts_first, stays_exact
from neardup.options.table import Options
from neardup.reading.blocks import NEW, first_place
from neardup.reading.input_files import is_index
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, UsageError
from neardup.sets.ragged import Batch, Ragged
from neardup.sets.token_counts import TokenCounts
from neardup.stages import index_manifest, segment
from neardup.stages.lookup import similar_to_each
from neardup.stages.pairs import portions, with_keys

if TYPE_CHECKING:  # typing has it from Python 3.12 on
    from typing_extensions import Unpack

TEXTS, SETS = "texts", "sets"
_INPUT = {TEXTS: "text", SETS: "shingles"}
_ADDING = RLock()  # held while a thread of this program adds records
_PLAIN = {int, str}  # elements that are the same shingle in every call


class Match(NamedTuple):
    """A record of the index that is similar to a query, and their similarity.

    query: the id of the query, or its position; id: that of the record, as text.
    """

    query: Any
    id: str
    similarity: Fraction


class Index:
    """An index of records in a folder, in which similar records can be found.

    Several threads and processes may query; one at a time adds, and threads wait.  Each `add` makes
    a segment, of which each query looks into every one: add many records at once.

    >>> import tempfile
    >>> index = Index.create(tempfile.mkdtemp() + "/index", threshold=0.6, shingle="word:1")
    >>> index.add([("a", "to be or not to be"), ("b", "that is the question")])
    2
    >>> index.query(["To be, or not"])
    [Match(query=0, id='a', similarity=Fraction(3, 5))]
    """

    def __init__(self, path: Path):
        """Open the index in a folder; users call `Index.open` or `Index.create` instead."""
        self._path = path
        self._state = self._read()

    @classmethod
    @with_keywords(Keywords)
    def create(
        cls,
        path: str | os.PathLike[str],
        records: str = TEXTS,
        threshold: Value = None,
        **options: Unpack[Keywords],
    ) -> Index:
        """Make a new, empty index in a folder, for records that are "texts" or "sets".

        Options are those of `neardup.pairs`.  ValueError if one is invalid, or there is something
        at `path`.
        """
        with keywords.as_value_errors():
            if records not in _INPUT:
                raise UsageError(f"records={records!r} is neither {TEXTS!r} nor {SETS!r}")
            if keywords.of_vectors(options):
                raise UsageError("an Index has texts or sets; for bit vectors, use neardup index")
            values = {"threshold": threshold, **options}
            asked = keywords.options_of("pairs", _INPUT[records], values)
            if counts_first(asked) and not stays_exact(asked):
                raise UsageError(
                    "an index for these options needs token counts that stay the same; make it "
                    "with `neardup index` and a file of counts, and open it with Index.open"
                )
            settings = _settings(asked)
            folder = Path(path)
            if folder.exists():
                raise UsageError(f"{folder}: already exists; open it, or name another one")
            try:
                folder.mkdir()
            except OSError as error:
                raise StageError(f"{folder}: {error.strerror}") from None
            try:
                _manifest(settings, index_manifest.given_options(asked)).write(folder)
            except BaseException:  # such as a full disk
                shutil.rmtree(folder, ignore_errors=True)
                raise
            return cls(folder)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Index:
        """Open the index of texts or sets in a folder; ValueError if the folder has no such index.

        `create` or `neardup index` has made it.
        """
        with keywords.as_value_errors():
            folder = Path(path)
            if not is_index(folder):
                raise UsageError(f"{folder}: is not an index; make one with Index.create")
            return cls(folder)

    def _read(self) -> _State:
        """Read the index from its folder; return its state; UsageError if it has fingerprints."""
        manifest = index_manifest.Manifest.of(self._path)
        kind = manifest.options["--input"]
        if kind not in _INPUT.values():
            raise UsageError(f"{self._path}: has fingerprints; use neardup run --against")
        options, _ = index_manifest.take_options(Options(), self._path, [])
        options = replace(options, input=kind, id=None, text=None)
        settings = _settings(options)
        index_manifest.opened(self._path, options, settings)
        return _State(options, settings, manifest.segments_at(self._path, 0))

    def __len__(self) -> int:
        """Return the number of records when the index was last read."""
        return sum(map(len, self._state.segments))

    def add(self, records: Iterable[Any]) -> int:
        """Add records, given as (id, record) tuples; return how many were added.

        All or none are added, and they are on disk when this returns.  ValueError for an invalid
        record, or if another program adds records now.  The records are held in memory, with 16
        bytes for each of their keys.
        """
        with keywords.as_value_errors(), _ADDING, index_manifest.locked(self._path):
            state = self._state = self._read()
            given = _records(records, state.settings)
            if given.ids is None and len(given):
                raise UsageError("an index needs ids: give (id, record) tuples")
            manifest = index_manifest.Manifest.of(self._path)
            index_manifest.sweep_unfinished(self._path, manifest)
            place = first_place(manifest.files, new=False)
            batches: Iterable[Batch] = _batches(given, state.settings, place)
            settings, counts = state.settings, None
            if counts_first(state.options):
                batches = list(batches)
                sets = Batch.end_to_end(batches).sets
                # Not the index's own: a token without a count may be in records to come.
                counts = replace(TokenCounts.of_sets(sets), own=False)
                settings = Settings.of(state.options, counts)
            entry = _add_segment(self._path, manifest.next_name(), batches, settings, counts)
            if entry["records"]:
                if counts:
                    manifest = _manifest(settings, manifest.given, counted=True)
                manifest.segments.append(entry)
                manifest.write(self._path)
                self._state = self._read()
        return int(entry["records"])

    def remove(self, ids: Iterable[Any]) -> int:
        """Remove all records with these ids; return how many there were.

        All or none are removed, and that is on disk when this returns.  ValueError if the index
        lacks an id, or if another program changes the index now.  `compact` frees the space.
        """
        with keywords.as_value_errors(), _ADDING, index_manifest.locked(self._path):
            count = index_manifest.remove(self._path, map(_id, listed(ids)))
            self._state = self._read()
        return count

    def compact(self) -> None:
        """Write segments that have removed records again, without these.

        The old ones are deleted by the next change of the index, so that readers can finish.
        """
        with keywords.as_value_errors(), _ADDING, index_manifest.locked(self._path):
            index_manifest.compact(self._path)
            self._state = self._read()

    def query(
        self, records: Iterable[Any], top: int | None = None, threshold: Value = None
    ) -> list[Match]:
        """Return, for each of `records`, the similar records of the index, most similar first.

        top: at most so many for each; threshold: another one than that of the index.  Below that of
        the index, some similar records are found and others are not.
        """
        with keywords.as_value_errors():
            mine = [segment.about for segment in self._state.segments]
            if index_manifest.Manifest.of(self._path).segments != mine:
                self._state = self._read()
            _, settings, segments = self._state
            if top is not None and (not isinstance(top, SupportsIndex) or int(top) < 1):
                raise UsageError(f"top={top!r} is not an integer of 1 or more")
            wanted = None if threshold is None else keywords.as_text("threshold", threshold)
            measure = index_manifest.lookup_measure(settings, wanted)
            given, found = _records(records, settings), list[Match]()
            batches = _batches(given, settings, NEW) if segments else ()
            for batch, keys in with_keys(portions(batches, settings), settings, Counters("")):
                answers = similar_to_each(segments, batch, keys, measure, top)
                for place, similar in zip((batch.places - np.uint64(NEW)).tolist(), answers):
                    query = place if given.ids is None else given.ids[place]
                    found += [Match(query, id_.decode(), value) for id_, value in similar]
        return found


class _State(NamedTuple):
    """An index as it was read; replaced as a whole, so threads never see a mix of old and new."""

    options: Options
    settings: Settings
    segments: list[segment.Segment]


def _settings(options: Options) -> Settings:
    """Return the settings of the index; token counts are empty until records have been added."""
    if counts_first(options):
        return Settings.of(options, replace(TokenCounts.empty(), own=False))
    return Settings.of(options)


def _manifest(
    settings: Settings, given: dict[str, str | bool], counted: bool = False
) -> index_manifest.Manifest:
    probe = settings.probe()
    return index_manifest.Manifest(dict(settings.keys_of), probe, given=given, counted=counted)


def _records(records: Iterable[Any], settings: Settings) -> UserRecords:
    """Check and convert records; UsageError if the index cannot hold records of their kind."""
    given = UserRecords.of(records)
    texts = settings.form.shingle is not None
    if len(given) and given.texts != texts:
        expected, got = (TEXTS, SETS) if texts else (SETS, TEXTS)
        raise UsageError(f"the index has {expected}, and these records are {got}")
    for position, record in enumerate(() if texts else given.records):
        if not set(map(type, record)) <= _PLAIN:
            raise UsageError(f"record {position}: its elements are not all integers or strings")
    return given


def _batches(given: UserRecords, settings: Settings, first: int) -> Iterator[Batch]:
    """Yield batches of records, without ids if the records are queries; places start at `first`."""
    weights = settings.scheme.weights
    for batch in given.batches(settings.form, bool(weights and weights.repeats)):
        numbers = batch.places - np.uint64(NEW)
        names = batch.ids
        if given.ids is not None and first != NEW:
            names = [_id(given.ids[number]) for number in numbers.tolist()]
        yield replace(batch, ids=names, places=numbers + np.uint64(first))


def _id(given: Hashable) -> bytes:
    text = str(given) if type(given) is int else given
    halves = isinstance(text, str) and any("\ud800" <= letter <= "\udfff" for letter in text)
    if not isinstance(text, str) or not text or halves or set(text) & set("\0\t\r\n"):
        raise UsageError(
            f"id {given!r}: expected an integer, or non-empty text without NUL, tabs and line ends"
        )
    return text.encode()


def _add_segment(
    index: Path, name: str, batches: Iterable[Batch], settings: Settings, counts: TokenCounts | None
) -> dict[str, Any]:
    """Write a segment, if it has records, with token counts if given; return its manifest entry."""
    with index_manifest.new_segment(index, name) as folder:
        if counts:
            segment.write_checked(folder / segment.COUNTS, format_all(counts))
        entry = _write(folder, with_keys(portions(batches, settings), settings, Counters("")))
        if not entry["records"]:
            shutil.rmtree(folder)
    return {"name": name, "files": ["records of a program"], **entry}


def _write(folder: Path, batches: Iterator[tuple[Batch, Ragged]]) -> dict[str, Any]:
    """Write the files of a segment; return their description for the manifest."""
    each = list(batches)
    batch = Batch.end_to_end(batch for batch, _ in each)
    keys = Ragged.end_to_end([found for _, found in each])
    lines, holder = segment.record_lines(batch), np.repeat(np.arange(len(keys)), keys.sizes)
    order = np.lexsort((holder, keys.values))
    ends = np.cumsum([len(line) for line in lines], dtype=np.uint64)
    contents = {
        "keys": keys.values[order],
        "records": np.frombuffer(b"".join(lines), np.uint8),
        "holders": holder[order].astype(segment.HOLDER),
        "record_sketches": record_sketches(batch),
        "rows": np.column_stack((batch.places, ends)),
        "fences": keys.values[order][:: segment.FENCE],
    }
    pieces = {name: map(np.ndarray.tobytes, [array]) for name, array in contents.items()}
    return segment.write(folder, pieces, len(lines), [len(keys.values)])
