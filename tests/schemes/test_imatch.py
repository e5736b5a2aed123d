"""I-Match keeps the tokens of its idf band, and records meet by these tokens alone."""

from hashlib import sha1
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.lines.keyed_lines import HASH_BITS
from neardup.runtime.program import UsageError
from neardup.schemes.chosen_tokens import IMatch
from neardup.sets.ragged import Ragged, shared
from neardup.sets.token_counts import TokenCounts
from tests.schemes.test_schemes import PAIRS, interval
from tests.support.drawn import COUNTS, job, pairs_in, shingle_sets

HASH = (1 << HASH_BITS) - 1


def counts_of(records, frequencies):
    """Return the counts of tokens 0, 1, 2 … with these frequencies."""
    tokens = np.arange(len(frequencies), dtype=np.uint64)
    return TokenCounts(np.array([1]), np.array([records]), tokens, np.array(frequencies))


def naive_key(x, counts, low, high):
    """Return the key by its definition, or None if no token is kept."""

    def share(token):
        frequency = int(counts.of(np.array([token], np.uint64))[0])
        return log(counts.records / frequency) / log(counts.records)

    kept = [token for token in sorted(x) if low - 1e-9 <= share(token) <= high + 1e-9]
    data = b"".join(token.to_bytes(8, "little") for token in kept)
    return int.from_bytes(sha1(data).digest()[:5], "big") if kept else None


@given(st.lists(shingle_sets.filter(bool), min_size=1, max_size=6))
def test_a_key_is_the_digest_of_what_is_kept(sets):
    keys = IMatch(COUNTS, 0.5, 0.7).keys(Ragged.from_rows([list(x) for x in sets]))
    for i, x in enumerate(sets):
        key = naive_key(x, COUNTS, 0.5, 0.7)
        assert keys.row(i).tolist() == [key] * (key is not None)


def test_both_ends_of_the_band_are_inside():
    """An idf band includes both its ends; a token in 10 of 100 records has the idf 1/2."""
    counts = counts_of(100, [100, 50, 11, 10, 9, 2])
    tokens = [0, 1, 2, 3, 4, 5, 99]
    kept = {(0.5, 0.9): [3, 4, 5], (0.1, 0.5): [1, 2, 3], (0.0, 1.0): tokens, (0.6, 1.0): [5, 99]}
    for (low, high), expected in kept.items():
        keys = IMatch(counts, low, high).keys(Ragged.from_rows([[token] for token in tokens]))
        assert [tokens[i] for i in np.flatnonzero(keys.sizes)] == expected


def test_records_that_keep_nothing_have_no_key():
    counts = counts_of(100, [100, 10, 10])
    scheme = IMatch(counts, 0.1, 0.9, lexicons=20)
    sizes = scheme.keys(Ragged.from_rows([[0, 77], [1], [1, 2], [88]])).sizes.tolist()
    assert sizes[0] == sizes[3] == 0
    assert 1 < sizes[1] < sizes[2] < 20  # some of the lexicons drop token 1, or both


def test_records_that_keep_the_same_share_every_key():
    counts = counts_of(100, [100, 10, 10, 10])
    scheme = IMatch(counts, 0.1, 0.9, lexicons=5)
    keys = scheme.keys(Ragged.from_rows([[0, 1, 2], [1, 2, 99], [1, 2, 3]]))
    assert keys.row(0).tolist() == keys.row(1).tolist()
    assert scheme.recall(1) == 1
    assert scheme.recall(0.99) == 0


def test_lexicon_0_drops_nothing_and_each_other_one_a_third():
    counts = counts_of(10**4, [100] * 3000)
    keys = IMatch(counts, 0.1, 0.9, lexicons=4).keys(Ragged.from_rows([[i] for i in range(3000)]))
    have = np.bincount((keys.values >> np.uint64(HASH_BITS)).astype(np.int64))
    assert have[0] == 3000
    assert (abs(have[1:] - 2000) < 6 * (3000 * 2 / 9) ** 0.5).all()
    assert len({*keys.sizes.tolist()}) == 4  # the lexicons are not the same


@pytest.mark.parametrize(("differ", "lexicons"), [(1, 2), (1, 6), (2, 6)])
def test_records_meet_where_all_that_differs_is_dropped(differ, lexicons):
    counts = counts_of(10**4, [100] * (PAIRS * 10))
    sets = [[10 * i + j for j in range(6)] for i in range(PAIRS)]
    rows = [x + more for x in sets for more in ([], [x[-1] + 1 + d for d in range(differ)])]
    left = np.arange(0, 2 * PAIRS, 2)
    scheme = IMatch(counts, 0.1, 0.9, lexicons)
    low, high = interval(scheme, (Ragged.from_rows(rows), left, left + 1))
    for more in (-1, 0, 1):
        recall = 1 - (1 - 3.0**-differ) ** (lexicons - 1 + more)
        assert (low <= recall <= high) == (more == 0)


@pytest.mark.slow
def test_a_band_may_be_empty_where_the_next_one_is_not():
    """A pair that meets in one lexicon is printed, even if an earlier one drops all its tokens."""
    counts = counts_of(100, [100, 10, 10])
    for seed in range(30):
        scheme = IMatch(counts, 0.1, 0.9, 12, seed)
        sets = Ragged.from_rows([[1], [1, 2]])
        met = shared(scheme.keys(sets), np.array([0]), np.array([1])).sizes[0]
        flags = f"--scheme=imatch --lexicons=12 --measure=dice --threshold=.5 --seed={seed}"
        records = {b"a": [1], b"b": [1, 2], b"c": [1, 0], b"d": [0], b"e": [1]}
        pairs = pairs_in(job(records, *flags.split(), counts=counts))
        assert {(b"a", b"c"), (b"a", b"e"), (b"c", b"e")} <= set(pairs)
        assert ((b"a", b"b") in pairs) == (met > 0)
        assert len(pairs) == len(set(pairs))


def test_imatch_needs_counts():
    with pytest.raises(UsageError, match="--counts"):
        job({b"a": [1]}, "--scheme=imatch")
