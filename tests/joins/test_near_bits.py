"""The pairs of near bit vectors are those that a comparison of every two rows finds.

In one part or several, with and without kernels, for every number of blocks."""

from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.joins import near_bits
from neardup.joins.near_bits import (
    Sorted,
    bits_in,
    cheapest,
    each_once,
    flips,
    near_pairs,
    near_records,
)
from neardup.runtime import kernels
from tests.support.cases import crossed
from tests.support.fingerprints import distances, drawn_prints, vectors_of
from tests.support.oracle import hamming

BITS = [32, 36, 40, 64, 256, 1020, 1024]


@pytest.fixture(params=["compiled", "numpy"])
def _kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(kernels, "COMPILED", False)
    elif not kernels.COMPILED:
        pytest.skip("no kernels, or turned off")


def values(count: int, bits: int, distance: int) -> list[int]:
    return [record.values[0] for record in drawn_prints(count, bits, distance, seed=bits)]


def found(parts: Iterable[near_bits.Pairs]) -> set[tuple[int, int]]:
    """Return the pairs as a set, after checking that each occurs once."""
    pairs = [pair for left, right in parts for pair in zip(left.tolist(), right.tolist())]
    assert len(pairs) == len(set(pairs))
    return set(pairs)


def either_way(pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(min(pair), max(pair)) for pair in pairs}


def expected(x: list[int], y: list[int], bits: int, distance: int) -> set[tuple[int, int]]:
    near = distances(x, y, bits) <= distance
    assert 0 < near.sum() < near.size
    return set(zip(*(index.tolist() for index in np.nonzero(near))))


@pytest.mark.usefixtures("_kind")
@crossed(bits=BITS, part=[0, 1 / 8, 1 / 3, 1 / 2])
def test_all_pairs_of_one_collection_and_of_two(bits: int, part: float) -> None:
    distance = int(bits * part)
    x = values(600 if part < 1 / 3 else 150, bits, distance)
    rows, cut = vectors_of(x, bits), len(x) // 3
    pairs = found(near_pairs(rows, None, bits, distance))
    assert all(a != b for a, b in pairs)
    near = expected(x, x, bits, distance)
    assert either_way(pairs) == {(a, b) for a, b in near if a < b}
    both = found(near_pairs(rows[:cut], rows[cut:], bits, distance))
    assert both == expected(x[:cut], x[cut:], bits, distance)


@pytest.mark.usefixtures("_kind")
@crossed(number=[0, 1, 2, 3, 7, 24], distance=[6, 0, 3])
def test_any_number_of_blocks_and_of_turns(
    number: int, distance: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_bits, "cheapest", lambda *_: number)
    bits = 12 if number == 1 else 24
    x = [value & (1 << bits) - 1 for value in values(150, 32, distance)]
    rows = vectors_of(x, bits)
    near = {(a, b) for a, b in expected(x, x, bits, distance) if a < b}
    across = expected(x[:50], x[50:], bits, distance)
    for turns in (1, 3):
        some, both = set(), set()
        for turn in range(turns):
            more = either_way(found(near_pairs(rows, None, bits, distance, turn, turns)))
            across_more = found(near_pairs(rows[:50], rows[50:], bits, distance, turn, turns))
            assert some.isdisjoint(more)
            assert both.isdisjoint(across_more)
            some, both = some | more, both | across_more
        assert some == near
        assert both == across


