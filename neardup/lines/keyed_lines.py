r"""Keyed lines, from mapper to reducer: parse beside format.

    KEY TAB SIZE TAB ID TAB SHINGLES

KEY is `band:hash` in hexadecimal, fixed in width and one field, since every engine groups on the
first field.  SIZE (eight digits) lets a sort bring a bucket's records in order of size.
SHINGLES are as `neardup.lines.set_text` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neardup.lines.keys import HASH_BITS, KEY_WIDTH, format_keys
from neardup.lines.set_text import (
    encode_sets,
)
from neardup.process.errors import WireError, shown
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged, chunks

OUTPUT_BYTES = 8 << 20


def format_keyed_lines(
    batch: Batch, keys: Ragged, partitions: int = 1
) -> Iterator[tuple[int, bytes]]:
    r"""(partition, keyed lines) for all keys of a batch, some mebibytes at a time.

    A key's partition follows from its hash alone, so every mapper sends a key the same way.  The
    lines of a partition come in order of keys, which saves the engine's sort a third of its work.

    >>> batch = Batch([b"v1"], Ragged.from_rows([[3, 7, 1007]]))
    >>> list(format_keyed_lines(batch, Ragged.from_rows([[255, (2 << 40) + 1]])))
    [(0, b'000:00000000ff\t00000003\tv1\t34o8\n002:0000000001\t00000003\tv1\t34o8\n')]
    """
    tails = [
        b"\t%08d\t%b\t%b\n" % record
        for record in zip(batch.sets.sizes.tolist(), batch.ids, encode_sets(batch.sets))
    ]
    names = format_keys(keys.values)
    owner = np.repeat(np.arange(len(keys)), keys.sizes)
    partition = keys.values % np.uint64(1 << HASH_BITS) % np.uint64(partitions)
    weights = np.array([KEY_WIDTH + len(tail) for tail in tails], dtype=np.int64)
    for number in range(partitions):
        mine = np.flatnonzero(partition == number)
        mine = mine[np.argsort(keys.values[mine], kind="stable")]
        for low, high in chunks(weights[owner[mine]], OUTPUT_BYTES):
            some = mine[low:high]
            parts = [b""] * (2 * len(some))
            parts[0::2] = names[some].tolist()
            parts[1::2] = [tails[i] for i in owner[some].tolist()]
            yield number, b"".join(parts)


def parse_keyed_lines(lines: list[bytes]) -> list[list[bytes]]:
    """[KEY, SIZE, ID, SHINGLES] of each line (without its line end)."""
    fields = [line.split(b"\t") for line in lines]
    if any(len(parts) != 4 for parts in fields):
        wrong = next(line for line in lines if line.count(b"\t") != 3)
        raise WireError(f"expected KEY SIZE ID SHINGLES, got {shown(wrong)}")
    return fields
