"""Generated fingerprints, their lines, and their pairs by comparing every two records.

A record is an id and its fingerprints as whole numbers, its own first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from neardup.reading.fingerprint_lines import fingerprint_lines, fingerprint_parser
from neardup.sets.ragged import Ragged
from tests.support.oracle import Pair


class Print(NamedTuple):
    """A record: its id and its fingerprints as integers; those after the first are variants."""

    id: bytes
    values: tuple[int, ...]


def hexadecimal(value: int, bits: int) -> bytes:
    """Return a fingerprint as hexadecimal digits.

    >>> hexadecimal(0b1011, 32)
    b'0000000b'
    """
    return b"%0*x" % (bits // 4, value)


def line_of(record: Print, bits: int) -> bytes:
    return b" ".join([record.id, *(hexadecimal(x, bits) for x in record.values)]) + b"\n"


def lines_of(records: Iterable[Print], bits: int) -> bytes:
    return b"".join(line_of(record, bits) for record in records)


def vectors_of(values: Sequence[int], bits: int) -> np.ndarray:
    """Return bit vectors as rows of words, uint64 (n, W), the lowest bits first."""
    rows = [[value >> low & (1 << 64) - 1 for low in range(0, bits, 64)] for value in values]
    return np.array(rows, np.uint64).reshape(len(rows), -1)


def sets_of(records: Sequence[Print], bits: int) -> Ragged:
    """Return the tokens read from the lines of the records."""
    batch, bad = fingerprint_parser(fingerprint_lines, bits)(lines_of(records, bits))
    assert not bad
    return batch.sets


def signs_of(values: Sequence[int], bits: int) -> np.ndarray:
    """Return the bits of fingerprints as signs, float32 (n, bits): 1 if a bit is set, else -1."""
    packed = b"".join(value.to_bytes(-(-bits // 8), "big") for value in values)
    shape = len(values), -(-bits // 8)
    unpacked = np.unpackbits(np.frombuffer(packed, np.uint8).reshape(shape), axis=1)
    return unpacked[:, unpacked.shape[1] - bits :].astype(np.float32) * 2 - 1


def distances(x: Sequence[int], y: Sequence[int], bits: int) -> np.ndarray:
    """Return the Hamming distances of all x and y, int64 (len(x), len(y)).

    The product of two rows of signs is the number of equal bits less that of different ones.

    >>> distances([0b1011, 0], [0b0010], 32).tolist()
    [[2], [1]]
    """
    return ((bits - signs_of(x, bits) @ signs_of(y, bits).T) / 2).astype(np.int64)


def record_distances(records: Sequence[Print], bits: int) -> np.ndarray:
    """Return the distance of every two records, int64 (n, n).

    It is that from the own fingerprint of one to the nearest of the other, whichever way is
    shorter."""
    own = [record.values[0] for record in records]
    best = distances(own, own, bits)
    for variant in range(1, max((len(record.values) for record in records), default=1)):
        having = [i for i, record in enumerate(records) if len(record.values) > variant]
        values = [records[i].values[variant] for i in having]
        best[:, having] = np.minimum(best[:, having], distances(own, values, bits))
    return np.minimum(best, best.T)


def similarities(records: Sequence[Print], bits: int, distance: int) -> dict[Pair, Fraction]:
    """Return the pairs of ids within the distance, each with its highest share of equal bits."""
    apart = record_distances(records, bits)
    best: dict[Pair, Fraction] = {}
    for i, j in zip(*np.nonzero(np.triu(apart <= distance, 1))):
        a, b = sorted((records[i].id, records[j].id))
        if a != b:
            share = Fraction(int(bits - apart[i, j]), bits)
            best[a, b] = max(share, best.get((a, b), share))
    return best


def shown(similarity: Fraction) -> bytes:
    """Return a similarity as it is printed, in six decimals."""
    return b"%.6f" % (round(similarity * 10**6) / 10**6)


def pair_lines(records: Sequence[Print], bits: int, distance: int) -> bytes:
    """Return the lines expected of a job with --exact; there must be pairs and non-pairs."""
    found = similarities(records, bits, distance)
    ids = len({record.id for record in records})
    assert 0 < len(found) < ids * (ids - 1) // 2
    lines = [b"%b\t%b\t%b\n" % (*pair, shown(found[pair])) for pair in found]
    return b"".join(sorted(lines))


def drawn_prints(
    count: int, bits: int, distance: int, seed: int = 0, variants: int = 1, near: float = 0.5
) -> list[Print]:
    """Return `count` records in any order with at most `variants` fingerprints each.

    A share `near` of the fingerprints are near-copies of others at up to 2·distance + 2 bits, with
    extra ones exactly at `distance` and one bit farther; some are copies.
    """
    rng = np.random.default_rng(seed)
    bases: list[int] = []

    def draw() -> int:
        if not bases or rng.random() >= near:
            bases.append(int.from_bytes(rng.bytes(bits // 4), "big") >> bits)
            return bases[-1]
        some = bases[int(rng.integers(len(bases)))]
        flips = [0, distance, distance + 1, int(rng.integers(2 * distance + 3))]
        number = min(bits, flips[int(rng.integers(len(flips)))])
        value = some ^ sum(1 << int(bit) for bit in rng.choice(bits, number, replace=False))
        if rng.random() < 0.3:
            bases.append(value)
        return value

    records = []
    for i in range(count):
        number = 1 if variants == 1 else int(rng.integers(1, variants + 1))
        records.append(Print(b"p%d" % i, tuple(draw() for _ in range(number))))
    return [records[i] for i in rng.permutation(count)]
