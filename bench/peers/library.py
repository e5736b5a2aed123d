"""neardup.pairs, as a Python program calls it: each record's shingles as an unsorted array."""

from __future__ import annotations

import sys

import numpy as np

import neardup
from bench.peers.command import options
from bench.peers.reading import read_records


def main() -> int:
    args = options(__doc__, banded=False)
    records = read_records(args.file)
    sets = np.split(records.values, records.offsets[1:-1])
    found = neardup.pairs(zip(records.ids, sets), str(args.threshold))
    names = (sorted((pair.a, pair.b)) for pair in found)
    sys.stdout.buffer.writelines(b"%b\t%b\n" % (a, b) for a, b in names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
