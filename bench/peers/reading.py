"""The file as the peers want it: sets in flat arrays, or the text of each record."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged

BLOCK_BYTES = 1 << 21


def read_sets(path: str) -> Batch:
    """All records of a well-formed file."""
    ids: list[bytes] = []
    values, sizes = [np.empty(0, np.uint64)], [np.zeros(1, np.int64)]
    for block in _blocks(path):
        batch, bad = parse_shingle_lines(block)
        if bad:
            raise SystemExit(f"{path}: {bad[0].reason}: {bad[0].text[:50]!r}")
        ids += batch.ids
        values.append(batch.sets.values)
        sizes.append(batch.sets.sizes)
    return Batch(ids, Ragged(np.concatenate(values), np.cumsum(np.concatenate(sizes))))


def read_texts(path: str) -> Iterator[tuple[bytes, str]]:
    """(id, what stands behind it: the shingles as words), for peers that tokenise."""
    with open(path, "rb") as file:
        for line in file:
            id_, text = line.split(None, 1)
            yield id_, text.rstrip().decode("ascii")


def _blocks(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block + file.readline() + b"\n"  # blank lines are no records
