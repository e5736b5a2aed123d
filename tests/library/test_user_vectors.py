"""Bit vectors as arrays, bytes, hexadecimal texts and integers give the pairs of the definition."""

import re
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import neardup
from tests.support.cases import crossed
from tests.support.programs import RUN_LOCAL, succeed

HAMMING = {"measure": "hamming"}


def drawn(count: int = 300, bits: int = 256, seed: int = 0) -> np.ndarray:
    """Return random vectors; about a third differ from another one in fewer than 40 of 256 bits."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 2, (count, bits), np.uint8)
    for i in range(0, count, 3):
        found[i] = found[rng.integers(count)]
        found[i, rng.choice(bits, rng.integers(40 * bits // 256), replace=False)] ^= 1
    return np.packbits(found, axis=1)


def by_definition(vectors: np.ndarray, distance: int) -> list[tuple[int, int, Fraction]]:
    bits = np.unpackbits(vectors, axis=1).astype(int)
    found = []
    for i, j in combinations(range(len(bits)), 2):
        apart = int((bits[i] != bits[j]).sum())
        if apart <= distance:
            found.append((i, j, 1 - Fraction(apart, bits.shape[1])))
    assert 0 < len(found) < len(bits) ** 2 // 4
    return found


VECTORS = drawn()
KINDS = {
    "array": lambda rows: rows,
    "rows": list,
    "generator of rows": iter,
    "read-only slice": lambda rows: np.repeat(rows, 2, axis=0)[::2],
    "bytes": lambda rows: [row.tobytes() for row in rows],
    "bytearrays": lambda rows: [bytearray(row.tobytes()) for row in rows],
    "hexadecimal": lambda rows: [row.tobytes().hex() for row in rows],
    "upper case": lambda rows: [row.tobytes().hex().upper() for row in rows],
}


@crossed(kind=[*KINDS], asked={"hamming": HAMMING, "scheme": {"scheme": "fingerprints"}})
def test_every_kind_of_vector(kind: str, asked: dict[str, str]) -> None:
    expected = by_definition(VECTORS, 31)
    assert neardup.pairs(KINDS[kind](VECTORS), exact=True, **asked) == expected
    assert neardup.pairs(KINDS[kind](VECTORS), recall=0.999999, **asked) == expected


@pytest.mark.parametrize("distance", [0, 20, 60])
def test_distances(distance: int) -> None:
    rows = np.concatenate((VECTORS, VECTORS[:3]))
    found = neardup.pairs(rows, distance=distance, exact=True, **HAMMING)
    assert found == by_definition(rows, distance)


@pytest.mark.parametrize("bits", [36, 64, 1020])
def test_integers_have_bits(bits: int) -> None:
    bytes_ = drawn(bits=1024, seed=bits)[:, : -(-bits // 8)]
    bytes_[:, 0] &= 0xFF >> -bits % 8
    numbers = [int.from_bytes(row.tobytes(), "big") for row in bytes_]
    numbers[7] = numbers[3] ^ 1
    expected = [
        (i, j)
        for (i, x), (j, y) in combinations(enumerate(numbers), 2)
        if bin(x ^ y).count("1") <= 3
    ]
    found = neardup.pairs(numbers, bits=bits, distance=3, **HAMMING)
    assert [(a, b) for a, b, _ in found] == expected != []
    assert Fraction(bits - 1, bits) in [similarity for _, _, similarity in found]
    if bits == 64:
        assert neardup.pairs(np.array(numbers, np.uint64), bits=64, distance=3, **HAMMING) == found


@pytest.mark.slow
def test_the_answers_of_the_command(tmp_path: Path) -> None:
    """Pairs, clusters and decisions on vectors are the command's, with and without `exact`."""
    ids = [f"v{i * 7 % len(VECTORS):03}" for i in range(len(VECTORS))]
    records = list(zip(ids, VECTORS))
    lines = "".join(f"{id_} {row.tobytes().hex()}\n" for id_, row in records)
    (tmp_path / "prints.txt").write_text(lines)
    for options in ({"exact": True}, {"bands": 3, "rows": 19}):
        flags = [f"--{k}" if v is True else f"--{k}={v}" for k, v in options.items()]
        command = [*RUN_LOCAL, "--input", "fingerprints", *flags, tmp_path / "prints.txt"]

        def answer(output: str, command=command) -> list[str]:
            return succeed([*command, "--output", output], tmp_path).out.decode().splitlines()

        found = neardup.pairs(records, **options, **HAMMING)
        six = [f"{a}\t{b}\t{round(s * 10**6) / 10**6:.6f}" for a, b, s in found]
        assert six == answer("pairs") != []
        clusters = neardup.clusters(records, **options, **HAMMING)
        pairs = [f"{group[0]}\t{id_}" for group in clusters for id_ in group]
        assert sorted(pairs) == sorted(answer("clusters"))
        decided = neardup.deduplicate(records, **options, **HAMMING)
        assert [line.split()[0] for line in answer("kept")] == decided.kept
        gone = sorted(f"{id_}\t{kept}" for id_, kept, _ in decided.removed)
        assert gone == sorted(line.rpartition("\t")[0] for line in answer("removed"))


