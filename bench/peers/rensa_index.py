"""rensa with a stored index, flags only: the new records that share a band with another record.

The index is a pickled `RMinHashLSH`, into which the new records go by
`insert_matrix_and_query_duplicate_flags`.  It names no pairs, and nothing is verified.  See
`bench.peers.rensa` for the rest.
"""

from __future__ import annotations

import pickle
import sys

import numpy as np

from bench.peers.answers import write_flagged
from bench.peers.command import load, options
from bench.peers.reading import read_records
from bench.peers.rensa import digests

BANDS, ROWS = 15, 7


def main() -> int:
    args = options(__doc__, BANDS, ROWS, index=True)
    rensa = load("rensa", args.threads)
    records = read_records(args.file)
    matrix = digests(rensa, records, args.bands * args.rows)
    if args.build:
        index = rensa.RMinHashLSH(float(args.threshold), args.bands * args.rows, args.bands)
        index.insert_matrix(matrix)
        args.index.mkdir()
        with open(args.index / "lsh", "wb") as file:
            pickle.dump((index, len(records.ids)), file, protocol=pickle.HIGHEST_PROTOCOL)
        return 0
    with open(args.index / "lsh", "rb") as file:
        index, first = pickle.load(file)
    flags = index.insert_matrix_and_query_duplicate_flags(matrix, first)
    write_flagged(records.ids, np.flatnonzero(flags).tolist())
    return 0


if __name__ == "__main__":
    sys.exit(main())
