"""SimHash: fingerprints agree with the definition, and all pairs within k bits meet."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.lines.keyed_lines import MAX_BANDS
from neardup.runtime.program import UsageError
from neardup.schemes.bit_keys import SimHash, keys_of, most_blocks
from neardup.sets import hashing as signs_module
from neardup.sets.hashing import mix, random_words, signs
from neardup.sets.ragged import Ragged, shared
from neardup.similarity.measures import NINE_TENTHS
from neardup.similarity.weighted_measures import Idf, TokenWeights
from tests.schemes.test_bit_keys import nested_sets
from tests.support.drawn import COUNTS, job, pairs_in, settings_of
from tests.support.fingerprints import vectors_of

SIZES = [1, 2, 3, 100, 254, 255, 256, 510, 511, 4000]  # a lane holds 255 tokens


def random_sets(sizes, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1 << 63, sum(sizes)).astype(np.uint64)
    return Ragged.from_unsorted(values, np.array(sizes))


def naive_bit(tokens, weights, dimension, seed):
    """Return one bit: the sign of the sum, computed token by token."""
    lanes = 8 if weights is None else 4  # heavy tokens take the bits that light ones take
    place = np.uint64(dimension % 64 // lanes + 64 // lanes * (dimension % 64 % lanes))
    draw = random_words(seed, dimension // 64 + 1, stream=3)[-1]
    words = mix(mix(tokens ^ random_words(seed, 1, stream=1)) + draw)
    total = 0
    for i, word in enumerate(words):
        weight = 1 if weights is None else int(weights[i])
        total += weight if int(word >> place) & 1 else -weight
    if total == 0:
        return int(mix(words.min(keepdims=True))[0]) >> dimension % 64 & 1
    return int(total > 0)


@pytest.mark.parametrize("heaviest", [None, 255, 256, 1 << 48])
def test_a_bit_is_the_sign_of_a_sum(heaviest, monkeypatch):
    monkeypatch.setattr(signs_module, "SUMMED_TOKENS", 600)
    sets = random_sets(SIZES)
    rng = np.random.default_rng(1)
    weights = None
    if heaviest:
        weights = rng.integers(1, heaviest + 1, len(sets.values))
        weights[sets.offsets[4] :] = heaviest  # as 255, the most a lane must hold
    words = signs(sets, weights, 7, 0, 192)
    assert words.shape == (len(SIZES), 3)
    for i in range(len(SIZES)):
        some = None if weights is None else weights[sets.offsets[i] : sets.offsets[i + 1]]
        for d in [0, 1, 7, 8, 9, 62, 63, 64, 100, 191]:
            bit = int(words[i, d // 64]) >> d % 64 & 1
            assert bit == naive_bit(sets.row(i), some, d, 7)


@given(st.integers(0, 200), st.integers(0, 130))
def test_some_dimensions_have_the_signs_that_they_have_among_all(low, more):
    sets = random_sets([1, 2, 30])
    every = signs(sets, None, 0, 0, 384)
    some = signs(sets, None, 0, low, low + more)
    for d in range(low // 64 * 64, 64 * (low // 64 + some.shape[1])):
        word = every[:, d // 64] if low <= d < low + more else np.zeros(3, np.uint64)
        column = some[:, d // 64 - low // 64]
        assert (column >> np.uint64(d % 64) & np.uint64(1)).tolist() == (
            word >> np.uint64(d % 64) & np.uint64(1)
        ).tolist()


def test_weights_change_fingerprints():
    sets = Ragged.from_rows([[0, 1, 10, 20, 30]])
    plain, weighted = SimHash(3, 5), SimHash(3, 5, weights=TokenWeights(idf=Idf(COUNTS)))
    assert plain.vectors(sets).tolist() != weighted.vectors(sets).tolist()


def keys_of_prints(scheme, prints):
    """Return the keys of records with these fingerprints (Python ints), one row for each."""
    keys = keys_of(scheme.ways, vectors_of(prints, scheme.bits), 0, MAX_BANDS)
    return keys.values.reshape(len(prints), -1)


@pytest.mark.parametrize(("distance", "max_keys"), [(0, 16), (1, 16), (2, 16), (3, 16), (3, 40)])
def test_all_pairs_within_the_distance_share_a_key(distance, max_keys):
    """All vectors within the distance share a key, for every choice of bits to flip."""
    scheme = SimHash(distance, most_blocks(distance, max_keys, 64))
    flips = [
        sum(1 << bit for bit in some)
        for count in range(distance + 1)
        for some in combinations(range(64), count)
    ]
    origin = int(random_words(distance, 1)[0])
    keys = keys_of_prints(scheme, [origin ^ flip for flip in flips])
    assert len(keys[0]) <= max_keys
    assert (keys == keys_of_prints(scheme, [origin])).any(axis=1).all()


@pytest.mark.parametrize(
    ("bits", "distance", "max_keys"),
    [(32, 4, 16), (33, 2, 16), (64, 15, 16), (64, 40, 41), (100, 7, 64), (512, 20, 300)],
)
def test_so_many_bits_of_any_number_may_differ(bits, distance, max_keys):
    """Vectors at exactly the distance meet, even if each differing bit is in another block."""
    blocks = most_blocks(distance, max_keys, bits)
    scheme = SimHash(distance, blocks, bits=bits)
    rng = np.random.default_rng(bits)
    ends = [bits * i // blocks for i in range(blocks + 1)]
    flips = []
    for _ in range(300):
        some = rng.choice(blocks, distance, replace=False)
        flips.append(sum(1 << int(rng.integers(ends[i], ends[i + 1])) for i in some))
        some = rng.choice(bits, distance, replace=False)
        flips.append(sum(1 << int(bit) for bit in some))
    assert {bin(flip).count("1") for flip in flips} == {distance}
    origin = int.from_bytes(rng.bytes(bits // 8), "little")
    keys = keys_of_prints(scheme, [origin ^ flip for flip in flips])
    assert distance < len(keys[0]) == scheme.key_counts(np.array([1]))[0] <= max_keys
    assert (keys == keys_of_prints(scheme, [origin])).any(axis=1).all()
    assert scheme.recall((bits - distance) / bits) == 1
    far = flips[0] | sum(1 << end for end in ends[:-1])  # a bit of each block
    far_keys = keys_of_prints(scheme, [origin ^ far])
    assert not (far_keys == keys_of_prints(scheme, [origin])).any()


def test_one_bit_more_may_share_no_key():
    scheme = SimHash(3, 5)
    far = [sum(1 << bit for bit in (5, 20, 30, 45)), 0b1111]
    shared = (keys_of_prints(scheme, far) == keys_of_prints(scheme, [0])).any(axis=1)
    assert shared.tolist() == [False, True]
    assert [scheme.recall((64 - bits) / 64) for bits in (0, 3, 4, 64)] == [1, 1, 0, 0]


def test_the_keys_of_the_default_stay():
    scheme = settings_of("--scheme=simhash").scheme
    assert scheme == SimHash(3, 5)
    keys = scheme.keys(Ragged.from_rows([range(100)])).row(0).tolist()
    assert [f"{key:013x}" for key in keys[:2] + keys[-1:]] == [
        "0005a950d4442",
        "001e3240b3137",
        "0090eabab7f62",
    ]


def test_the_hamming_measure_counts_bits():
    rng = np.random.default_rng(5)
    base = rng.integers(0, 1 << 40, 300)
    sets = Ragged.from_rows([base[: 300 - n].tolist() for n in range(40)])
    scheme = SimHash(3, 5)
    prints = scheme.vectors(sets)[:, 0].tolist()
    left, right = np.triu_indices(len(sets), 1)
    bits = [bin(prints[i] ^ prints[j]).count("1") for i, j in zip(left, right)]
    assert {2, 3, 4} <= set(bits)  # at the bound, and beside it
    found = scheme.measure("hamming", NINE_TENTHS).verified(sets, left, right)
    expected = [(i, j, 64 - d) for i, j, d in zip(left, right, bits) if d <= 3]
    assert list(zip(found.left, found.right, found.part)) == expected
    assert set(found.whole.tolist()) == {64}


@pytest.mark.parametrize(("distance", "bits"), [(0, 64), (3, 64), (6, 64), (12, 200), (9, 32)])
def test_the_job_finds_every_pair_within_the_distance(distance, bits):
    records = nested_sets(distance, 60, 12)
    ids = sorted(records)
    sets = Ragged.from_rows([sorted(records[id_]) for id_ in ids])
    words = SimHash(3, 5, bits=bits).vectors(sets).tolist()
    prints = [sum(word << 64 * i for i, word in enumerate(row)) for row in words]
    assert max(prints) < 1 << bits
    differ = {(a, b): bin(x ^ y).count("1") for (a, x), (b, y) in combinations(zip(ids, prints), 2)}
    expected = {pair: d for pair, d in differ.items() if d <= distance}
    assert len(expected) < len(differ)
    assert expected or distance == 0
    lines = job(records, "--scheme=simhash", f"--distance={distance}", f"--bits={bits}")
    assert pairs_in(lines) == sorted(expected)
    for line in lines:
        a, b, similarity = line.split(b"\t")
        assert float(similarity) == pytest.approx(1 - expected[a, b] / bits, abs=6e-7)


def test_blocks_leave_no_more_keys_than_allowed():
    assert settings_of("--scheme=simhash").scheme.blocks == 5
    assert settings_of("--scheme=simhash", "--max-bands=20").scheme.blocks == 6
    assert settings_of("--scheme=simhash", "--distance=63", "--max-bands=64").scheme.blocks == 64
    with pytest.raises(UsageError, match=r"--distance 9 needs 10 keys .* 9 are allowed"):
        settings_of("--scheme=simhash", "--distance=9", "--max-bands=9")


@pytest.mark.parametrize(
    "flags",
    ["--distance=9", "--distance=15", "--distance=60 --max-bands=61", "--bits=32 --distance=5"],
)
def test_what_makes_dissimilar_records_meet_is_said_with_what_would_not(flags):
    scheme = settings_of("--scheme=simhash", *flags.split()).scheme
    (line,) = scheme.cost()
    assert "a smaller --distance or a larger --max-bands" in line
    sets = Ragged.from_rows(
        np.random.default_rng(1).integers(0, 10**9, (400, 60)).tolist()  # nothing in common
    )
    left, right = np.triu_indices(len(sets), 1)
    met = (shared(scheme.keys(sets), left, right).sizes > 0).mean()
    told = float(line.split("probability ")[1].split(";")[0])
    assert told / 2 < met <= told + 1e-6  # they are told of as dissimilar records of some likeness


@pytest.mark.parametrize("flags", ["--distance=8", "--bits=512 --distance=40 --max-bands=41"])
def test_where_dissimilar_records_seldom_meet_nothing_is_said(flags):
    assert settings_of("--scheme=simhash", *flags.split()).scheme.cost() == []
