"""Which keys of fingerprints to post, found by an exact join instead of a shuffle of all keys.

A fingerprint has a hundred keys or more, most of which nobody shares, or only strangers.  On one
machine all fingerprints fit into memory, so those that are near each other are found first
(`joins.near_bits`), and a record posts only the keys that it shares with such a one.  What follows
is as for other schemes, and so are the pairs: a pair that shares no key is not found here either.

    mapper 1 ── vectors ─┬─ blocks 1, 3 … ── marks ─┬─ mapper 1 posts marked keys
    mapper 2 ── vectors ─┴─ blocks 2, 4 … ── marks ─┴─ mapper 2

A mark is a bit for each band of a record.  A pair is written at the first band in which its records
share a key, and only --output links looks at others, where an edge may connect two without being
written.  Equal fingerprints are compared once.
"""

import pickle
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from neardup.engines.local.plan import Plan, everywhere, parsed_records
from neardup.engines.local.workers import Workers, total_size
from neardup.joins.near_bits import Pairs, near_pairs
from neardup.lines.keyed_lines import HASH_BITS
from neardup.runtime.counters import Counters
from neardup.schemes.fingerprints import Fingerprints, Prints
from neardup.schemes.scheme import Scheme
from neardup.sets.hashing import combine
from neardup.sets.ragged import Batch, Ragged
from neardup.verification import OUTPUTS

WORD_BITS = 64


class Variants(NamedTuple):
    """Fingerprints of records: V rows."""

    records: np.ndarray  # int64 (V,), their numbers
    own: np.ndarray  # bool (V,), whether it is the record's own
    vectors: np.ndarray  # uint64 (V, W)

    @classmethod
    def of(cls, records: np.ndarray, sets: Ragged, bits: int) -> "Variants":
        prints = Prints.of(sets, bits)
        own = np.zeros(len(prints.vectors), dtype=bool)
        own[prints.own] = True
        return cls(np.repeat(records, prints.counts), own, prints.vectors)

    @classmethod
    def end_to_end(cls, parts: "Iterable[Variants]") -> "Variants":
        return cls(*map(np.concatenate, zip(*parts)))

    def marks(self, scheme: Fingerprints, every: bool, turn: int = 0, turns: int = 1) -> np.ndarray:
        """Return a share of the marks, uint64 (records, words); all shares are to be ORed."""
        how = scheme.bits, scheme.distance, turn, turns
        masks, several = scheme.ways.masks, not self.own.all()
        first, alike = distinct_rows(self.vectors[self.own])
        ours = Marks.of(self.vectors[self.own][first], len(scheme.ways))
        copies = np.flatnonzero(np.bincount(alike, minlength=len(first)) > 1)
        for band in range(len(scheme.ways) if every else 1):
            ours.set_band(copies, band)
        for pairs in near_pairs(ours.vectors, None, *how):
            _mark(masks, pairs, ours, ours, every, several)
        others = Marks.of(self.vectors[~self.own], len(scheme.ways))
        if len(others.vectors):
            for pairs in near_pairs(ours.vectors, others.vectors, *how):
                _mark(masks, pairs, ours, others, every, several)
        marks = np.zeros((int(self.records.max(initial=-1)) + 1, ours.words.shape[1]), np.uint64)
        np.bitwise_or.at(marks, self.records[~self.own], others.words)
        marks[self.records[self.own]] |= ours.words[alike]
        return marks


