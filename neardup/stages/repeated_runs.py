"""Repeated runs: every run of K words that occurs twice, and the passages that they form.

A *run* is K consecutive words of a record.  It is *repeated* if another place, in any record, has
the same words; places may overlap.  A *passage* is a chain of repeated runs, each one word behind
the one before it at all of its places.  So it occurs as a whole at each place, and ends where the
next run has other places; every repeated run is in one passage, and passages overlap by K-1 words
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

In each step, processes share the portions of the lines, or the ranges of hashes.

Letters: K words of a run (`width`, 50); S places of repeated runs; P of passages.  Memory: a filter
of 128 MiB at most, which all processes share; 8 bytes for each record; and in each process, some
300 for each run in 2 MiB of words, or in a 250th of them, and 60 for each run that is different, in
a 250th of those that are repeated.  No record is held as a whole, and no run with all its places.
Files: 32 bytes for each run that passes the filter, and for each place.
"""

from __future__ import annotations

import mmap
import os
import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import Any, Callable, NamedTuple, TypeVar

import numpy as np

from neardup.reading.decoders import Tasks, in_order, merged
from neardup.runtime import kernels
from neardup.runtime.program import StageError
from neardup.sets.hashing import WORD, mix
from neardup.sets.ragged import first_of_run
from neardup.stages.word_lines import BLANK, LINE_END, KeptSteps, Portion, WordLines

HASHED_BYTES, SORTED_BYTES = 1 << 20, 2 << 20  # of portions: hashed, and in order of place
MIN_LOG, MAX_LOG = 12, 29  # of the slots of the filter: 128 MiB at most
ROW_BYTES, BUCKET_BYTES = 32, 16 << 20
MAX_FILES, COMPARED = 250, 1 << 16
ONE_GO, BUCKETS, BY_PLACE = KeptSteps(), "buckets", "by_place"
T = TypeVar("T")


class CollisionError(StageError):
    """Raised where different words have the same hash."""


class Hashing(NamedTuple):
    """A hash function for runs: the number of words, and odd factors below 2^64."""

    width: int
    base: int  # of the bytes of a word
    factor: int  # of the words of a run

    @classmethod
    def random(cls, width: int) -> Hashing:
        return cls(width, *(secrets.randbits(64) | 1 for _ in range(2)))


def without_collision(find: Callable[[Hashing], T], width: int, steps: KeptSteps = ONE_GO) -> T:
    """Return what `find` returns with a hash function under which no two runs collide."""
    while True:
        with suppress(CollisionError):
            return find(Hashing.random(width))
        steps.again(BUCKETS, BY_PLACE)


class Repeats(NamedTuple):
    """S repeated runs in order; int64 (S,), except for the last one."""

    begin: np.ndarray  # byte of the lines where the run begins
    record: np.ndarray
    word: np.ndarray  # of the record, from 0
    first: np.ndarray  # byte where the first run with these words begins
    places: np.ndarray  # number of all runs with these words
    records: np.ndarray  # number of records that have one
    joined: np.ndarray  # bool: it belongs to the passage of the run before it


def find_passages(
    lines: WordLines, width: int, least: int = 1, every: bool = True, steps: KeptSteps = ONE_GO
) -> np.ndarray:
    """Return all places of the passages that `least` records have, or only the first of each.

    int64 (7, P), in order: the columns of `Repeats` of the first run, and the number of words.
    """

    def find(how: Hashing) -> np.ndarray:
        found, listed = [np.empty((7, 0), np.int64)], False
        parts = repeated(lines, how, least, steps, partial(_passages, width, every))
        for _, (more, places, last) in parts:
            if listed:  # the last passage of the portion before may go on
                found[-1][6, -1] += more
            found.append(places) if places.size else None
            listed = listed if last is None else last
        return np.concatenate(found, axis=1)

    return without_collision(find, width, steps)


