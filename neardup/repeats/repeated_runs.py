"""Repeated runs: every run of K words that occurs twice, and the passages that they form.

A *run* is K consecutive words of a record.  It is *repeated* if another place, in any record, has
the same words; places may overlap.  A *passage* is a chain of repeated runs, each one word behind
the one before it at all of its places: so it has at least K words, occurs as a whole at each of its
places, and occurs less often if a word is added at either end.  Every repeated run is in exactly
one passage.  So counts are exact, and passages may overlap, by K-1 words at most:

    a: x1 … x60 t1 … t60         x1 … x60 t1 … t49    2 times
    b: x1 … x60 t1 … t60         t1 … t60             3 times
    c: t1 … t60                  with K = 50

Runs are found in two passes over the words, in bounded memory:

    lines ─ hashes of all runs ─▶ filter: two bits for each slot, seen and seen again
          └ runs whose slot was seen again ─▶ files by range of hash ─ sort ─▶ places of equal hash
                                                                                   │
                  passages ◀─ in order of place, equal hashes compared as words ◀─ files by place

Hashes are polynomials with random factors.  Where two runs of one hash differ, which is improbable,
all is done again with other factors; so no answer depends on a hash.

Letters: K words of a run (`width`, 50); S places of repeated runs.  Memory: the filter, 128 MiB at
most; 8 bytes for each record; some 100 bytes for each run in a portion of 8 MiB of words, or in the
longest record.  Files: 32 bytes for each run that passes the filter, and for each place.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing
from tempfile import TemporaryFile
from typing import Callable, NamedTuple, TypeVar

import numpy as np

from neardup.repeats.word_lines import BLANK, LINE_END, WordLines
from neardup.runtime import kernels
from neardup.sets.hashing import WORD, mix
from neardup.sets.ragged import first_of_run

HASHED_BYTES, SORTED_BYTES = 1 << 20, 8 << 20  # of lines: hashed at once, or in order of place
LEAST_LOG, MOST_LOG = 12, 29  # of the slots of the filter: 128 MiB at most
ROW_BYTES, BUCKET_BYTES = 32, 64 << 20
MOST_FILES = 128
T = TypeVar("T")


class CollisionError(Exception):
    """Raised where different words have the same hash."""


class Hashing(NamedTuple):
    """A hash function for runs: the number of words, and odd factors below 2^64."""

    width: int
    base: int  # of the bytes of a word
    factor: int  # of the words of a run

    @classmethod
    def random(cls, width: int) -> Hashing:
        return cls(width, *(secrets.randbits(64) | 1 for _ in range(2)))


def find_passages(
    lines: WordLines, width: int, least: int = 1, all_places: bool = True
) -> tuple[PassagePlaces, int]:
    """Return the places of all passages, or only the first of each, and how many words are in them.

    width: K; least: the minimum number of records that have the passage.
    """

    def find(how: Hashing) -> tuple[PassagePlaces, int]:
        found, covered = [_NONE], 0
        for *_, repeats in repeated(lines, how, least):
            places = passages(repeats, width)
            some = slice(None) if all_places else places.begin == places.first
            found.append(PassagePlaces(*(column[some] for column in places)))
            covered += repeats.words(width)
        return PassagePlaces(*map(np.concatenate, zip(*found))), covered

    return without_collision(find, width)


def without_collision(find: Callable[[Hashing], T], width: int) -> T:
    """Return what `find` returns with a hash function under which no two runs collide."""
    while True:
        try:
            return find(Hashing.random(width))
        except CollisionError:
            pass


class Repeats(NamedTuple):
    """The S repeated runs of some records, in order; int64 (S,), except for the last two."""

    begin: np.ndarray  # byte of the lines where the run begins
    record: np.ndarray
    word: np.ndarray  # of the record, from 0
    first: np.ndarray  # byte where the first run with these words begins
    places: np.ndarray  # number of all runs with these words
    records: np.ndarray  # number of records that have one
    joined: np.ndarray  # bool: it belongs to the passage of the run before it
    along: np.ndarray  # bool: it and its first run are both one word behind those before it

    def words(self, width: int) -> int:
        """Return the number of words that are in a repeated run."""
        new = np.append(np.diff(self.record) > 0, True)[: len(self.word)]
        gaps = np.append(np.diff(self.word), 0)[: len(self.word)]
        return int(np.where(new, width, np.minimum(gaps, width)).sum())


class PassagePlaces(NamedTuple):
    """Places of passages, in order; int64 (P,)."""

    record: np.ndarray
    word: np.ndarray  # the first one
    words: np.ndarray
    begin: np.ndarray  # byte of the lines
    first: np.ndarray  # byte of the lines where the first place begins: the passage's name
    places: np.ndarray
    records: np.ndarray


_NONE = PassagePlaces(*np.empty((7, 0), np.int64))


def passages(found: Repeats, width: int) -> PassagePlaces:
    """Return the places of the passages that repeated runs form."""
    heads = np.flatnonzero(~found.joined)
    words = np.diff(heads, append=len(found.joined)) + width - 1
    begin, record, word, first, places, records = (column[heads] for column in found[:6])
    return PassagePlaces(record, word, words, begin, first, places, records)


def repeated(lines: WordLines, how: Hashing, least: int = 1) -> Iterator[tuple[int, int, Repeats]]:
    """Yield portions of records, as (low, high), with those of their runs that are repeated.

    CollisionError if different runs have one hash.  least: of records that have the run.
    """
    total = int(lines.offsets[-1])
    bounds = [low for low, _ in lines.portions(max(SORTED_BYTES, total // MOST_FILES))]
    portions = lines.offsets[np.array(bounds, np.int64)]
    with closing(_Rows(len(bounds))) as places:
        for rows in _candidates(lines, how):
            found = _grouped(rows, lines.offsets)
            begin = found[:, 0].astype(np.int64)
            places.add(np.searchsorted(portions, begin, "right") - 1, found)
        for low, high, rows in zip(bounds, [*bounds[1:], len(lines)], places):
            if least > 1:
                rows = rows[rows[:, 3] >= np.uint64(least)]
            yield low, high, _in_order(lines, how.width, low, high, rows.astype(np.int64))
            lines.release()


def hashed(lines: bytes, how: Hashing) -> tuple[np.ndarray, np.ndarray]:
    """Return where each word of lines begins (int64), and the hash of its run (uint64); 0: no run.

    A word is a polynomial of its bytes, and a run of the words' mixed hashes, modulo 2^64.
    """
    power = pow(how.factor, how.width, WORD)
    if kernels.COMPILED:
        return kernels.hash_runs(lines, *how, power)
    data = np.frombuffer(lines, np.uint8)
    starts, ends, line = words_in(lines)
    words = mix(_polynomials(data.astype(np.uint64) + np.uint64(1), starts, ends, how.base))
    runs = np.zeros(len(words), np.uint64)
    last = np.arange(len(words)) + how.width - 1
    whole = np.flatnonzero(line[np.minimum(last, len(line) - 1)] == line) if len(line) else last
    whole = whole[last[whole] < len(line)]
    runs[whole] = mix(_polynomials(words, whole, last[whole] + 1, how.factor))
    runs[whole[runs[whole] == 0]] = 1
    return starts, runs


def words_in(lines: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where each word begins and ends (without its blank), and its line; int64 (T,)."""
    data = np.frombuffer(lines, np.uint8)
    ends, breaks = np.flatnonzero(data == BLANK), np.flatnonzero(data == LINE_END)
    line = np.searchsorted(breaks, ends)
    starts = np.append(0, ends + 1)[: len(ends)]
    new = np.flatnonzero(np.diff(line, prepend=0))
    starts[new] = breaks[line[new] - 1] + 1
    return starts, ends, line


