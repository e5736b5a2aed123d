"""Repeated runs: every run of K words that occurs twice, and the passages that they form.

A *run* is K consecutive words of a record.  It is *repeated* if another place, in any record, has
the same words; places may overlap.  A *passage* is a chain of repeated runs, each one word behind
the one before it at all of its places.  So it occurs as a whole at each place, and less often if a
word is added at either end; every repeated run is in one passage, and passages overlap by K-1 words
at most.  With K = 3:

    a b c d e f
    a b c d e       ─▶  a b c (2 times), b c d e (3 times)
    x b c d e

Two passes over the words find the runs, in bounded memory:

    lines ─ hashes of all runs ─▶ filter: two bits for each slot, seen and seen again
          └ runs whose slot was seen again ─▶ files by range of hash ─ sort ─▶ places of equal hash
                                                                                   │
                  passages ◀─ in order of place, equal hashes compared as words ◀─ files by place

If two runs of one hash differ, all is done again with other random factors, so that no answer
depends on a hash.

Letters: K words of a run (`width`, 50); S places of repeated runs; P of passages.  Memory: a filter
of 128 MiB at most, 8 bytes for each record, and some 300 for each run in 2 MiB of words, or in the
longest record.  Files: 32 bytes for each run that passes the filter, and for each place.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing, suppress
from tempfile import TemporaryFile
from typing import Callable, NamedTuple, TypeVar

import numpy as np

from neardup.repeats.word_lines import BLANK, LINE_END, WordLines
from neardup.runtime import kernels
from neardup.sets.hashing import WORD, mix
from neardup.sets.ragged import first_of_run

HASHED_BYTES, SORTED_BYTES = 1 << 20, 2 << 20  # of lines: hashed at once, or in order of place
LEAST_LOG, MOST_LOG = 12, 29  # of the slots of the filter: 128 MiB at most
ROW_BYTES, BUCKET_BYTES = 32, 16 << 20
MOST_FILES = 250
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


def without_collision(find: Callable[[Hashing], T], width: int) -> T:
    """Return what `find` returns with a hash function under which no two runs collide."""
    while True:
        with suppress(CollisionError):
            return find(Hashing.random(width))


class Repeats(NamedTuple):
    """S repeated runs in order; int64 (S,), except for the last one."""

    begin: np.ndarray  # byte of the lines where the run begins
    record: np.ndarray
    word: np.ndarray  # of the record, from 0
    first: np.ndarray  # byte where the first run with these words begins
    places: np.ndarray  # number of all runs with these words
    records: np.ndarray  # number of records that have one
    joined: np.ndarray  # bool: it belongs to the passage of the run before it


def find_passages(lines: WordLines, width: int, least: int = 1, every: bool = True) -> np.ndarray:
    """Return all places of the passages that `least` records have, or only the first of each.

    int64 (7, P), in order: the columns of `Repeats` of the first run, and the number of words.
    """

    def find(how: Hashing) -> np.ndarray:
        found = [np.empty((7, 0), np.int64)]
        for *_, repeats in repeated(lines, how, least):
            heads = np.flatnonzero(~repeats.joined)
            words = np.diff(heads, append=len(repeats.joined)) + width - 1
            places = np.stack([*(column[heads] for column in repeats[:-1]), words])
            found.append(places[:, every | (places[0] == places[3])])
        return np.concatenate(found, axis=1)

    return without_collision(find, width)


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
            buckets.add(rows[:, 0] >> np.uint64(32) >> np.uint64(32 - bits), rows)
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
    starts, ends, _ = words_in(lines.portion(low, high))
    starts += lines.offsets[low]
    at = np.searchsorted(starts, begin)
    record = np.searchsorted(lines.offsets, begin, "right") - 1
    word = at - np.searchsorted(starts, lines.offsets[record])
    behind = np.zeros(len(rows), bool)  # one word behind the run before it
    behind[1:] = (np.diff(at) == 1) & (np.diff(record) == 0)
    joined, along = behind.copy(), behind.copy()  # along: as the first runs are, too
    joined[1:] &= (about[:-1] & 2 > 0) & (about[1:] & 1 > 0)
    along[1:] &= np.diff(begin - first) == 0
    heads = np.flatnonzero(~along)
    tails = np.append(heads, len(rows))[1:] - 1
    stops = ends[at[tails] + width - 1] + lines.offsets[low] + 1
    for own, same, stop in np.stack([begin[heads], first[heads], stops], axis=1).tolist():
        if own != same and lines[own:stop] != lines[same : same + stop - own]:
            raise CollisionError
    return Repeats(begin, record, word, first, about >> 2, records, joined)


class _Rows:
    """Rows of four uint64 in temporary files, which are read one after the other."""

    def __init__(self, files: int):
        self._files = [TemporaryFile() for _ in range(files)]  # noqa: SIM115

    def add(self, file: np.ndarray, rows: np.ndarray) -> None:
        """Append each row to the file of its number, below MOST_FILES."""
        narrow = file.astype(np.uint8)  # sorted by counting
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
