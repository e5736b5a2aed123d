"""Operations on bits in rows of 64-bit words are correct."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.sets import bit_vectors
from neardup.sets.bit_vectors import bits_apart, bits_in, popcount

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
    assert older.tolist() == popcount(array).tolist()
    assert older.dtype == popcount(array).dtype == np.int64