def _polynomials(values: np.ndarray, begin: np.ndarray, end: np.ndarray, base: int) -> np.ndarray:
    """Return the sum of values[i] · base^(end-1-i) over each span, modulo 2^64, by prefix sums."""
    some = np.full(len(values) + 1, pow(base, -1, WORD), np.uint64)
    some[0] = 1
    down = np.multiply.accumulate(some)
    some[1:] = base
    up = np.multiply.accumulate(some)
    sums = np.append(np.uint64(0), np.cumsum(values * down[:-1], dtype=np.uint64))
    return (sums[end] - sums[begin]) * up[end - 1]


def note(runs: np.ndarray, log: int, seen: np.ndarray) -> None:
    """Note hashes in a filter (uint8) of 2^log slots of two bits: seen, and seen again."""
    if kernels.COMPILED:
        kernels.note_runs(runs, log, seen)
        return
    slots = np.sort(runs[runs > 0] >> np.uint64(64 - log))
    new = first_of_run(slots)
    for some in (slots[new], slots[~new]):
        byte = some >> np.uint64(2)
        bit = np.left_shift(1, 2 * (some & np.uint64(3)).astype(np.uint8), dtype=np.uint8)
        np.bitwise_or.at(seen, byte, np.where(seen[byte] & bit, bit << 1, bit).astype(np.uint8))


