"""Estimate how much two files have in common, byte for byte, from a sketch of each.

A copy that a program wrote has other bytes than its original.  Two files that share most of their
bytes, but show something else, are one file in two states: damaged, or changed in a place.

    windows   the 8 bytes from each place in a file; a file has as many as bytes
    sketch    the SIZE smallest hashes of all its windows: of two files, the smallest of both
              together are a sample of all of their windows (Broder, 1997)

Cost: 10 ms for each megabyte.
"""

from __future__ import annotations

import numpy as np

SIZE = 64  # hashes: the share is off by 0.06, standard deviation, at a half
CHOSEN = 64 * SIZE  # windows, of those of a file, that may be among the smallest
FACTOR = np.uint64(0x9E3779B97F4A7C15)
DIGITS = 8
MOST = 64 << 20  # bytes that are read


def sketch_of(path: bytes) -> str:
    """Return the sketch of a file, in hex."""
    data = np.fromfile(path, np.uint8, MOST)
    least = np.uint32(min(CHOSEN / max(len(data), 1), 1.0) * 0xFFFFFFFF)
    found = []
    for start in range(8):
        words = data[start : start + (len(data) - start) // 8 * 8].view("<u8")
        hashes = (words * FACTOR >> np.uint64(32)).astype(np.uint32)
        found.append(hashes[hashes <= least])
    return "".join(f"{hash_:08x}" for hash_ in np.unique(np.concatenate(found))[:SIZE].tolist())


def shared(a: str, b: str) -> float:
    """Return the share of windows that two files have in common, of all that they have, about.

    >>> shared("0000000100000005", "0000000100000007"), shared("", "00000001")
    (0.5, 0.0)
    """
    one, other = ({each[k : k + DIGITS] for k in range(0, len(each), DIGITS)} for each in (a, b))
    sample = sorted(one | other)[: min(len(one), len(other))]
    return len(one.intersection(other, sample)) / max(len(sample), 1)
