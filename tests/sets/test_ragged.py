"""Sets as rows of flat arrays behave as lists of Python sets do, and rows of bits as integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.sets import bit_vectors, ragged
from neardup.sets.bit_vectors import bits_apart, bits_in, popcount
from neardup.sets.ragged import Ragged, chunks, distinct, shared, spans
from tests.support.drawn import TOP, shingle_sets, shingles

small_sets = st.frozensets(st.integers(0, 15), max_size=12)
row_lists = st.lists(small_sets, max_size=8) | st.lists(shingle_sets, max_size=8)


def as_sets(rows):
    """Return the rows as Python sets, after checking that each is ascending without repeats."""
    lists = [rows.row(i).tolist() for i in range(len(rows))]
    assert lists == [sorted(set(row)) for row in lists]
    return [frozenset(row) for row in lists]


@pytest.mark.parametrize("short", [0, 3, 100])
@pytest.mark.parametrize("values", [st.integers(0, 9), shingles])
def test_rows_come_back_as_sets(values, short, monkeypatch):
    monkeypatch.setattr(ragged, "SHORT", short)

    @given(st.lists(st.lists(values, max_size=9), max_size=9))
    def check(rows):
        table = Ragged.from_rows(rows)
        assert as_sets(table) == [frozenset(row) for row in rows]
        assert table.sizes.tolist() == [len(set(row)) for row in rows]
        assert table.values.dtype == np.uint64
        assert table.offsets.dtype == np.int64

    check()


@given(st.data(), st.sampled_from([32, 64]), st.integers(2, 300))
def test_packing_reaches_up_to_the_last_free_bit(data, bits, count):
    free = 1 << (bits - count.bit_length())
    value = data.draw(st.sampled_from([free - 2, free - 1, free, free + 1]))
    rows = [[value, 0, value]] * count
    assert as_sets(Ragged.from_rows(rows)) == [{0, value}] * count


def check_shared(sets, pairs):
    rows = Ragged.from_rows([list(row) for row in sets])
    left, right = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    assert as_sets(shared(rows, left, right)) == [sets[i] & sets[j] for i, j in pairs]


@given(st.data(), row_lists.filter(bool))
def test_what_two_rows_share_is_their_intersection(data, sets):
    index = st.integers(0, len(sets) - 1)
    check_shared(sets, data.draw(st.lists(st.tuples(index, index), max_size=20)))


@pytest.mark.parametrize("step", [1, 7, 40])
@pytest.mark.parametrize("long", [0, 9, 1000])
@pytest.mark.parametrize("top", [30, TOP])
def test_shared_does_not_depend_on_the_step(monkeypatch, step, long, top):
    monkeypatch.setattr(ragged, "PAIR_STEP", step)
    monkeypatch.setattr(ragged, "LONG", long)
    sets = [frozenset(range(top - k, top)) | {k} for k in range(1, 12)] + [frozenset()]
    check_shared(sets, [(i, j) for i in range(12) for j in range(12)])


@given(st.data(), row_lists.filter(bool))
def test_take_gives_the_rows_asked_for(data, sets):
    index = data.draw(st.lists(st.integers(0, len(sets) - 1), max_size=12))
    rows = Ragged.from_rows([list(row) for row in sets])
    assert as_sets(rows.take(np.array(index, dtype=np.int64))) == [sets[i] for i in index]


@given(row_lists, row_lists)
def test_beside_puts_rows_after_rows(first, then):
    tables = [Ragged.from_rows([list(row) for row in sets]) for sets in (first, then)]
    assert as_sets(tables[0].beside(tables[1])) == first + then


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=9))
def test_spans_are_ranges_end_to_end(ranges):
    starts, sizes = (np.array([r[k] for r in ranges], dtype=np.int64) for k in (0, 1))
    expected = [i for start, size in ranges for i in range(start, start + size)]
    assert spans(starts, sizes).tolist() == expected


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 20))
def test_chunks_cover_everything_once_within_the_limit_and_no_chunk_could_be_longer(weights, limit):
    ranges = chunks(np.array(weights, dtype=np.int64), limit)
    assert [i for low, high in ranges for i in range(low, high)] == list(range(len(weights)))
    for low, high in ranges:
        assert sum(weights[low:high]) <= limit or high - low == 1
        assert high == len(weights) or sum(weights[low : high + 1]) > limit


weighted_rows = st.lists(
    st.dictionaries(shingles, st.integers(1, 5) | st.integers(1, 10**12), max_size=8), max_size=6
)


def with_weights(rows, bare=False):
    """Return dictionaries value → weight as rows; `bare` leaves out weights that are all 1."""
    table = Ragged.from_rows([list(row) for row in rows])
    weights = [row[value] for row in rows for value in sorted(row)]
    if bare and set(weights) <= {1}:
        return table
    return Ragged(table.values, table.offsets, np.array(weights, dtype=np.int64))


def as_dicts(table):
    weights = table.weighed()
    bounds = zip(table.offsets.tolist(), table.offsets[1:].tolist())
    return [dict(zip(table.values[a:b].tolist(), weights[a:b].tolist())) for a, b in bounds]


@given(weighted_rows, st.data())
def test_weights_go_with_their_values(rows, data):
    table = with_weights(rows)
    assert as_dicts(table) == rows
    chosen = data.draw(st.lists(st.booleans(), min_size=len(table.values)))[: len(table.values)]
    flags = iter(chosen)
    kept = [{value: row[value] for value in sorted(row) if next(flags)} for row in rows]
    assert as_dicts(table.where(np.array(chosen, dtype=bool))) == kept
    assert as_dicts(table.bare()) == [dict.fromkeys(row, 1) for row in rows]
    if rows:
        index = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9))
        taken = table.take(np.array(index, dtype=np.int64))
        assert as_dicts(taken) == [rows[i] for i in index]


@given(st.lists(weighted_rows, max_size=4))
def test_rows_with_and_without_weights_end_to_end(parts):
    every = Ragged.end_to_end([with_weights(rows, bare=True) for rows in parts])
    assert as_dicts(every) == [row for rows in parts for row in rows]
    for rows, more in zip(parts, parts[1:]):
        both = with_weights(rows, bare=True).beside(with_weights(more, bare=True))
        assert as_dicts(both) == [*rows, *more]


@given(st.lists(st.lists(st.tuples(shingles, st.integers(1, 10**12)), max_size=8), max_size=6))
def test_weights_of_equal_values_add_up(rows):
    flat = [pair for row in rows for pair in row]
    values = np.array([value for value, _ in flat], dtype=np.uint64)
    weights = np.array([weight for _, weight in flat], dtype=np.int64)
    table = Ragged.summed(values, np.array([len(row) for row in rows], dtype=np.int64), weights)
    sums = [{v: sum(w for u, w in row if u == v) for v, _ in row} for row in rows]
    assert as_dicts(table) == sums
    assert as_sets(table) == [frozenset(row) for row in sums]


# Distinct values.


@given(st.lists(st.integers(0, 50) | st.integers(0, 2**64 - 1)), st.booleans())
def test_distinct_values_whether_they_are_counted_or_sorted(values: list[int], many: bool) -> None:
    given = np.array(values * (60 if many else 1), np.uint64)
    expected = np.unique(given, return_counts=True)
    for column, other in zip(distinct(given), expected):
        assert column.tolist() == other.tolist()
        assert column.dtype == other.dtype


@pytest.mark.parametrize("kind", [np.int64, np.uint32])
def test_distinct_values_of_other_kinds(kind: type) -> None:
    values, members = distinct(np.array([3, 1, 3, 0, 1, 3], kind))
    assert values.dtype == kind
    assert (values.tolist(), members.tolist()) == ([0, 1, 3], [1, 2, 3])


# Bits in rows of words.


WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=5, max_size=5)


@given(WORDS, st.integers(0, 319), st.integers(1, 64))
def test_bits_are_cut_from_words(words: list[int], low: int, width: int) -> None:
    high = min(low + width, 320)
    number = sum(word << 64 * i for i, word in enumerate(words))
    cut = bits_in(np.array([words], dtype=np.uint64), range(low, high)).tolist()
    assert cut == [number >> low & (1 << high - low) - 1]


@given(WORDS, WORDS)
def test_bits_apart_are_those_of_all_words(x: list[int], y: list[int]) -> None:
    apart = bits_apart(*(np.array([words], np.uint64) for words in (x, y)))
    assert apart.tolist() == [sum(bin(a ^ b).count("1") for a, b in zip(x, y))]


@given(WORDS)
def test_an_older_numpy_counts_the_same(words: list[int]) -> None:
    array = np.array(words, np.uint64)
    newer, bit_vectors._count = bit_vectors._count, None
    try:
        older = popcount(array)
    finally:
        bit_vectors._count = newer
    assert older.tolist() == popcount(array).tolist() == [bin(word).count("1") for word in words]
    assert older.dtype == popcount(array).dtype == np.int64
