"""The scheme `fingerprints` keeps its promise, measures correctly, and refuses wrong options.

The intervals are exact, as in test_schemes.py: α = 1e-9, and the seeds are fixed.
"""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.lines.keyed_lines import HASH_BITS, KEY_BITS, MAX_BANDS
from neardup.runtime.program import UsageError
from neardup.schemes.bit_keys import Blocks, Drawn, Ways, keys_of
from neardup.schemes.fingerprints import Fingerprints, Hamming, NearBlocks, exact_ways
from neardup.sets.ragged import Ragged, shared
from neardup.similarity.intervals import clopper_pearson
from tests.schemes.test_schemes import ALPHA
from tests.support.drawn import mapped, pairs_in, reduced, settings_of
from tests.support.fingerprints import (
    Print,
    distances,
    drawn_prints,
    lines_of,
    pair_lines,
    record_distances,
    sets_of,
    vectors_of,
)

BITS = [32, 36, 40, 64, 256, 1020, 1024]
FLAGS = ("--input=fingerprints",)
# Of every kind of masks, with as many bits in the last word and the last block as there are.
KINDS = {
    "--bits=64 --distance=3": Blocks(64, 4, 3),
    "--bits=36 --distance=0 --exact": Blocks(36, 1, 0),
    "--bits=256": Drawn(256, 114, 19, 0),
    "--bits=1020 --distance=200 --seed=5": Drawn(1020, 124, 12, 5),
    "--bits=256 --exact": NearBlocks(256, 16, 31),
    "--bits=40 --distance=4 --exact": None,
    "--bits=1020 --distance=60 --exact": None,
    "--bits=64 --distance=10 --bands=3 --rows=9": Drawn(64, 3, 9, 0),
}
every_kind = pytest.mark.parametrize("flags", KINDS)


def scheme_of(*flags: str) -> Fingerprints:
    scheme = settings_of(*FLAGS, *flags).scheme
    assert isinstance(scheme, Fingerprints)
    return scheme


def values_of(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << bits) - 1) | st.integers(0, 3) | st.just((1 << bits) - 1)


def records_of(bits: int) -> st.SearchStrategy[list[Print]]:
    some = st.lists(values_of(bits), min_size=1, max_size=3).map(tuple)
    return st.lists(some, min_size=1, max_size=5).map(
        lambda rows: [Print(b"%d" % i, row) for i, row in enumerate(rows)]
    )


# Keys, by what every scheme promises.


@every_kind
def test_the_kind_of_masks(flags: str) -> None:
    ways = scheme_of(*flags.split()).ways
    assert KINDS[flags] in (None, ways)
    masks = [sum(int(word) << 64 * i for i, word in enumerate(mask)) for mask in ways.masks]
    assert len(masks) == len(set(masks)) == len(ways) <= MAX_BANDS
    assert all(0 < mask < 1 << ways.bits for mask in masks)


@pytest.mark.first_case
@every_kind
@settings(max_examples=8)
@given(st.data())
def test_keys_are_ascending_and_those_of_each_record_alone(flags: str, data: st.DataObject) -> None:
    scheme = scheme_of(*flags.split())
    records = data.draw(records_of(scheme.bits))
    sets = sets_of(records, scheme.bits)
    keys, counts = scheme.keys(sets), scheme.key_counts(sets.sizes)
    low = data.draw(st.integers(0, len(scheme.ways)))
    some = scheme.keys(sets, low, low + 3)
    for i, record in enumerate(records):
        row = keys.row(i).tolist()
        assert row == sorted(set(row))
        assert 0 < len(row) <= counts[i] == len(scheme.ways) * len(record.values)
        assert all(key < 1 << KEY_BITS for key in row)
        assert scheme.keys(sets_of([record], scheme.bits)).row(0).tolist() == row
        assert some.row(i).tolist() == [key for key in row if low <= key >> HASH_BITS < low + 3]
        alone = [Print(b"x", (value,)) for value in record.values]
        each = scheme.keys(sets_of(alone, scheme.bits)).values.tolist()
        assert row == sorted(set(each))