def _passages(width: int, every: bool, repeats: Repeats) -> tuple[int, np.ndarray, bool | None]:
    """Return what `find_passages` does for the passages that begin in some portion.

    With how many runs go on from the one before, and whether the last is listed (None: no passage).
    """
    heads = np.flatnonzero(~repeats.joined)
    ends = np.append(heads, len(repeats.joined))
    places = np.stack([*(column[heads] for column in repeats[:-1]), np.diff(ends)])
    places[6] += width - 1
    some = every | (places[0] == places[3])
    return int(ends[0]), places[:, some], bool(some[-1]) if len(heads) else None


def repeated(
    lines: WordLines,
    how: Hashing,
    least: int = 1,
    steps: KeptSteps = ONE_GO,
    of: Callable[[Repeats], Any] = lambda repeats: repeats,
) -> Iterator[tuple[Portion, Any]]:
    """Yield portions of the lines, with what `of` returns for the repeated runs that begin there.

    CollisionError if different runs have one hash.  least: of records that have the run.  Each
    process has some of the portions and of the hashes.
    """
    size = max(SORTED_BYTES, -(-int(lines.offsets[-1]) // MAX_FILES))
    portions = [*lines.portions(size, how.width)]
    with closing(_Rows(len(portions), BY_PLACE, steps)) as places:
        begins = np.array([portion.begin for portion in portions], np.uint64)
        for rows in () if steps.done(BY_PLACE) else _candidates(lines, how, steps):
            places.add(np.searchsorted(begins, rows[:, 0], "right") - 1, rows)
        places.finish(spent=BUCKETS)

        def found_in(number: int) -> tuple[Portion, Any]:
            portion = portions[number]
            last = _last(places[number - 1], least) if number else ()
            rows = np.concatenate([np.empty((0, 4), np.uint64), *last, *places[number]])
            rows = rows[(rows[:, 3] >= least) & (rows[:, 0] >= portion.low)].astype(np.int64)
            rows = rows[np.argsort(rows[:, 0])]
            found = _in_order(lines, how.width, portion, rows)
            lines.release()
            before = int(np.searchsorted(rows[:, 0], portion.begin))
            return portion, of(Repeats(*(column[before:] for column in found)))

        for found in in_order(found_in, range(len(portions)), steps.jobs):
            yield found
            lines.release()


def _last(pieces: Iterable[np.ndarray], least: int) -> Iterator[np.ndarray]:
    """Yield the last run of each piece."""
    for rows in pieces:
        some = rows[rows[:, 3] >= least]
        yield some[np.argmax(some[:, 0]) :][:1] if len(some) else some


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


def numbered(
    lines: WordLines, portion: Portion, starts: np.ndarray, begin: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the records, and the numbers in them, of words that begin at bytes of a portion.

    starts: where each of its words begins, from `portion.low`; all int64
    """
    record = np.searchsorted(lines.offsets, begin, "right") - 1
    word = np.searchsorted(starts, begin) - np.searchsorted(starts, lines.offsets[record])
    return record, word + portion.word * (record == portion.record)


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


def _candidates(lines: WordLines, how: Hashing, steps: KeptSteps) -> Iterator[np.ndarray]:
    """Yield rows of repeated runs: see `_grouped`."""
    bits = min(lines.words * ROW_BYTES // BUCKET_BYTES, MAX_FILES - 1).bit_length()
    with closing(_Rows(1 << bits, BUCKETS, steps)) as buckets:
        for rows in () if steps.done(BUCKETS) else _seen_again(lines, how, steps.jobs):
            buckets.add(rows[:, 0] >> np.uint64(32) >> np.uint64(32 - bits), rows)
        buckets.finish()

        def grouped(turn: int, turns: int) -> Tasks[np.ndarray]:
            for number in range(turn, 1 << bits, turns):
                found = _grouped(buckets[number], lines.offsets)
                yield from ((number, lambda rows=rows: rows) for rows in found)
                buckets.empty(number)

        yield from merged(grouped, min(steps.jobs, 1 << bits))


def _seen_again(lines: WordLines, how: Hashing, jobs: int) -> Iterator[np.ndarray]:
    """Yield rows, as in `_grouped`, of the runs whose slot of the filter was seen again."""
    log = min(max((4 * lines.words).bit_length(), MIN_LOG), MAX_LOG)
    seen = np.frombuffer(mmap.mmap(-1, 1 << log - 2), np.uint8)  # all processes share it
    portions = [*lines.portions(HASHED_BYTES, how.width)]

    def noted(portion: Portion) -> None:
        _, runs, own = _hashed(lines, portion, how)
        note(runs[own], log, seen)

    def again(portion: Portion) -> np.ndarray:
        starts, runs, own = _hashed(lines, portion, how)
        slot = runs[own] >> np.uint64(64 - log)
        shift = 2 * (slot & np.uint64(3)).astype(np.uint8) + 1
        twice = (seen[slot >> np.uint64(2)] >> shift & 1).astype(bool)
        some = np.flatnonzero(twice & (runs[own] > 0)) + own.start
        low, high = np.searchsorted(lines.offsets, [portion.low, portion.high])
        line = np.searchsorted(starts, lines.offsets[low:high])  # the first word of each
        around = np.concatenate([[0], runs, [0]]).astype(np.uint64)
        before, behind = around[:-2].copy(), around[2:].copy()
        before[line[line < len(runs)]] = 0
        behind[line[line > 0] - 1] = 0
        begin = starts[some].astype(np.uint64)
        return np.stack([runs[some], before[some], behind[some], begin], axis=1)

    deque(in_order(noted, portions, jobs if kernels.COMPILED else 1), maxlen=0)
    yield from in_order(again, portions, jobs)


def _hashed(
    lines: WordLines, portion: Portion, how: Hashing
) -> tuple[np.ndarray, np.ndarray, slice]:
    """Return where words begin in the lines, the hashes of their runs, and which are its own."""
    starts, runs = hashed(lines[portion.low : portion.high], how)
    lines.release()
    starts += portion.low
    low, high = np.searchsorted(starts, [portion.begin, portion.stop]).tolist()
    return starts, runs, slice(low, high)


def _grouped(bucket: Iterable[np.ndarray], offsets: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows of the runs whose hash occurs twice, from all rows of some range of hashes.

    bucket: pieces, in the order of places: hash, those of the runs before and behind in the same
        record (or 0), begin; uint64 (m, 4)
    each: begin, first, 4 · places + 2 · behind + before, records; uint64 (m, 4).  behind, before: 1
        if the runs one word behind, or before, are the same at all places, else 0
    """
    groups = _Groups(*np.empty((7, 0), np.uint64))
    for rows in bucket:
        one = np.ones(len(rows), np.uint64)
        new = (*rows.T, one, one, _record(offsets, rows[:, 3]))
        groups = _merged(_Groups(*map(np.concatenate, zip(groups, new))), offsets)
    some = groups.places > 1
    hashes, before, behind, first, places, records, _ = (column[some] for column in groups)
    two = np.uint64(2)
    about = (places * two + (behind > 0)) * two + (before > 0)
    for rows in bucket if len(hashes) else ():
        at = np.minimum(np.searchsorted(hashes, rows[:, 0]), len(hashes) - 1)
        found = np.flatnonzero(hashes[at] == rows[:, 0])
        columns = (column[at[found]] for column in (first, about, records))
        yield np.stack([rows[found, 3], *columns], axis=1)


class _Groups(NamedTuple):
    """What is known of all runs of one hash; uint64 (n,)."""

    hash: np.ndarray
    before: np.ndarray  # the hash of the run before each of them, if it is always the same, or 0
    behind: np.ndarray
    first: np.ndarray  # byte where the first one begins
    places: np.ndarray
    records: np.ndarray
    last: np.ndarray  # the record of the last one


def _merged(groups: _Groups, offsets: np.ndarray) -> _Groups:
    """Merge groups of one hash, which are in the order of their places."""
    order = np.argsort(groups.hash, kind="stable")
    groups = _Groups(*(column[order] for column in groups))
    new = first_of_run(groups.hash)
    heads = np.flatnonzero(new)
    if len(heads) == len(new):
        return groups
    sizes = np.diff(heads, append=len(new))

    def same(column: np.ndarray) -> np.ndarray:
        equal = np.logical_and.reduceat(column == np.repeat(column[heads], sizes), heads)
        return np.where(equal, column[heads], np.uint64(0))

    again = ~new & (_record(offsets, groups.first) == np.roll(groups.last, 1))
    return _Groups(
        groups.hash[heads],
        same(groups.before),
        same(groups.behind),
        groups.first[heads],
        np.add.reduceat(groups.places, heads),
        np.add.reduceat(groups.records - again, heads),
        groups.last[heads + sizes - 1],
    )


def _record(offsets: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Return the records (uint64) in which some bytes are."""
    return (np.searchsorted(offsets, begin.astype(np.int64), "right") - 1).astype(np.uint64)


def _in_order(lines: WordLines, width: int, portion: Portion, rows: np.ndarray) -> Repeats:
    """Return the runs of rows in order, as in a portion; CollisionError if words differ."""
    begin, first, about, records = rows.T
    starts, ends, _ = words_in(lines[portion.low : portion.high])
    starts += portion.low
    at = np.searchsorted(starts, begin)
    record, word = numbered(lines, portion, starts, begin)
    behind = np.zeros(len(rows), bool)  # one word behind the run before it
    behind[1:] = (np.diff(at) == 1) & (np.diff(record) == 0)
    joined, along = behind.copy(), behind.copy()  # along: as the other runs are, too
    joined[1:] &= (about[:-1] & 2 > 0) & (about[1:] & 1 > 0)
    # Each run is compared with the one before it in this portion, or else with the first one: so
    # a text that repeats itself is compared with itself once, and not at every word.
    order = np.argsort(first, kind="stable")
    other = np.empty_like(first)
    other[order] = np.where(first_of_run(first[order]), first[order], np.roll(begin[order], 1))
    along[1:] &= np.diff(begin - other) == 0
    heads = np.flatnonzero(~along)
    tails = np.append(heads, len(rows))[1:] - 1
    stops = ends[at[tails] + width - 1] + portion.low + 1
    checks = np.stack([begin[heads], other[heads], stops], axis=1)[begin[heads] != other[heads]]
    for at_once in np.split(checks, range(COMPARED, len(checks), COMPARED)):
        for own, same, stop in at_once.tolist():
            if lines[own:stop] != lines[same : same + stop - own]:
                raise CollisionError
    return Repeats(begin, record, word, first, about >> 2, records, joined)


class _Rows:
    """Rows of four uint64 in the files of a step, which are read one after the other."""

    def __init__(self, files: int, step: str, steps: KeptSteps):
        self._step, self._steps = step, steps
        self._files = [steps.file(step, number) for number in range(files)]

    def add(self, file: np.ndarray, rows: np.ndarray) -> None:
        """Append each row to the file of its number, at most MAX_FILES."""
        narrow = file.astype(np.uint8)  # sorted by counting
        ends = np.cumsum(np.bincount(narrow, minlength=len(self._files)))
        parts = np.split(rows[np.argsort(narrow, kind="stable")], ends[:-1])
        for sink, some in zip(self._files, parts):
            sink.write(some.data)

    def finish(self, spent: str = "") -> None:
        """Write what is left, before other processes read; end the step, if it is not done."""
        for file in self._files:
            file.flush()
        if not self._steps.done(self._step):
            self._steps.finish(self._step, spent=spent)

    def __getitem__(self, file: int) -> _Pieces:
        return _Pieces(self._files[file].fileno())

    def empty(self, file: int) -> None:
        if self._steps.work is None:
            os.ftruncate(self._files[file].fileno(), 0)

    def close(self) -> None:
        for file in self._files:
            file.close()


class _Pieces:
    """The rows of a file, in pieces of BUCKET_BYTES; can be read several times, by any process."""

    def __init__(self, file: int):
        self._file = file

    def __iter__(self) -> Iterator[np.ndarray]:
        at = 0
        while data := os.pread(self._file, BUCKET_BYTES, at):
            yield np.frombuffer(data, np.uint64).reshape(-1, 4)
            at += len(data)
