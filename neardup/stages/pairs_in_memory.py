"""The pairs of all records at once, in memory: no buckets, no shuffle.

    sizes, bitmaps, sums ─┬─ candidates: sets that share a key ─┬─ their ids and tokens ── pairs
    keys, or all tokens  ─┘  or, without keys: an exact join    ┘  (a second pass)

Equal sets are joined once.  Of a scheme that finds every pair no keys are needed: the exact join
gives the same answer.  Of any other, sets are candidates if they share a key, as in a bucket.

A key's hash and the rank of a set by size are one word: sorted words of a band have the sets of a
key in a row, ordered by size, so that the sets of similar size are next to each other.

`Choice` chooses between MinHash and an exact join for a run whose options name no scheme.

Letters: n records, some of them with equal sets; P pairs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import combinations
from typing import Callable, NamedTuple

import numpy as np

from neardup.joins.bitmap_joins import join_up_to
from neardup.lines.keyed_lines import HASH_BITS
from neardup.options.settings import Settings
from neardup.reading.blocks import NEW
from neardup.runtime import kernels
from neardup.runtime.counters import Counters
from neardup.schemes import by_size
from neardup.sets.ragged import PAIR_STEP, Batch, Ragged, chunks, distinct, spans, starts_of_runs
from neardup.sets.token_counts import Sample, TokenCounts
from neardup.similarity.measures import Measure, SetMeasure
from neardup.similarity.sketches import bitmaps_and_sums, may_reach
from neardup.verification import OUTPUTS
from neardup.verification.bucket_batch import BucketBatch
from neardup.verification.pair_join import PairJoin

RANK_BITS = 64 - HASH_BITS  # records are fewer than 2^RANK_BITS
RANK = np.uint64((1 << RANK_BITS) - 1)
JOINED_BYTES = 60  # for each token in an exact join, at its peak
KEY_BYTES, TOKEN_BYTES, RECORD_BYTES, PAIR_BYTES = 20, 24, 400, 128
MAX_PAIRS, MAX_COMPARED = 32, 4096  # per record: edges of a decision, and sets that share a key
MAX_BLOCKS = 8  # blocks of sets, which are joined two by two; each costs a pass over the records
MAX_THREADS = 4  # each holds the words of a band
COLLISION, LONG = 5e-9, 5.0  # seconds: of one collision, and of a join that keys may shorten
# Of a choice:
SAMPLED_SETS, SAMPLED_TOKENS, MIN_RECORDS = 1024, 1 << 17, 4096
MAX_TOKENS = 1 << 25  # of all records; an exact join of more would not fit into most memories
MIN_PAIRS = 1 << 20  # candidate pairs that are worth a choice
KEY_PAIR, TOKEN_PAIR, TOKEN = 50, 20, 110  # nanoseconds on one core; only their ratios matter

Pairs = tuple[np.ndarray, np.ndarray]  # rows, int64 (P,); the left one is not larger


class Sketches(NamedTuple):
    """Sizes, bitmaps, sums and keys of n records, without their tokens."""

    sizes: np.ndarray  # int64 (n,)
    maps: np.ndarray  # bitmaps, uint64 (n, 1)
    sums: np.ndarray  # uint64 (n,): equal sets have equal sums, and others hardly ever
    keys: Ragged  # without values, if an exact join takes their place
    kinds: np.ndarray  # uint64 (n,), or (0,): equal sets of several kinds are not copies

    @classmethod
    def of(cls, batch: Batch, settings: Settings) -> Sketches:
        sets, sizes = batch.sets, batch.sets.sizes
        keys = Ragged.of_sizes(np.empty(0, np.uint64), np.zeros(len(sets), np.int64))
        if not settings.scheme.finds_every_pair:
            keys = settings.scheme.keys(sets)
        kinds = np.empty(0, np.uint64)
        if settings.form.pairs_by_value:
            kinds = batch.ranks[:, -1] + (batch.places < NEW).astype(np.uint64)
        if settings.not_pairs and settings.not_pairs.by_ids:
            apart = settings.not_pairs.kinds(batch.ids)
            kinds = kinds + apart if len(kinds) else apart
        return cls(sizes, *bitmaps_and_sums(sets), keys, kinds)

    @classmethod
    def end_to_end(cls, parts: Iterable[Sketches]) -> Sketches:
        none = np.empty(0, np.int64), np.empty((0, 1), np.uint64), np.empty(0, np.uint64)
        sizes, maps, sums, keys, kinds = zip((*none, Ragged.from_rows([]), none[2]), *parts)
        columns = np.concatenate(sizes), np.concatenate(maps), np.concatenate(sums)
        return cls(*columns, Ragged.end_to_end(list(keys)), np.concatenate(kinds))


class JoinedLines(NamedTuple):
    blocks: Iterator[bytes]  # of whole lines
    in_order: bool  # they are sorted, and each pair is there once


def is_possible(settings: Settings) -> bool:
    """Return whether a join in memory gives the answer that is asked for."""
    by_keys = not settings.scheme.counting and not settings.scheme.weights
    links = settings.output == OUTPUTS["links"]  # links depend on the buckets
    every = settings.scheme.finds_every_pair
    return (every or by_keys) and isinstance(settings.measure, SetMeasure) and not links


def pair_lines(
    known: Sketches,
    batches: Callable[[], Iterable[Batch]],
    settings: Settings,
    counters: Counters,
    memory: int,
    threads: int = 1,
) -> JoinedLines | None:
    """Return the lines of the pairs, or edges; None if they take more than `memory` bytes.

    It also returns None for very many pairs if buckets write only those that a decision needs, and
    for sets of frequent tokens only, if other keys cost less.
    batches: returns the batches of all records, each time that it is called; tokens may be of any
    unsigned type.
    """
    n = len(known.sizes)
    measure = settings.measure
    assert isinstance(measure, SetMeasure)
    threads = min(threads, MAX_THREADS)
    memory -= KEY_BYTES * len(known.keys.values) + threads * RECORD_BYTES * n // 8
    if memory < 0 or n >> RANK_BITS:
        return None
    first = first_rows(known.sums + known.kinds if len(known.kinds) else known.sums)
    row = np.flatnonzero(first == np.arange(n))
    useful = MAX_PAIRS * n if settings.output.decides else sys.maxsize
    if settings.scheme.finds_every_pair:
        ranges = blocks_of(known.sizes[row], memory)
        memory -= min(JOINED_BYTES * int(known.sizes[row].sum()), memory // 2)
        most = min(useful, memory // PAIR_BYTES)
        found = joined_sets(batches, [row[low:high] for low, high in ranges], settings, most)
    else:
        most = min(useful, memory // PAIR_BYTES)
        found = sharing_keys(known, row, measure, most, threads)
    if found is None:
        return None
    left, right = found
    used = distinct(np.concatenate((left, right, first[first != np.arange(n)])))[0]
    if TOKEN_BYTES * known.sizes[used].sum() + RECORD_BYTES * len(used) > memory:
        return None
    batch = _one_bucket(batches(), first, used, settings)
    if batch is None:
        return None
    places = np.searchsorted(used, left), np.searchsorted(used, right)
    join = settings.join(counters, PairJoin)
    blocks = join.in_order(batch, *places, most)
    return JoinedLines(
        join.of_pairs(batch, *places) if blocks is None else blocks, blocks is not None
    )


def first_rows(sums: np.ndarray) -> np.ndarray:
    """Return, for each row, the first row with the same sum (int64).

    >>> first_rows(np.array([7, 5, 7], np.uint64)).tolist()
    [0, 1, 0]
    """
    order = np.argsort(sums)
    starts = starts_of_runs(sums[order])
    first = np.empty(len(sums), np.int64)
    if len(sums):
        first[order] = np.repeat(
            np.minimum.reduceat(order, starts), np.diff(starts, append=len(sums))
        )
    return first


def blocks_of(sizes: np.ndarray, memory: int) -> list[tuple[int, int]]:
    """Divide sets of these sizes into ranges of which two can be joined in half of the memory.

    One range, if all sets can; no range, if that takes more than MAX_BLOCKS.

    >>> blocks_of(np.array([10, 20, 30, 30]), 128 * JOINED_BYTES)
    [(0, 2), (2, 3), (3, 4)]
    """
    tokens = memory // 2 // JOINED_BYTES
    if sizes.sum() <= tokens:
        return [(0, len(sizes))]
    blocks = chunks(sizes, tokens // 2)
    return blocks if len(blocks) <= MAX_BLOCKS and sizes.max() <= tokens // 2 else []


def joined_sets(
    batches: Callable[[], Iterable[Batch]], blocks: list[np.ndarray], settings: Settings, most: int
) -> Pairs | None:
    """Return the pairs of the sets whose rows (int64) are in `blocks`, ascending.

    Every two blocks are joined as one, so that a pair in one block is found several times.
    None if the pairs are too many, if an exact scheme's keys cost less, or without blocks.
    """

    def worth(collisions: int) -> bool:
        cost = collisions * COLLISION
        return cost < LONG or cost < settings.scheme.seconds(settings.request, sets)

    assert isinstance(settings.measure, SetMeasure)
    if not blocks:
        return None
    found = np.empty(0, np.uint64)
    for some in combinations(blocks, 2) if len(blocks) > 1 else [blocks]:
        row = np.concatenate([np.empty(0, np.int64), *some])
        sets = _sets_at(row, batches())
        joined = join_up_to(most, settings.measure, sets, worth)
        if joined is None:
            return None
        larger = sets.sizes[joined.left] > sets.sizes[joined.right]
        left = row[np.where(larger, joined.right, joined.left)].view(np.uint64)
        right = row[np.where(larger, joined.left, joined.right)].view(np.uint64)
        found = np.concatenate((found, left << np.uint64(RANK_BITS) | right))
        if len(blocks) > 1:
            found = distinct(found)[0]
        if len(found) > most:
            return None
    return unpacked(found)


def unpacked(pairs: np.ndarray) -> Pairs:
    left, right = pairs >> np.uint64(RANK_BITS), pairs & RANK
    return left.view(np.int64), right.view(np.int64)


def _sets_at(row: np.ndarray, batches: Iterable[Batch]) -> Ragged:
    """Return the sets at the rows (int64, ascending) of batches."""
    parts, base = [Ragged.from_rows([])], 0
    for batch in batches:
        low, high = np.searchsorted(row, (base, base + len(batch.ids)))
        whole = high - low == len(batch.ids)
        parts.append(batch.sets if whole else batch.sets.take(row[low:high] - base))
        base += len(batch.ids)
    return Ragged.end_to_end(parts)


def sharing_keys(
    known: Sketches, row: np.ndarray, measure: Measure, most: int, threads: int
) -> Pairs | None:
    """Return the pairs of sets at `row` that share a key and may be similar; None if too many."""
    row = row[np.argsort(known.sizes[row], kind="stable")]
    sizes, maps = known.sizes[row], known.maps[row]
    beyond, makers = beyond_partners(sizes, measure), words_of(known.keys, row)

    def found_in(k: int) -> np.ndarray | None:
        """Return packed pairs (uint64, ascending) in every `threads`th band, from the kth."""
        found, new = np.empty(0, np.uint64), [np.empty(0, np.uint64)]
        for make in makers[k::threads]:
            words = make()
            i, later = partners_in(words, beyond)
            if later.sum() > MAX_COMPARED * len(known.sizes):
                return None
            for low, high in chunks(later, PAIR_STEP):
                left = np.repeat(words[i[low:high]] & RANK, later[low:high])
                right = words[spans(i[low:high] + 1, later[low:high])] & RANK
                ends = left.view(np.int64), right.view(np.int64)
                possible = may_reach(measure, maps, sizes, *ends)
                new.append(left[possible] << np.uint64(RANK_BITS) | right[possible])
                if sum(map(len, new)) > len(found):  # else many pairs would be sorted many times
                    found, new = distinct(np.concatenate((found, *new)))[0], []
                if len(found) > most:
                    return None
        return distinct(np.concatenate((found, *new)))[0]

    if threads == 1:
        parts = [found_in(0)]
    else:
        from concurrent.futures import ThreadPoolExecutor  # here, since it takes milliseconds

        with ThreadPoolExecutor(threads) as pool:  # numpy sorts and compares without Python's lock
            parts = list(pool.map(found_in, range(threads)))
    done = [part for part in parts if part is not None]
    if len(done) < threads:
        return None
    found = distinct(np.concatenate(done))[0]
    if len(found) > most:
        return None
    left, right = unpacked(found)
    return row[left], row[right]


def beyond_partners(sizes: np.ndarray, measure: Measure) -> np.ndarray:
    """Return, for each of ascending sizes, the place of the first that is too large for a pair."""
    return np.searchsorted(sizes, measure.largest_partner(sizes), side="right")


def partners_in(words: np.ndarray, beyond: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort words; return places in them, and how many of the next words have partners of each.

    Partners share the key, and have possible sizes.  Both are int64, and omit most words without.
    """
    words.sort()
    key = words >> np.uint64(RANK_BITS)
    i = np.flatnonzero(key[1:] == key[:-1])
    limit = (words[i] & ~RANK) + beyond[(words[i] & RANK).view(np.int64)].astype(np.uint64)
    return i, np.searchsorted(words, limit) - i - 1


