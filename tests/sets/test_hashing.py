"""Hashes are SplitMix64's, with published values, and a row of hashes is combined into one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.sets.hashing import WORD, combine, mix, random_words
from tests.support.drawn import TOP

words = st.integers(0, TOP)


def unmix(value):
    """Return the number that `mix` maps to this value."""
    for shift, factor in (31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1):
        original = value
        for _ in range(64 // shift):
            original = value ^ original >> shift
        value = original * pow(factor, -1, WORD) % WORD
    return value


@given(st.lists(words, min_size=1))
def test_mix_can_be_undone_so_no_two_values_meet(values):
    mixed = mix(np.array(values, dtype=np.uint64)).tolist()
    assert list(map(unmix, mixed)) == values


def test_mix_leaves_its_argument_alone():
    values = np.arange(5, dtype=np.uint64)
    mix(values)
    assert values.tolist() == [0, 1, 2, 3, 4]


def test_consecutive_values_flip_half_of_the_bits():
    mixed = mix(np.arange(4096, dtype=np.uint64))
    flipped = [bin(bits).count("1") for bits in (mixed[1:] ^ mixed[:-1]).tolist()]
    assert 31 < np.mean(flipped) < 33


def test_random_words_are_the_published_ones():
    first = [16294208416658607535, 7960286522194355700, 487617019471545679]
    assert random_words(0, 3).tolist() == first
    assert random_words(1234567, 2).tolist() == [6457827717110365317, 3203168211198807973]


@given(words, st.integers(0, 5), st.integers(0, 30))
def test_fewer_random_words_are_the_first_of_more(seed, stream, count):
    assert random_words(seed, 30, stream)[:count].tolist() == (
        random_words(seed, count, stream).tolist()
    )


def test_seeds_and_streams_share_no_words():
    drawn = [random_words(s, 100, k) for s in (0, 1, 2, TOP) for k in (0, 1, 2)]
    assert len(np.unique(drawn)) == 1200


def combined(row, seed=0):
    return int(combine(np.array([row], dtype=np.uint64).T, seed)[0])


@given(st.lists(words, min_size=1, max_size=5), st.lists(words, min_size=1, max_size=5))
def test_rows_combine_to_the_same_hash_only_if_they_are_equal(one, other):
    assert (combined(one) == combined(other)) == (one == other)


def test_order_and_seed_of_a_combination_count():
    assert combined([1, 2]) != combined([2, 1])
    assert combined([1, 2], seed=0) != combined([1, 2], seed=1)


def test_rows_are_combined_independently_of_each_other():
    rows = np.arange(12, dtype=np.uint64).reshape(4, 3)
    assert combine(rows.T, 7).tolist() == [combined(row, 7) for row in rows.tolist()]