class Marks(NamedTuple):
    """Bit vectors, uint64 (n, W), and their marks, uint64 (n, words)."""

    vectors: np.ndarray
    words: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray, bands: int) -> "Marks":
        return cls(vectors, np.zeros((len(vectors), -(-bands // WORD_BITS)), np.uint64))

    def set_band(self, rows: np.ndarray, band: int) -> None:
        self.words[rows, band // WORD_BITS] |= np.uint64(1 << band % WORD_BITS)


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one row of each kind of uint64 (n, W), and which of these each row equals (int64).

    Different rows with one hash may stay apart from equal ones, which costs time alone.

    >>> first, alike = distinct_rows(np.array([[7, 8], [1, 2], [7, 8]], np.uint64))
    >>> sorted(first.tolist()), bool(alike[0] == alike[2] != alike[1])
    ([0, 1], True)
    """
    order = np.argsort(combine(np.ascontiguousarray(rows.T), seed=0), kind="stable")
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    alike = np.empty(len(rows), np.int64)
    alike[order] = np.cumsum(new) - 1
    return order[new], alike


def _mark(masks: np.ndarray, pairs: Pairs, x: Marks, y: Marks, every: bool, several: bool) -> None:
    """Mark the first band in which the rows left[p] of x and right[p] of y agree, or `every` one.

    masks: uint64 (bands, W); several: some records have several fingerprints.  Subtle: two records
    may then share a key by others than the near ones, perhaps in a band before, so all bands before
    are marked as well.
    """
    left, right = pairs
    differ = x.vectors[left] ^ y.vectors[right]
    for band, mask in enumerate(masks):
        agree = ((differ & mask) == 0).all(axis=1)
        some = slice(None) if several else agree
        x.set_band(left[some], band)
        y.set_band(right[some], band)
        if not every:
            left, right, differ = left[~agree], right[~agree], differ[~agree]
            if not len(left):
                break


def marked_keys(scheme: Scheme, sets: Ragged, marks: np.ndarray) -> Ragged:
    """Return the keys of sets in the marked bands; marks: uint64 (n, words)."""
    some = np.flatnonzero(marks.any(axis=1))
    keys = scheme.keys(sets.take(some))
    row, band = np.repeat(some, keys.sizes), keys.values >> np.uint64(HASH_BITS)
    word = (band // np.uint64(WORD_BITS)).astype(np.int64)
    wanted = marks[row, word] >> band % np.uint64(WORD_BITS) & np.uint64(1)
    keys = keys.where(wanted.astype(bool))
    sizes = np.zeros(len(sets), np.int64)
    sizes[some] = keys.sizes
    return Ragged(keys.values, np.append(0, np.cumsum(sizes)))


def find_marks(workers: Workers, plan: Plan) -> None:
    """Parse the records, and write the marks of all workers."""
    plan.progress.stage("parse", total_size(plan.files), together=True)
    everywhere(workers, plan, "mapper", _write_vectors)
    plan.progress.stage("near", 0)
    everywhere(workers, plan, "near", _write_marks)


def _write_vectors(plan: Plan, k: int) -> None:
    """Parse mapper k's share of the input, and keep the fingerprints of its records."""
    counters = Counters("parse", reports=str(plan.folder))
    done = 0
    with open(plan.path("vectors", k), "wb") as file:
        for batch in parsed_records(plan, k, counters):
            records = np.arange(done, done + len(batch.ids)) * plan.sources + k
            pickle.dump(Variants.of(records, batch.sets, _scheme(plan).bits), file, protocol=5)
            done += len(batch.ids)
    counters.report()


def _write_marks(plan: Plan, k: int) -> None:
    parts = []
    for path in plan.paths("vectors"):
        with open(path, "rb") as file:
            while file.peek(1):
                parts.append(pickle.load(file))
    if parts:
        every = plan.settings.output is OUTPUTS["links"]
        marks = Variants.end_to_end(parts).marks(_scheme(plan), every, k, plan.jobs)
        np.save(plan.path("marks", k), marks)


def marked(
    plan: Plan, k: int, batches: Iterable[Batch], counters: Counters
) -> Iterator[tuple[Batch, Ragged]]:
    """Yield the batches of mapper k with their marked keys."""
    scheme = _scheme(plan)
    counters.promise = scheme.promise
    counters.add("keys", 0)
    marks, done = None, 0
    for batch in batches:
        if marks is None:
            marks = np.bitwise_or.reduce([np.load(f"{path}.npy") for path in plan.paths("marks")])
        numbers = np.arange(done, done + len(batch.ids)) * plan.sources + k
        done += len(batch.ids)
        keys = marked_keys(scheme, batch.sets, marks[numbers])
        counters.add("keys", len(keys.values))
        yield batch, keys


def are_used(plan: Plan) -> bool:
    """Return whether keys are marked first; those of an index are on disk already."""
    return plan.settings.scheme.joined_in_memory and not plan.segments


def _scheme(plan: Plan) -> Fingerprints:
    assert isinstance(plan.settings.scheme, Fingerprints)
    return plan.settings.scheme
