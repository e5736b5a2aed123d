"""Candidate-key pruning: send a record only at keys where it may be in a pair.

Most keys belong to one record, and many others bring the same records together again.  So
run_local.sh first writes *postings*, sixteen bytes each: a key and the number of a record that has
it.  For each record it also writes a size and a bitmap:

    key     records
    000:a   1  7         sent
    001:b   9            not sent: no other record has this key
    002:c   1  7         not sent: the same group of records as at 000:a
    003:d   1  5         not sent, if sizes and bitmaps show that 1 and 5 are not a pair

No pair is lost: see `stages.candidate_keys`, which prunes keys for a cluster.  Here two different
groups of one record have the same sum of hashes once in 2^64.

Postings are on disk by key, as `external_group` describes.  Each worker holds one range of keys in
memory at a time, but never the postings of a key that very many records share.

Each index segment is treated as one more mapper; its keys are looked up instead of being read:

    new keys of a partition ── segment 0 ── postings ─┐
                            └─ segment 1 ── postings ─┴─ prune ── what it kept ── records

Record i of mapper k has the number i · N + k, and record i of segment j has i · N + J + j, where J
mappers and the segments are N together.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, Union

import numpy as np

from neardup.reading.blocks import NEW
from neardup.sets import ragged
from neardup.sets.hashing import mix
from neardup.similarity.measures import Measure
from neardup.similarity.sketches import bitmaps, may_reach
from neardup.stages import external_group
from neardup.stages.segment import OLD, Segment

MAX_FILES = 768  # open at once, of 1024 that systems allow
ROWS_AT_ONCE = 1 << 12  # read from one file
ROW_BYTES = 24  # for key, record and group
RECORDS_AHEAD = 1 << 12  # at most so many records have their rows read at once
RECORDS_AT_ONCE = 1 << 15  # of a segment
LARGE_BUCKET = 256  # records; in smaller buckets each pair is examined
PAIRS_AT_ONCE = 1 << 18
POSTINGS_LOOKED_AT = 1 << 17

Rows = Union[np.ndarray, Segment]  # rows of record sketches


def record_sketches(batch: ragged.Batch) -> np.ndarray:
    """Return sets' sizes and bitmaps, uint64 (n, 2); an old record's size has the top bit set."""
    sizes = batch.sets.sizes.astype(np.uint64)
    sizes[batch.places < NEW] |= OLD
    return np.column_stack((sizes, bitmaps(batch.sets)))


class Known(NamedTuple):
    """Sketches of some records, as arrays: whether each is old, its size and its bitmap."""

    old: np.ndarray  # bool
    sizes: np.ndarray  # int64
    bitmaps: np.ndarray  # uint64 (n, 1)


class RecordSketches:
    """The sketches of all records in N files; record i is row i // N of file i % N.

    more: rows that count as further files; against: True if two old records cannot be a pair;
    between: True if two new records cannot be a pair.
    """

    def __init__(
        self,
        files: list[Path],
        more: Sequence[Rows] = (),
        against: bool = False,
        between: bool = False,
    ):
        self.against, self.between = against, between
        self.rows: list[Rows] = [
            np.memmap(file, dtype=np.uint64, mode="r").reshape(-1, 2)
            if file.stat().st_size
            else np.empty((0, 2), np.uint64)
            for file in files
        ]
        self.rows += more

    def of(self, records: np.ndarray) -> Known:
        """Return the sketches of records, given by number (uint64)."""
        mapper, row = records % np.uint64(len(self.rows)), records // np.uint64(len(self.rows))
        found = np.empty((len(records), 2), dtype=np.uint64)
        for number, rows in enumerate(self.rows):
            mine = mapper == number
            if mine.any():
                found[mine] = rows[row[mine]]
        sizes = (found[:, 0] & ~OLD).astype(np.int64)
        return Known((found[:, 0] & OLD) > 0, sizes, found[:, 1:])


def prune(
    sources: list[Path],
    targets: list[Path],
    partitions: int,
    known: RecordSketches,
    measure: Measure,
) -> None:
    """Read the postings (key, record) of a partition; write those that may be needed for a pair.

    The files are TARGET.0, TARGET.1 …, one for each range of keys that is in memory at once; rows
    are uint64 (key, record, group), in the order of the source.
    """
    for part, keys in enumerate(external_group.key_ranges(sources, most=MAX_FILES // partitions)):
        files = [Path(f"{target}.{part}") for target in targets]
        if keys.hot:
            _write_hot(keys, sources, files)
            continue
        none = external_group.NO_ROWS
        pieces = [np.concatenate([none, *keys.pieces(source)]) for source in sources]
        ends = np.cumsum([len(piece) for piece in pieces])
        postings = np.concatenate(pieces)
        pieces.clear()
        place, shared = _pruned(postings, known, measure)
        del postings
        back = np.argsort(place)
        bounds = [0, *np.searchsorted(place[back], ends).tolist()]
        for target, low, high in zip(files, bounds, bounds[1:]):
            target.write_bytes(shared[back[low:high]].data)
        del place, shared, back  # before the next range is read


def _write_hot(keys: external_group.KeyRange, sources: list[Path], targets: list[Path]) -> None:
    """Write the postings of a key with too many records for memory, and a hash of the records."""
    group = np.zeros(1, np.uint64)
    for source in sources:
        for rows in keys.pieces(source):
            group += mix(rows[:, 1] + np.uint64(1)).sum()
    for source, target in zip(sources, targets):
        with open(target, "wb") as file:
            for rows in keys.pieces(source):
                file.write(np.column_stack((rows, np.repeat(group, len(rows)))).data)


def _pruned(
    postings: np.ndarray, known: RecordSketches, measure: Measure
) -> tuple[np.ndarray, np.ndarray]:
    """Return indices (int64) of postings to keep, in order of keys, and rows (key, record, group).

    Rows are uint64, one for each index.
    """
    place = np.argsort(postings[:, 0])
    new = ragged.first_of_run(postings[place, 0])
    place = place[~new | ~np.append(new[1:], True)]  # only keys that several records have
    place = place[_with_partner(postings, place, known, measure)]
    shared = np.empty((len(place), 3), dtype=np.uint64)
    shared[:, :2] = postings[place]
    starts = ragged.starts_of_runs(shared[:, 0])
    if len(starts):
        groups = np.add.reduceat(mix(shared[:, 1] + np.uint64(1)), starts)
        shared[:, 2] = np.repeat(groups, np.diff(starts, append=len(shared)))
    return place, shared


def _with_partner(
    postings: np.ndarray, place: np.ndarray, known: RecordSketches, measure: Measure
) -> np.ndarray:
    """Return a mask (bool) over `place`: True for postings that may have a partner in the bucket.

    In large buckets it is True for all postings, unless --against or --between rules out all pairs:
    the reducer's length filter is faster there.
    """
    keys = postings[place, 0]
    starts = ragged.starts_of_runs(keys)
    members = np.diff(starts, append=len(keys))
    wanted = np.repeat(members > LARGE_BUCKET, members)
    small = np.flatnonzero(~wanted)
    for bucket in np.flatnonzero(members > LARGE_BUCKET).tolist() if known.against else ():
        low, high = int(starts[bucket]), int(starts[bucket] + members[bucket])
        wanted[low:high] = _any_pair(postings, place[low:high], known)
    members = members[members <= LARGE_BUCKET]
    stops = np.cumsum(members)
    for low, high in ragged.chunks(members, POSTINGS_LOOKED_AT):
        some = small[stops[low] - members[low] : stops[high - 1]]
        records = postings[place[some], 1]
        wanted[some] = _may_match(records, members[low:high], known, measure)
    return wanted


def _any_pair(postings: np.ndarray, place: np.ndarray, known: RecordSketches) -> bool:
    """Return whether --against and --between allow a pair among the postings at `place`."""
    kinds: set[bool] = set()  # of records: old or new
    for low in range(0, len(place), POSTINGS_LOOKED_AT):
        records = postings[place[low : low + POSTINGS_LOOKED_AT], 1]
        kinds.update(known.of(records).old.tolist())
    return len(kinds) == 2 or (kinds == {False} and not known.between)


def _may_match(
    records: np.ndarray, members: np.ndarray, known: RecordSketches, measure: Measure
) -> np.ndarray:
    """Return a mask of records with a possible partner; `members`: records per bucket, in order."""
    old, sizes, maps = known.of(records)
    later = ragged.later_in_run(members)
    wanted = np.zeros(len(records), dtype=bool)
    for low, high in ragged.chunks(later, PAIRS_AT_ONCE):
        left, right = (low + position for position in ragged.pairs_in_runs(later[low:high]))
        if known.against:
            asked_for = old[left] ^ old[right] if known.between else ~(old[left] & old[right])
            left, right = left[asked_for], right[asked_for]
        possible = may_reach(measure, maps, sizes, left, right)
        wanted[left[possible]] = True
        wanted[right[possible]] = True
    return wanted


class SharedKeys:
    """The postings that `prune` kept for one mapper or segment, read in order of records."""

    def __init__(self, files: list[IO[bytes]]):
        self.files = files
        self.held = [np.empty((0, 3), np.uint64) for _ in files]  # the next rows of each file
        self.ahead = np.empty((0, 3), np.uint64)  # rows of records below `until`, by record
        self.until = 0

    def position(self) -> int:
        """Return how many bytes of the files have been read."""
        return sum(file.tell() for file in self.files)

    def keys(self, records: np.ndarray) -> ragged.Ragged:
        """Return the keys to send records with: the smallest one for each group of records.

        Record numbers must ascend across calls.
        """
        below = int(records[-1]) + 1
        if below > self.until:
            # Read ahead for several batches: each of hundreds of files has few rows of one batch.
            span = below - int(records[0])
            self.until = below + RECORDS_AHEAD // len(records) * span
            until, pieces = np.uint64(self.until), [self.ahead]
            for i, file in enumerate(self.files):
                while True:
                    held = self.held[i]
                    cut = int(np.searchsorted(held[:, 1], until))
                    pieces.append(held[:cut])
                    self.held[i] = held[cut:]
                    if cut < len(held) or not (data := file.read(ROWS_AT_ONCE * ROW_BYTES)):
                        break
                    self.held[i] = np.frombuffer(data, dtype=np.uint64).reshape(-1, 3)
            self.ahead = _by_record(pieces)
        cut = int(np.searchsorted(self.ahead[:, 1], np.uint64(below)))
        rows, self.ahead = self.ahead[:cut], self.ahead[cut:]
        rows = rows[np.lexsort((rows[:, 0], rows[:, 2], rows[:, 1]))]
        rows = rows[ragged.first_of_run(rows[:, 1]) | ragged.first_of_run(rows[:, 2])]
        rows = rows[np.lexsort((rows[:, 0], rows[:, 1]))]
        ends = np.searchsorted(rows[:, 1], np.append(records, np.uint64(below)))
        return ragged.Ragged(rows[:, 0].copy(), ends)


def keys_to_find(sources: list[Path], known: RecordSketches) -> np.ndarray:
    """Return the distinct keys of new records in files of postings (uint64, ascending)."""
    found = np.empty(0, dtype=np.uint64)
    for source in sources:
        for piece in external_group.pieces_of(source):
            new = piece[~known.of(piece[:, 1]).old, 0]
            found = np.sort(np.concatenate((found, new)))
            found = found[ragged.first_of_run(found)]
    return found


def found_postings(
    segment: Segment, keys: np.ndarray, number: int, of: int
) -> Iterator[np.ndarray]:
    """Yield a segment's postings for some keys, in pieces, each in order of records."""
    held: list[np.ndarray] = []
    for found, records in segment.find(keys):
        numbers = records.astype(np.uint64) * np.uint64(of) + np.uint64(number)
        held.append(np.column_stack((found, numbers)))
        if sum(map(len, held)) >= external_group.ROWS_AT_ONCE:
            yield _by_record(held)
            held = []
    if held:
        yield _by_record(held)


def _by_record(pieces: list[np.ndarray]) -> np.ndarray:
    rows = np.concatenate(pieces)
    return rows[np.argsort(rows[:, 1], kind="stable")]


def segment_records(
    segment: Segment, shared: SharedKeys, number: int, of: int, turn: int, turns: int
) -> Iterator[tuple[ragged.Batch, ragged.Ragged]]:
    """Yield one worker's share of the segment's records that pruning kept, and their keys."""
    for share, low in enumerate(range(0, segment.stored, RECORDS_AT_ONCE)):
        high = min(low + RECORDS_AT_ONCE, segment.stored)
        records = np.arange(low, high, dtype=np.uint64) * np.uint64(of) + np.uint64(number)
        keys = shared.keys(records)
        if share % turns == turn:
            some = np.flatnonzero(keys.sizes)
            keys = keys.take(some)
            for first, batch in segment.batches(low + some):
                yield batch, keys.take(np.arange(first, first + len(batch.ids)))