@every_kind
def test_a_key_is_the_bits_under_its_mask(flags: str) -> None:
    """Two vectors share a key exactly if all their bits under the key's mask are equal."""
    ways = scheme_of(*flags.split()).ways
    rng = np.random.default_rng(1)
    base = int.from_bytes(rng.bytes(128), "big") >> 1024 - ways.bits
    tops = [1 << bit for bit in range(63, ways.bits, 64)]
    flips = [0, *(a ^ b for a, b in combinations(tops, 2)), *tops]
    flips += [1 << int(bit) for bit in rng.integers(0, ways.bits, 20)]
    keys = keys_of(ways, vectors_of([base ^ flip for flip in flips], ways.bits), 0, MAX_BANDS)
    rows = keys.values.reshape(len(flips), -1)
    assert (rows >> np.uint64(HASH_BITS) == np.arange(len(ways))).all()
    equal = 0
    for band, mask in enumerate(ways.masks):
        under = sum(int(word) << 64 * i for i, word in enumerate(mask))
        expected = [flip & under == 0 for flip in flips]
        assert (rows[:, band] == rows[0, band]).tolist() == expected
        equal += sum(expected)
    assert len(ways) <= equal < len(ways) * len(flips)
    assert equal > len(ways) or len(ways) == 1


# What is promised.