def _candidates(lines: WordLines, how: Hashing) -> Iterator[np.ndarray]:
    """Yield rows of runs that may be repeated: hash, those before and behind, begin; uint64 (m, 4).

    Equal hashes are in one array, in the order of their places.  A neighbour that is not in the
    same record is 0.
    """
    log = min(max((4 * lines.words).bit_length(), LEAST_LOG), MOST_LOG)
    seen = np.zeros(1 << log - 2, np.uint8)
    for low, high in lines.portions(HASHED_BYTES):
        note(hashed(lines.portion(low, high), how)[1], log, seen)
    bits = min(lines.words * ROW_BYTES // BUCKET_BYTES, MOST_FILES - 1).bit_length()
    with closing(_Rows(1 << bits)) as buckets:
        for low, high in lines.portions(HASHED_BYTES):
            starts, runs = hashed(lines.portion(low, high), how)
            slot = runs >> np.uint64(64 - log)
            shift = 2 * (slot & np.uint64(3)).astype(np.uint8) + 1
            again = (seen[slot >> np.uint64(2)] >> shift & 1).astype(bool)
            some = np.flatnonzero(again & (runs > 0))
            offsets = lines.offsets[low : high + 1] - lines.offsets[low]
            line = np.searchsorted(starts, offsets)  # the first word of each
            around = np.concatenate([[0], runs, [0]]).astype(np.uint64)
            before, behind = around[:-2].copy(), around[2:].copy()
            before[line[line < len(runs)]] = 0
            behind[line[line > 0] - 1] = 0
            begin = (starts[some] + lines.offsets[low]).astype(np.uint64)
            rows = np.stack([runs[some], before[some], behind[some], begin], axis=1)
            buckets.add(rows[:, 0] >> np.uint64(64 - bits) if bits else None, rows)
        del seen
        yield from buckets


def _grouped(rows: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return rows of repeated runs: begin, first, 4 · places + 2 · behind + before, records.

    behind, before: 1 if the runs one word behind, or before, are the same at all places, else 0
    """
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    heads = np.flatnonzero(first_of_run(rows[:, 0]))
    sizes = np.diff(heads, append=len(rows))
    rows, sizes = rows[np.repeat(sizes > 1, sizes)], sizes[sizes > 1]
    if not len(rows):
        return np.empty((0, 4), np.uint64)
    heads = np.cumsum(sizes) - sizes
    _, before, behind, begin = rows.T
    record = np.searchsorted(offsets, begin.astype(np.int64), "right")
    new = first_of_run(record)
    new[heads] = True

    def same(column: np.ndarray) -> np.ndarray:
        equal = (column == np.repeat(column[heads], sizes)) & (column > 0)
        return np.logical_and.reduceat(equal, heads)

    records = np.add.reduceat(new, heads, dtype=np.int64)
    each = begin[heads], 4 * sizes + 2 * same(behind) + same(before), records
    columns = (np.repeat(column.astype(np.uint64), sizes) for column in each)
    return np.stack([begin, *columns], axis=1)


def _in_order(lines: WordLines, width: int, low: int, high: int, rows: np.ndarray) -> Repeats:
    """Return the repeated runs of records low … high-1; CollisionError if words differ."""
    begin, first, about, records = rows[np.argsort(rows[:, 0])].T
    offset = lines.offsets[low]
    starts, ends, _ = words_in(lines.portion(low, high))
    at = np.searchsorted(starts + offset, begin)
    record = np.searchsorted(lines.offsets, begin, "right") - 1
    word = at - np.searchsorted(starts + offset, lines.offsets[record])
    behind = np.zeros(len(rows), bool)  # one word behind the run before it
    behind[1:] = (np.diff(at) == 1) & (np.diff(record) == 0)
    joined, along = behind.copy(), behind.copy()
    joined[1:] &= (about[:-1] & 2 > 0) & (about[1:] & 1 > 0)
    along[1:] &= np.diff(begin - first) == 0
    heads = np.flatnonzero(~along)
    stops = ends[at[np.append(heads[1:], len(rows))[: len(heads)] - 1] + width - 1] + offset + 1
    other = begin[heads] != first[heads]
    spans = (column[other].tolist() for column in (begin[heads], first[heads], stops))
    for own, same, stop in zip(*spans):
        if lines[own:stop] != lines[same : same + stop - own]:
            raise CollisionError
    return Repeats(begin, record, word, first, about >> 2, records, joined, along)


class _Rows:
    """Rows of four uint64 in temporary files, which are read one after the other."""

    def __init__(self, files: int):
        self._files = [TemporaryFile() for _ in range(files)]  # noqa: SIM115

    def add(self, file: np.ndarray | None, rows: np.ndarray) -> None:
        """Append each row to the file of its number; None: there is one file."""
        if file is None or len(self._files) == 1:
            self._files[0].write(np.ascontiguousarray(rows).data)
            return
        narrow = file.astype(np.uint8)  # MOST_FILES of them
        ends = np.cumsum(np.bincount(narrow, minlength=len(self._files)))
        parts = np.split(rows[np.argsort(narrow, kind="stable")], ends[:-1])
        for sink, some in zip(self._files, parts):
            sink.write(some.data)

    def __iter__(self) -> Iterator[np.ndarray]:
        for file in self._files:
            file.seek(0)
            yield np.frombuffer(file.read(), np.uint64).reshape(-1, 4)
            file.truncate(0)

    def close(self) -> None:
        for file in self._files:
            file.close()