def test_nothing_and_one() -> None:
    assert neardup.pairs([], **HAMMING) == neardup.clusters(iter([]), **HAMMING) == []
    assert neardup.pairs(np.zeros((0, 32), np.uint8), **HAMMING) == []
    assert neardup.deduplicate([b"abcdefgh"], **HAMMING) == ([0], [])


def test_simhash_is_of_sets() -> None:
    sets = [set(range(100)), set(range(99)), set(range(500, 600))]
    found = neardup.pairs(sets, scheme="simhash", distance=5, **HAMMING)
    assert [(a, b) for a, b, _ in found] == [(0, 1)]


HEX = "0123456789abcdef"
WANTED = "record 0: expected bytes, a row of uint8, a hexadecimal text or an integer, got "
REFUSED = [
    (
        [HEX * 4, HEX * 3 + "0" * 12],
        {},
        "record 1 has 60 hexadecimal digits, and record 0 has 64; use one length",
    ),
    ([bytes(32), bytes(30)], {}, "record 1 has 30 bytes, and record 0 has 32; use one length"),
    (["0" * 16, "0x" + "0" * 14], {}, "record 1: '0x00000000000000' is not hexadecimal"),
    (["é" * 16], {}, f"record 0: '{'é' * 16}' is not hexadecimal"),
    ([HEX, 5], {}, "record 1 is an integer; give the number of bits, such as bits=64"),
    ([5, -1], {"bits": 64}, "record 1: -1 is outside 0 … 2^64-1"),
    ([1 << 64], {"bits": 64}, f"record 0: {1 << 64} is outside 0 … 2^64-1"),
    ([5], {"bits": 33}, "bits 33 is not a multiple of 4, the bits of a hexadecimal digit"),
    ([5], {"bits": 24}, "bits='24' is not an integer from 32 to 1024"),
    (["abc"], {}, "record 0 has 12 bits; expected 32 to 1024"),
    ([""], {}, "record 0 has 0 bits; expected 32 to 1024"),
    ([HEX], {"bits": 128}, "record 0 has 64 bits, but bits=128; leave bits out"),
    (VECTORS, {"bits": 64}, "record 0 has 256 bits, but bits=64; leave bits out"),
    ([{1, 2}], {}, WANTED),
    ([True], {"bits": 64}, WANTED),
    ([None], {}, WANTED),
    (np.unpackbits(VECTORS, axis=1) > 0, {}, "records: expected an array of uint8, got one "),
    (VECTORS.astype(float), {}, "records: expected an array of uint8, got one of float64"),
    (HEX, {}, "records: expected an iterable of records, got one str"),
    ([("a", HEX), HEX], {}, "record 1 is not a tuple (id, record), but record 0 is"),
    ([HEX], {"threshold": 0.9}, "threshold does not apply to fingerprints; use distance"),
    ([HEX], {"distance": 40}, "distance 40 is more than half of 64 bits, the distance of "),
    ([HEX], {"shingle": "word:1"}, "shingle needs texts, but the records are fingerprints"),
    ([HEX], {"weights": "idf"}, "weights does not apply to fingerprints; leave it out"),
    ([HEX], {"scheme": "minhash"}, "scheme minhash compares sets, not fingerprints; leave out sch"),
]


@pytest.mark.parametrize(
    ("records", "options", "message"), REFUSED, ids=lambda value: str(value)[:40]
)
def test_refusals(records, options, message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        neardup.pairs(records, **{**HAMMING, **options})