def words_of(keys: Ragged, row: np.ndarray) -> list[Callable[[], np.ndarray]]:
    """Return functions that make words (uint64) of a key's hash and i, for the keys of row[i].

    One for each band if all rows have one key in each of the same bands, else one for all.  Words
    whose key no other row has may be left out.
    """
    width = int(keys.sizes.max(initial=0))
    table = keys.values.reshape(-1, width) if width and (keys.sizes == width).all() else keys.values

    place = np.argsort(row)  # so that keys are read in the order in which they are in memory
    at = row[place]

    def of_band(b: int) -> np.ndarray:
        if kernels.COMPILED:
            return kernels.words_of_shared_keys(table, b, at, place, RANK_BITS)
        return table[at, b] << np.uint64(RANK_BITS) | place.view(np.uint64)

    def of_all() -> np.ndarray:
        mine = keys.take(row)
        number = np.unique(mine.values, return_inverse=True)[1].astype(np.uint64)
        i = np.repeat(np.arange(len(row), dtype=np.uint64), mine.sizes)
        return number << np.uint64(RANK_BITS) | i

    bands = table >> np.uint64(HASH_BITS)
    one_each = table.ndim > 1 and (bands == bands[0]).all() and len(distinct(bands[0])[0]) == width
    return [partial(of_band, b) for b in range(width)] if one_each else [of_all]


