"""A simple MinHash mapper and reducer in plain Python: a first solution to a course exercise.

    python -m bench.peers.course FILE
    python -m bench.peers.course map FILE | LC_ALL=C sort | python -m bench.peers.course reduce -

100 hashes h(x) = (a·x + b) mod 20,000 of the shingle numbers make 10 bands of 10 minima.  The
mapper writes `band:hash TAB id TAB shingles` for each band, and the reducer compares all pairs of a
bucket as Python sets and prints those that reach the threshold; a last `sort -u` makes them
unique.  Verified exactly; one process for each stage, as in the pipe above.

The modulus is the number of shingles that the course's data have; other data have more, and then
different shingles share a hash.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations, groupby
from typing import TextIO

from bench.peers.command import options
from neardup.similarity.measures import Threshold

MODULUS = 20_000
SEED = 1
PIPE = """
set -o pipefail
export LC_ALL=C
course() { "$PYTHON" -m bench.peers.course "$@"; }
file=$1; shift
course map "$file" "$@" | sort | course reduce - "$@" | sort -u
"""


def main() -> int:
    stage = sys.argv.pop(1) if sys.argv[1:2] in (["map"], ["reduce"]) else "pipe"
    args = options(__doc__, bands=10, rows=10)
    if stage == "pipe":
        return pipe(args)
    with sys.stdin if args.file == "-" else open(args.file) as lines:
        if stage == "map":
            sys.stdout.writelines(mapped(lines, args.bands, args.rows))
        else:
            sys.stdout.writelines(reduced(lines, args.threshold))
    return 0


def pipe(args: argparse.Namespace) -> int:
    """Run mapper, `sort`, reducer and `sort -u` as a pipe; return its exit code."""
    threshold = f"{args.threshold.num}/{args.threshold.den}"
    arguments = ["--bands", str(args.bands), "--rows", str(args.rows), "--threshold", threshold]
    command = ["bash", "-c", PIPE, "course", args.file, *arguments]
    return subprocess.run(command, env={**os.environ, "PYTHON": sys.executable}).returncode


def mapped(lines: TextIO, bands: int, rows: int) -> Iterator[str]:
    """Yield a line with a key for each record and band."""
    generator = random.Random(SEED)
    hashes = [
        (generator.randrange(1, MODULUS), generator.randrange(MODULUS)) for _ in range(bands * rows)
    ]
    for line in lines:
        id_, *tokens = line.split()
        shingles = {int(token) for token in tokens}
        signature = [min((a * x + b) % MODULUS for x in shingles) for a, b in hashes]
        for band in range(bands):
            key = hash(tuple(signature[band * rows : (band + 1) * rows]))
            yield f"{band}:{key}\t{id_}\t{' '.join(tokens)}\n"


def reduced(lines: TextIO, threshold: Threshold) -> Iterator[str]:
    """Yield the lines of similar pairs in each bucket."""
    records = (line.rstrip("\n").split("\t") for line in lines)
    for _, bucket in groupby(records, key=lambda record: record[0]):
        sets = [(id_, set(shingles.split())) for _, id_, shingles in bucket]
        for (a, x), (b, y) in combinations(sets, 2):
            if len(x & y) * threshold.den >= len(x | y) * threshold.num:
                yield f"{min(a, b)}\t{max(a, b)}\n"


if __name__ == "__main__":
    sys.exit(main())