@pytest.mark.first_case
@pytest.mark.parametrize("bits", BITS)
def test_exact_masks_miss_no_pair_at_the_distance(bits: int) -> None:
    rng = np.random.default_rng(bits)
    for distance in sorted({0, 1, 2, 3, bits // 10, bits // 8, bits // 5, bits // 3, bits // 2}):
        ways = exact_ways(bits, distance)
        assert len(ways) <= MAX_BANDS
        assert ways.recall(bits - distance) == 1 > ways.recall(bits - distance - 1)
        flips = [[*range(distance)], [*range(bits - distance, bits)]]
        flips.append([bits * i // max(distance, 1) for i in range(distance)])  # evenly
        flips += [rng.choice(bits, distance, replace=False).tolist() for _ in range(30)]
        x = [sum(1 << int(bit) for bit in some) for some in flips]
        masks = [sum(int(w) << 64 * i for i, w in enumerate(mask)) for mask in ways.masks]
        assert all(any(not flip & mask for mask in masks) for flip in x)
        assert masks[0].bit_length() <= bits


@pytest.mark.parametrize("ways", [NearBlocks(12, 3, 4), NearBlocks(13, 3, 5), Blocks(12, 6, 4)])
def test_of_short_vectors_every_pair_at_the_distance_meets(ways: Ways) -> None:
    """Short vectors at exactly the distance always meet; farther ones may be missed."""
    distance = ways.distance  # type: ignore[attr-defined]
    masks = [int(mask[0]) for mask in ways.masks]
    missed = {}
    for differ in (distance, distance + 1, distance + 4):
        some = [sum(1 << bit for bit in bits) for bits in combinations(range(ways.bits), differ)]
        missed[differ] = sum(all(flip & mask for mask in masks) for flip in some)
    assert missed[distance] == 0
    assert missed[distance + 4] > 0


@pytest.mark.parametrize("ways", [NearBlocks(256, 16, 31), NearBlocks(36, 5, 9), Blocks(64, 5, 3)])
def test_unrelated_vectors_meet_as_often_as_said(ways: Ways) -> None:
    rng = np.random.default_rng(ways.bits)
    trials, met = 20_000, 0
    masks = ways.masks
    full = vectors_of([(1 << ways.bits) - 1], ways.bits)
    for agreement in (0.5, 0.75):
        words = rng.integers(0, 1 << 64, (trials, masks.shape[1]), np.uint64)
        for _ in range(round(-np.log2(1 - agreement)) - 1):
            words &= rng.integers(0, 1 << 64, words.shape, np.uint64)
        words &= full
        met = int(
            sum(
                ((some[:, np.newaxis] & masks == 0).all(axis=2)).any(axis=1).sum()
                for some in np.array_split(words, 100)
            )
        )
        low, high = clopper_pearson(met, trials, ALPHA)
        assert low <= ways.by_chance(agreement) <= high
    assert met > 0


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("part", [0, 1 / 16, 1 / 8, 1 / 4, 1 / 2])
def test_the_promise_is_kept_at_the_distance(bits: int, part: float) -> None:
    distance = int(bits * part)
    scheme = scheme_of(f"--bits={bits}", f"--distance={distance}")
    for differ in range(distance + 1):
        assert scheme.recall((bits - differ) / bits) >= 0.9999 - 1e-9
    if isinstance(scheme.ways, Drawn):
        h = comb(bits - distance, scheme.ways.width) / comb(bits, scheme.ways.width)
        chance = 1 - (1 - h) ** len(scheme.ways)
        assert scheme.recall((bits - distance) / bits) == pytest.approx(chance, abs=1e-12)
        assert scheme.promise.endswith(f"with probability {int(chance * 10**6) / 10**6:.6f}")
        assert f"{len(scheme.ways)} bands of {scheme.ways.width} bits" in scheme.promise
    else:
        assert scheme.promise == (
            f"every pair is found whose fingerprints differ in {distance} of {bits} bits or fewer"
        )


def test_a_distance_in_proportion_to_the_bits() -> None:
    assert [scheme_of(f"--bits={bits}").distance for bits in (32, 64, 256, 1024)] == [3, 7, 31, 124]
    assert scheme_of().bits == 256


def test_what_many_fingerprints_cost_is_said() -> None:
    assert scheme_of().cost() == []
    (line,) = scheme_of("--distance=90").cost()
    assert "--distance 90 of 256 bits: " in line
    assert "1,000,000 unrelated fingerprints" in line


# The measure, and the job.


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("variants", [1, 4])
def test_the_measure_counts_bits_of_the_nearest_variant(bits: int, variants: int) -> None:
    distance = bits // 8
    records = drawn_prints(60, bits, distance, seed=variants, variants=variants, near=0.8)
    left, right = np.triu_indices(len(records), 1)
    swap = np.arange(len(left)) % 2 == 1
    left, right = np.where(swap, right, left), np.where(swap, left, right)
    found = Hamming(bits, distance).verified(sets_of(records, bits), left, right)
    apart = record_distances(records, bits)[left, right]
    near = apart <= distance
    assert 0 < near.sum() < len(near)
    assert found.left.tolist() == left[near].tolist()
    assert found.right.tolist() == right[near].tolist()
    assert found.part.tolist() == (bits - apart[near]).tolist()
    assert (found.whole == bits).all()


def test_two_variants_alone_are_no_pair() -> None:
    """Records are a pair only if one's first fingerprint is close to a fingerprint of the other."""
    a, b, far = 0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x5555AAAA5555AAAA
    records = [Print(b"0", (a, far)), Print(b"1", (b, far)), Print(b"2", (far, b))]
    assert min(distances([a], [b, far], 64).min(), distances([b], [far], 64)[0, 0]) > 3
    sets = sets_of(records, 64)
    for left, right in ([0, 0, 1], [1, 2, 2]), ([1, 2, 2], [0, 0, 1]):
        found = Hamming(64, 3).verified(sets, np.array(left), np.array(right))
        assert [*zip(found.left.tolist(), found.right.tolist())] == [*zip(left, right)][1:]
        assert found.part.tolist() == [64, 64]


@every_kind
@pytest.mark.parametrize("variants", [1, 3])
def test_the_job_prints_once_each_pair_that_shares_a_key(flags: str, variants: int) -> None:
    job, scheme = settings_of(*FLAGS, *flags.split()), scheme_of(*flags.split())
    records = drawn_prints(60, scheme.bits, scheme.distance, seed=7, variants=variants)
    data = lines_of(records, scheme.bits)
    found = reduced(mapped(data, job), job)
    every = pair_lines(records, scheme.bits, scheme.distance).splitlines(keepends=True)
    ids = {record.id: i for i, record in enumerate(records)}
    keys = scheme.keys(sets_of(records, scheme.bits))
    left, right = (np.array([ids[pair[k]] for pair in pairs_in(every)]) for k in (0, 1))
    met = shared(keys, left, right).sizes > 0
    assert sorted(found) == [line for line, meets in zip(every, met) if meets]
    assert len(found) > 0
    assert met.all() or "--bands=3" in flags or "--exact" not in flags
    assert not met.all() or "--bands=3" not in flags


# Options.


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--bits=33", "--bits 33 is not a multiple of 4"),
        ("--bits=28", "--bits: '28' is not an integer from 32 to 1024"),
        ("--bits=1028", "--bits: '1028' is not an integer from 32 to 1024"),
        ("--distance=129", "--distance 129 is more than half of 256 bits"),
        ("--bits=32 --distance=17", "take a smaller one"),
        ("--distance=-1", "--distance: '-1' is not an integer from 0"),
        ("--threshold=0.9", "--threshold does not apply to fingerprints; use --distance"),
        ("--scheme=minhash", "compares sets, not fingerprints; leave out --scheme"),
        ("--scheme=exact --exact", "compares sets, not fingerprints; leave out --scheme"),
        ("--measure=jaccard", "compares sets, not fingerprints; leave out --measure"),
        ("--measure=agreement", "compares sets, not fingerprints; leave out --measure"),
        ("--measure=x", "--measure: 'x' is not one of"),
        (
            "--exact --recall=0.9",
            "--recall has no use with --exact, which finds all pairs; leave it out",
        ),
        ("--exact --bands=3 --rows=4", "--bands has no use with --exact"),
        ("--weights=tf", "--weights does not apply to fingerprints; leave it out"),
        ("--lexicons=3", "--lexicons does not apply to fingerprints; leave it out"),
        ("--shingle=word:2", "--shingle needs texts, but the records are fingerprints"),
        ("--clean=case", "--clean needs texts, but the records are fingerprints"),
        ("--text=a", "--text needs --input jsonl or csv or tsv or parquet"),
        ("--fingerprint=a", "--fingerprint needs --input jsonl or csv or tsv or parquet"),
        ("--verify=sketch", "needs exact pairs, not estimates; leave --verify out"),
        ("--bits=64 --bands=3 --rows=65", "--rows 65 is more than --bits 64"),
    ],
)
def test_refusals(flags: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        settings_of(*FLAGS, *flags.split())
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--scheme=fingerprints", "needs --input fingerprints or, for rows, --fingerprint NAME"),
        ("--distance=3", "--distance needs --scheme simhash or fingerprints"),
        ("--fingerprint=h", "--fingerprint needs --input jsonl"),
        ("--input=csv --fingerprint=h --text=t", "but --text names a field, too"),
        (
            "--input=csv --fingerprint=h, --id=x",
            "--fingerprint: 'h,' has an empty name; write NAME, or NAME",
        ),
        ("--input=csv --fingerprint=2 --id=x", "--id and --fingerprint must both be column"),
    ],
)
def test_refusals_of_other_input(flags: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        settings_of(*flags.split())
    assert said in str(caught.value)


@pytest.mark.parametrize("flags", ["", "--measure=hamming", "--scheme=fingerprints"])
def test_what_may_be_said_and_changes_nothing(flags: str) -> None:
    job = settings_of(*FLAGS, *flags.split())
    assert job.scheme.probe() == scheme_of().probe()
    assert isinstance(job.measure, Hamming)


def test_a_probe_tells_other_masks_apart() -> None:
    probes = [scheme_of(*flags.split()).probe() for flags in KINDS]
    probes += [scheme_of("--seed=1").probe(), scheme_of("--bits=260").probe()]
    assert len(set(probes)) == len(probes)


def test_no_records() -> None:
    scheme = scheme_of()
    none = Ragged.from_rows([])
    assert len(scheme.keys(none).values) == 0
    assert len(scheme.key_counts(none.sizes)) == 0