def _one_bucket(
    batches: Iterable[Batch], first: np.ndarray, used: np.ndarray, settings: Settings
) -> BucketBatch | None:
    """Make a bucket of the sets at rows `used` (int64, ascending), with all ids of each set.

    first: of each row, as `first_rows` returns it.  None if a set differs from that at its first
    row: different sets had the same sum.
    """
    ids: list[list[bytes]] = [[] for _ in used]
    repeated = set(first[first != np.arange(len(first))].tolist())
    known: dict[int, bytes] = {}
    parts, base = [], 0
    for batch in batches:
        mine = first[base : base + len(batch.ids)]
        place = np.minimum(np.searchsorted(used, mine), len(used) - 1)
        some = np.flatnonzero(used[place] == mine) if len(used) else place[:0]
        taken = batch.take(some)
        taken.sets.values = taken.sets.values.astype(np.uint64, copy=False)  # to be compared
        names = settings.tag.tagged(taken).ids if settings.tag else taken.ids
        for name, at in zip(names, place[some].tolist()):
            ids[at].append(name)
        for k, row in enumerate(mine[some].tolist()):
            if row in repeated:
                set_ = taken.sets.row(k).tobytes()
                if known.setdefault(row, set_) != set_:
                    return None
        parts.append(taken.sets.take(np.flatnonzero(mine[some] == base + some)))
        base += len(batch.ids)
    repeats: list[list[bytes]] = [[] for _ in ids]
    for at, names in enumerate(ids):
        if len(names) > 1:
            names.sort()
            repeats[at] = [a for a, b in zip(names, names[1:]) if a == b]
            ids[at] = list(dict.fromkeys(names))
    none = np.zeros(len(used), np.int64)
    sets = Ragged.end_to_end(parts)
    return BucketBatch(none.astype(np.uint64), none, np.arange(len(used)), ids, repeats, sets)