@pytest.mark.usefixtures("_kind")
def test_a_pair_that_an_earlier_part_leaves_out_is_found_in_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two vectors with an equal first block may differ too much in the part around it."""
    monkeypatch.setattr(near_bits, "cheapest", lambda *_: 16)  # blocks of 8 bits, parts of 64
    spread = sum(1 << 64 + 8 * block for block in range(7))  # 7 bits in the second part
    apart = 0b111111111 << 20 | spread  # and 9 of the 8 that the first part may have
    rows = vectors_of([5, 5 ^ apart, 5 ^ apart ^ 1 << 127], 128)
    assert found(near_pairs(rows, None, 128, 16)) == {(0, 1), (1, 2)}


@pytest.mark.first_case
@pytest.mark.usefixtures("_kind")
@pytest.mark.parametrize("bits", [64, 256])
def test_thousands_of_vectors(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    distance, number = {64: (3, 4), 256: (31, 16)}[bits]
    monkeypatch.setattr(near_bits, "cheapest", lambda *_: number)
    x = values(5000, bits, distance)
    near = expected(x, x, bits, distance)
    pairs = found(near_pairs(vectors_of(x, bits), None, bits, distance))
    assert either_way(pairs) == {(a, b) for a, b in near if a < b}


@pytest.mark.usefixtures("_kind")
def test_more_pairs_than_fit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_bits, "PAIRS_AT_ONCE", 50)
    rows = vectors_of([5] * 40 + [(1 << 64) - 1], 64)
    parts = [*near_pairs(rows, None, 64, 3)]
    assert len(found(parts)) == 40 * 39 // 2
    assert max(len(left) for left, _ in parts) <= 50


@pytest.mark.usefixtures("_kind")
def test_no_vectors_and_one() -> None:
    none, one = np.empty((0, 4), np.uint64), np.ones((1, 4), np.uint64)
    for x, y in [(none, None), (one, None), (none, one), (one, none), (none, none)]:
        for turns in (1, 3):
            parts = [near_pairs(x, y, 256, 31, turn, turns) for turn in range(turns)]
            assert not any(found(part) for part in parts)
    assert found(near_pairs(one, one, 256, 31)) == {(0, 0)}


@given(st.integers(0, 12), st.integers(0, 12))
def test_flips(width: int, most: int) -> None:
    numbers = [*flips(width, most)]
    assert len(numbers) == len(set(numbers))
    assert set(numbers) == {n for n in range(1 << width) if hamming(n, 0) <= most}


@given(st.integers(0, (1 << 192) - 1), st.integers(0, 191), st.integers(1, 63))
def test_bits_of_a_block(value: int, start: int, width: int) -> None:
    block = range(start, min(192, start + width))
    (bits,) = bits_in(vectors_of([value], 192), block).tolist()
    assert bits == value >> start & (1 << len(block)) - 1


def test_ranges_of_the_same_rows_come_once() -> None:
    x = Sorted.by(vectors_of([0, 1, 1, 3, 2, 0], 32), range(32), range(2))
    ranges = [tuple(row) for some in x.beside(x, 2, 1) for row in some.tolist()]
    assert len(ranges) == len(set(ranges))
    pairs = [((a, b), (c, d)) for a, b, c, d in ranges]
    assert not [pair for pair in pairs if pair[0] != pair[1] and pair[::-1] in pairs]
    assert len(pairs) == 4 + 4  # each value with itself, and the sides of a square


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("n", [0, 1, 1000, 10**6, 10**8])
def test_blocks_have_tables_of_bounded_size(bits: int, n: int) -> None:
    for distance in {0, 1, bits // 8, bits // 2}:
        for number in (cheapest(bits, distance, n, None), cheapest(bits, distance, n, n)):
            assert 0 <= number <= bits
            assert number == 0 or -(-bits // number) <= near_bits.MAX_BLOCK_BITS


# Records are near if the first vector of one is near any vector of the other.


def rows(numbers: list[list[int]]) -> near_bits.Rows:
    vectors = np.array([[value] for some in numbers for value in some], np.uint64)
    return vectors.reshape(-1, 1), np.array([len(some) for some in numbers], np.int64)


def drawn(count: int, variants: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    bases = rng.integers(0, 1 << 64, 20, np.uint64, endpoint=False).tolist()
    records = []
    for _ in range(count):
        flips = [
            sum(
                1 << int(bit) for bit in rng.choice(64, rng.choice([0, 0, 2, 5, 11]), replace=False)
            )
            for _ in range(rng.integers(1, variants + 1))
        ]
        records.append([bases[rng.integers(20)] ^ flip for flip in flips])
    return records


def near(x: list[int], y: list[int], distance: int) -> bool:
    pairs = [(x[0], b) for b in y] + [(a, y[0]) for a in x]
    return min(bin(a ^ b).count("1") for a, b in pairs) <= distance


def once(pairs: Iterator[near_bits.Pairs]) -> list[tuple[int, int]]:
    left, right = each_once(pairs)
    return list(zip(left.tolist(), right.tolist()))


@pytest.mark.parametrize("room", [1, 1 << 16])
@pytest.mark.parametrize("variants", [1, 4])
@pytest.mark.parametrize("distance", [0, 6, 30])
def test_every_two(distance: int, variants: int, room: int, monkeypatch) -> None:
    """`near_records` finds what comparing every two records finds, whatever PAIRS_AT_ONCE is."""
    monkeypatch.setattr(near_bits, "PAIRS_AT_ONCE", room)
    x, y = drawn(60, variants, 1), drawn(40, variants, 1)
    of_one = [
        (i, j) for i in range(len(x)) for j in range(i + 1, len(x)) if near(x[i], x[j], distance)
    ]
    of_two = [(i, j) for i in range(60) for j in range(40) if near(x[i], y[j], distance)]
    assert 0 < len(of_one) < 60 * 59 // 2
    assert 0 < len(of_two) < 60 * 40
    assert once(near_records(rows(x), None, 64, distance)) == of_one
    assert once(near_records(rows(x), rows(y), 64, distance)) == of_two


def test_nothing() -> None:
    none, some = rows([]), rows([[1], [1, 2]])
    for x, y in ((none, None), (none, some), (some, none)):
        assert once(near_records(x, y, 64, 3)) == []
