"""Vectors compared by equal bits: their keys keep the promise, and the masks are well chosen.

The intervals are exact, as in test_schemes.py: α = 1e-9, and the seeds are fixed.
"""

from fractions import Fraction
from itertools import combinations
from math import acos, comb, pi

import numpy as np
import pytest

from neardup.lines.keyed_lines import MAX_BANDS
from neardup.runtime.program import UsageError
from neardup.schemes.bit_keys import SELDOM, Blocks, Drawn, agreement, keys_of
from neardup.schemes.projection import AgreeingBits
from neardup.sets.ragged import Ragged
from neardup.similarity.intervals import clopper_pearson
from neardup.similarity.measures import Threshold
from tests.schemes.test_schemes import ALPHA, pairs_of_similarity
from tests.support.drawn import COUNTS, job, settings_of
from tests.support.fingerprints import vectors_of

FLAGS = ("--scheme=projection", "--measure=agreement")


def scheme_of(*flags: str) -> AgreeingBits:
    scheme = settings_of(*FLAGS, *flags).scheme
    assert isinstance(scheme, AgreeingBits)
    return scheme


def exact_recall(bits: int, equal: int, bands: int, rows: int) -> Fraction:
    return 1 - (1 - Fraction(comb(equal, rows), comb(bits, rows))) ** bands


# Masks.


