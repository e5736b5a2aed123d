"""Synthetic pairs with similarities from 0.20 to 0.95, to measure the S-curve.

    python3 -m bench.data.graded_pairs > curve.txt
    python3 -m bench.data.graded_pairs --pairs > curve.pairs.tsv

1,000 pairs of each similarity 0.20, 0.25 … 0.95: two sets whose union has 100 shingles, and which
share 20, 25 … 95 of them.  Sets of different pairs have nothing in common (the shingles are
random numbers of 32 bits, so hardly anything), so that the pairs are known without a join.

Same bytes with any Python, numpy and machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from neardup.sets.hashing import random_words

UNION = 100
SHARED = range(20, 100, 5)  # of the 100 shingles
PAIRS = 1000  # of each similarity
SEED = 1


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.data.graded_pairs",
        description="Print pairs of records with similarities from 0.20 to 0.95.",
    )
    parser.add_argument("--pairs", action="store_true", help="print the exact answer instead")
    sys.stdout.writelines(answer() if parser.parse_args().pairs else lines())
    return 0


def lines() -> Iterator[str]:
    """Yield the record lines; the two records of a pair follow each other.

    >>> first, second = (set(line.split()[1:]) for _, line in zip(range(2), lines()))
    >>> len(first & second), len(first | second)
    (20, 100)
    """
    for stream, (name, shared) in enumerate(names()):
        shingles = [word >> 32 for word in random_words(SEED, UNION, stream).tolist()]
        common, rest = shingles[:shared], shingles[shared:]
        half = len(rest) // 2
        for side, own in (("a", rest[:half]), ("b", rest[half:])):
            yield f"{name}{side} {' '.join(map(str, common + own))}\n"


def answer() -> Iterator[str]:
    r"""Yield the pair lines, in the order of `LC_ALL=C sort`.

    >>> next(answer())
    '20_0000_a\t20_0000_b\t0.200000\n'
    """
    for name, shared in names():
        yield f"{name}a\t{name}b\t{shared / UNION:.6f}\n"


def names() -> Iterator[tuple[str, int]]:
    """Yield, for each pair, the prefix of both ids and the number of shingles that they share."""
    for shared in SHARED:
        for number in range(PAIRS):
            yield f"{shared}_{number:04}_", shared


if __name__ == "__main__":
    sys.exit(main())
