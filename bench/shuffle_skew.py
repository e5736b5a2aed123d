"""Simulate how unevenly a shuffle is divided among reducers, from keys that real lines have.

    python3 -m bench.shuffle_skew paths.txt --input text --shingle char:3

`mapper.py` makes the keyed lines of the file (all further options are its own); of those, only keys
that two records share travel on a cluster.  Buckets, the lines of one key, go to a reducer at
random as a whole.  A larger input has either more buckets of the same sizes (other things, each
copied as often), or the same buckets with more lines in each (the same things, copied more often);
life is between the two.  Prints a table: the reducer with most bytes against the mean of all.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator

import numpy as np

from bench.measure import ROOT

LARGE = 10**9
REDUCERS = 16, 128, 1600
HEAVY = 1000  # the largest buckets, drawn one by one; of the others their variance counts
DRAWS = 200


def shared_buckets(lines: Iterable[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return (lines, bytes) of each key that two lines have.

    >>> [each.tolist() for each in shared_buckets([b"k 1\\n", b"l 1\\n", b"k 22\\n"])]
    [[2], [9]]
    """
    keys, sizes = [], []
    for line in lines:
        keys.append(hash(line.split(None, 1)[0]))
        sizes.append(len(line))
    _, bucket, counts = np.unique(np.array(keys), return_inverse=True, return_counts=True)
    shared = counts > 1
    return counts[shared], np.bincount(bucket, sizes).astype(np.int64)[shared]


def unevenness(sizes: np.ndarray, times: float, reducers: int) -> float:
    """Return the bytes of the largest reducer against the mean, of so many times these buckets.

    sizes: bytes, ascending.  The mean of DRAWS drawings.

    >>> unevenness(np.ones(100_000), 1, 2) < 1.01
    True
    >>> round(unevenness(np.array([1.0]), 1, 2), 6)
    2.0
    """
    draw = np.random.default_rng(reducers)
    heavy, light = (sizes[-HEAVY:], sizes[:-HEAVY]) if times == 1 else (sizes[:0], sizes)
    mean = times * light.sum() / reducers
    spread = (times * (light.astype(float) ** 2).sum() * (1 - 1 / reducers) / reducers) ** 0.5
    largest = [
        (
            np.bincount(draw.integers(0, reducers, len(heavy)), heavy, reducers)
            + mean
            + spread * draw.standard_normal(reducers)
        ).max()
        for _ in range(DRAWS)
    ]
    return float(np.mean(largest) * reducers / (times * sizes.sum()))


def table(records: int, counts: np.ndarray, sizes: np.ndarray) -> Iterator[str]:
    sizes = np.sort(sizes)
    yield (
        f"{records:,} lines: {len(counts):,} shared keys; the largest bucket has {counts.max():,} "
        f"lines, {sizes[-1] / sizes.sum():.2%} of the {sizes.sum() / 1e9:.2f} GB that travel."
    )
    yield ""
    yield f"| reducers | {LARGE:,} records, more buckets | any number, larger buckets |"
    yield "|---:|---:|---:|"
    for reducers in REDUCERS:
        more = unevenness(sizes, LARGE / records, reducers)
        yield f"| {reducers:,} | {more:.2f} | {unevenness(sizes, 1, reducers):.2f} |"


def main() -> None:
    path, *options = sys.argv[1:]
    command = [sys.executable, str(ROOT / "mapper.py"), *options]
    with open(path, "rb") as file:
        records = sum(1 for _ in file)
        file.seek(0)
        with subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE) as mapper:
            assert mapper.stdout
            found = shared_buckets(mapper.stdout)
    if mapper.returncode:
        sys.exit(mapper.returncode)
    print("\n".join(table(records, *found)))


if __name__ == "__main__":
    main()