class Choice:
    """The choice of a run whose options name no scheme: MinHash or an exact join.

    The cheaper one is chosen, by the records and the options alone: it is the same on every
    machine, with every --memory and number of workers.  MinHash compares the sets that share a key,
    and an exact join those that share one of their rarest tokens.  How many do is counted among
    the sets with the smallest hashes, s of n; among all of them it is (n/s)² times as many.  The
    sample has one of equal sets, and n counts all, so that both joins seem dearer than they are.
    Which tokens are rare is counted in one half of these sets, and used in the other: in the sets
    themselves those tokens seem rarest that by chance they do not share.
    """

    def __init__(self) -> None:
        self.records = self.tokens = 0
        self.sample = Sample(SAMPLED_SETS, SAMPLED_TOKENS)

    def add(self, sets: Ragged, sums: np.ndarray | None = None) -> None:
        """Add non-empty sets; sums: their sums by `bitmaps_and_sums`, if known."""
        self.records += len(sets)
        self.tokens += len(sets.values)
        if 0 < self.tokens <= MAX_TOKENS:
            self.sample.draw(bitmaps_and_sums(sets)[1] if sums is None else sums, sets)

    @classmethod
    def of_parts(cls, parts: Iterable[Choice]) -> Choice:
        """Return the choice for the records of all parts together."""
        whole = cls()
        for part in parts:
            whole.records += part.records
            whole.tokens += part.tokens
            whole.sample.merge(part.sample)
        return whole

    def is_exact(self, settings: Settings) -> bool:
        """Return whether an exact join costs less than one by the keys of the settings' scheme."""
        sets, measure = self.sample.sets, settings.measure
        if self.tokens > MAX_TOKENS or self.records < MIN_RECORDS:
            return False
        least = settings.request.least
        by_keys = _pairs(settings.scheme.keys(sets), sets, measure) * self.records**2
        by_keys //= len(sets) ** 2
        if by_keys < MIN_PAIRS or KEY_PAIR * by_keys < TOKEN * self.tokens:
            return False
        halves = [sets.take(np.arange(k, len(sets), 2)) for k in (0, 1)]
        by_tokens = 0
        for half, other in (halves, halves[::-1]):
            counts = TokenCounts.of_sets(other)
            rarest = by_size.rarest(half, counts, by_size.prefix_sizes(half.sizes, least))
            by_tokens += _pairs(rarest, half, measure) * self.records**2 // (2 * len(half) ** 2)
        return TOKEN_PAIR * by_tokens + TOKEN * self.tokens < KEY_PAIR * by_keys


def _pairs(keys: Ragged, sets: Ragged, measure: Measure) -> int:
    """Count the pairs of sets that share a key and may be similar by size, once for each key."""
    row = np.argsort(sets.sizes, kind="stable")
    beyond = beyond_partners(sets.sizes[row], measure)
    return sum(int(partners_in(make(), beyond)[1].sum()) for make in words_of(keys, row))
