"""sketchsort: sorted min-hash sketches; it verifies pairs and limits the share of missed pairs.

sketchsort is C++; `search_jaccard` takes lists of numbers and answers with verified pairs, of which
`missing_ratio` are missed at most, one in 10,000 by default: the only peer here that promises.
The numbers count from 0, as each of its permutations is of all numbers up to the largest.  One
thread.

It compares distances as 32-bit floats, in which that of 9/10 is above 0.1: asked for 0.1, it loses
all pairs that are exactly at 0.9 (at 0.8 or 0.85 none).  --rounding 1 asks for 0.1000001 instead.
"""

from __future__ import annotations

import sys

import numpy as np

from bench.peers.answers import unique, write_pairs
from bench.peers.command import load, options
from bench.peers.reading import lists, ranks, read_records

ROUNDING = 1e-7  # above half the step between 32-bit floats at 1, and below what sets differ by


def main() -> int:
    args = options(__doc__, banded=False, rounding=0)
    sketchsort = load("sketchsort")
    records = read_records(args.file)
    sets = lists(records._replace(values=ranks(records.values)))
    distance = 1 - float(args.threshold) + args.rounding * ROUNDING
    found = sketchsort.search_jaccard(sets, jaccard_dist=distance)
    pairs = np.column_stack((found["id1"], found["id2"])).astype(np.int64)
    write_pairs(records.ids, unique(pairs, len(sets)).tolist())
    return 0


if __name__ == "__main__":
    sys.exit(main())