@pytest.mark.parametrize(("bits", "width"), [(32, 5), (64, 64), (100, 30), (384, 24)])
def test_a_mask_is_of_so_many_bits_and_each_bit_is_as_likely(bits, width):
    masks = Drawn(bits, 4000, width, seed=bits).masks
    rows = [sum(int(word) << 64 * i for i, word in enumerate(mask)) for mask in masks]
    assert {bin(row).count("1") for row in rows} == {width}
    for bit in range(0, bits, 7):
        low, high = clopper_pearson(sum(row >> bit & 1 for row in rows), 4000, ALPHA)
        assert low <= width / bits <= high
    assert (Drawn(bits, 7, width, seed=bits).masks == masks[:7]).all()
    assert bits == width or (Drawn(bits, 7, width, seed=1).masks != masks[:7]).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bits", "differ", "bands", "rows"), [(64, 6, 3, 12), (100, 10, 4, 16), (32, 14, 10, 3)]
)
def test_vectors_meet_as_often_as_the_hypergeometric_says(bits, differ, bands, rows):
    trials, met = 3000, 0
    rng = np.random.default_rng(bits)
    for seed in range(trials):
        x = int.from_bytes(rng.bytes(bits // 8), "little")
        places = range(differ) if seed % 2 else rng.choice(bits, differ, replace=False).tolist()
        both = vectors_of([x, x ^ sum(1 << place for place in places)], bits)
        keys = keys_of(Drawn(bits, bands, rows, seed), both, 0, MAX_BANDS)
        met += len({*keys.row(0).tolist()} & {*keys.row(1).tolist()}) > 0
    low, high = clopper_pearson(met, trials, ALPHA)
    for more in (-2, 0, 2):
        exact = float(exact_recall(bits, bits - differ, bands, rows + more))
        assert (low <= exact <= high) == (more == 0)
    found = Drawn(bits, bands, rows, 0).recall(bits - differ)
    assert found == pytest.approx(float(exact_recall(bits, bits - differ, bands, rows)))


# The measure.


@pytest.mark.slow
def test_bits_agree_as_often_as_the_angle_says():
    for common in (60, 90):
        sets, left, right = pairs_of_similarity(common, 100, "random")
        left, right = left[:300], right[:300]
        scheme = AgreeingBits(1, Blocks(384, 1, 0), seed=common)
        found = scheme.measure("agreement", Threshold(1, 384)).verified(sets, left, right)
        assert (found.whole == 384).all()
        low, high = clopper_pearson(int(found.part.sum()), 384 * 300, ALPHA)
        cosine = 2 * common / (100 + common)  # sets of equal size
        assert low <= agreement(cosine) == 1 - acos(cosine) / pi <= high


def nested_sets(seed: int, size: int, copies: int) -> dict[bytes, frozenset[int]]:
    """Return copies of four random sets, each copy with one element less than the one before."""
    base = np.random.default_rng(seed).integers(0, 10**6, (4, size)).tolist()
    return {
        b"%d-%02d" % (i, n): frozenset(base[i][n:] + list(range(n // 3)))
        for i in range(4)
        for n in range(copies)
    }


@pytest.mark.parametrize(("bits", "t"), [(384, "31/32"), (100, "0.9"), (64, "0.8"), (33, "1")])
def test_the_job_finds_all_pairs_of_so_many_equal_bits(bits, t):
    records = nested_sets(bits, 100, 14)
    flags = [f"--bits={bits}", f"--threshold={t}"]
    ids = sorted(records)
    words = scheme_of(*flags).vectors(Ragged.from_rows([sorted(records[id_]) for id_ in ids]))
    rows = [sum(int(word) << 64 * i for i, word in enumerate(row)) for row in words]
    lines = []
    for (a, x), (b, y) in combinations(zip(ids, rows), 2):
        share = Fraction(bits - bin(x ^ y).count("1"), bits)
        if share >= Fraction(t):
            lines.append(b"%b\t%b\t%.6f\n" % (a, b, round(share, 6)))
    assert len(ids) * 10 > len(lines) > 1 - (t == "1")  # of 27 times as many as ids
    assert job(records, *FLAGS, *flags) == lines


def test_weights_change_the_vectors():
    sets = Ragged.from_rows([[0, 1, 10, 20, 30]])
    weighted = settings_of(*FLAGS, "--weights=idf", counts=COUNTS).scheme
    assert weighted.vectors(sets).tolist() != scheme_of().vectors(sets).tolist()


# Which keys.


@pytest.mark.parametrize(
    ("flags", "ways"),
    [
        ("--threshold=31/32", Blocks(384, 13, 12)),
        ("--threshold=0.95", Blocks(384, 20, 19)),
        ("--threshold=31/32 --max-bands=91", Blocks(384, 14, 12)),
        ("--threshold=1", Blocks(384, 384, 0)),
        ("--bits=64 --threshold=61/64", Blocks(64, 5, 3)),
        ("", Drawn(384, 118, 24, 0)),
        ("--recall=0.9 --seed=3", Drawn(384, 74, 32, 3)),
        ("--threshold=31/32 --bands=7 --rows=40", Drawn(384, 7, 40, 0)),
        # Where drawn masks would take more keys than are allowed:
        ("--bits=32 --threshold=30/32 --max-bands=3 --recall=0.999999", Blocks(32, 3, 2)),
    ],
)
def test_blocks_where_they_are_long_and_drawn_masks_elsewhere(flags, ways):
    scheme = scheme_of(*flags.split())
    assert scheme.ways == ways
    dissimilar = ways.by_chance(agreement(0.1))
    assert dissimilar < SELDOM or "--max-bands=3" in flags


@pytest.mark.parametrize("t", ["0.5", "0.7", "0.8", "0.9", "0.93"])
@pytest.mark.parametrize("bits", [32, 64, 384, 1024])
def test_the_promise_is_kept_at_the_threshold_and_above(bits, t):
    scheme = scheme_of(f"--bits={bits}", f"--threshold={t}")
    assert scheme.least == -(-bits * Fraction(t) // 1)
    assert scheme.key_counts(np.array([5]))[0] == len(scheme.ways) <= 128
    for equal in range(scheme.least, bits + 1):
        found = scheme.recall(equal / bits)
        assert found >= 0.9999 - 1e-9
        assert found < 1 or equal == bits or isinstance(scheme.ways, Blocks)
        if isinstance(scheme.ways, Drawn):
            exact = exact_recall(bits, equal, scheme.ways.number, scheme.ways.width)
            assert found == pytest.approx(float(exact), abs=1e-12)


def test_the_promise_says_how_many_bits_agree():
    assert scheme_of("--threshold=31/32").promise == (
        "every pair is found whose vectors agree in 372 of 384 bits or more"
    )
    drawn = exact_recall(384, 346, 118, 24)
    promise = scheme_of().promise
    assert promise.startswith("118 bands of 24 of 384 bits find a pair that agrees in 346 with")
    assert 0 <= drawn - Fraction(promise.split()[-1]) < Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--bits=64 --bands=3 --rows=65", "--rows 65 is more than --bits 64"),
        ("--bands=3 --rows=100 --recall=0.9", "--recall asks for 0.9"),
    ],
)
def test_refusals(flags, said):
    with pytest.raises(UsageError, match=said):
        settings_of(*FLAGS, *flags.split())


def test_masks_by_hand_at_which_dissimilar_records_meet_are_said():
    (line,) = scheme_of("--bands=20", "--rows=2").cost()
    assert "dissimilar records collide with probability 0.99" in line
    assert "--recall" in line
    for flags in ("", "--threshold=31/32", "--bands=20 --rows=20"):
        assert scheme_of(*flags.split()).cost() == []
