"""Two records are near if the first vector of one is near any vector of the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from neardup.joins import near_bits
from neardup.joins.near_bits import each_once, near_records

BITS = 64


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
                1 << int(bit)
                for bit in rng.choice(BITS, rng.choice([0, 0, 2, 5, 11]), replace=False)
            )
            for _ in range(rng.integers(1, variants + 1))
        ]
        records.append([bases[rng.integers(20)] ^ flip for flip in flips])
    return records


def near(x: list[int], y: list[int], distance: int) -> bool:
    pairs = [(x[0], b) for b in y] + [(a, y[0]) for a in x]
    return min(bin(a ^ b).count("1") for a, b in pairs) <= distance


def found(pairs: Iterator[near_bits.Pairs]) -> list[tuple[int, int]]:
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
    assert found(near_records(rows(x), None, BITS, distance)) == of_one
    assert found(near_records(rows(x), rows(y), BITS, distance)) == of_two


def test_nothing() -> None:
    none, some = rows([]), rows([[1], [1, 2]])
    for x, y in ((none, None), (none, some), (some, none)):
        assert found(near_records(x, y, BITS, 3)) == []
