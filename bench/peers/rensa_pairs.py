"""rensa, extended to pairs: pairs of the records that it flags, verified exactly.

rensa answers with pairs only one record at a time.  In bulk, the flags say which records share a
band with any other, `RMinHashDigestMatrix.to_rows` hands out the signatures of those few, and
which bands of two rows are equal is found here in vector steps.  See `bench.peers.rensa` for the
rest.
"""

from __future__ import annotations

import sys

import numpy as np

from bench.data.exact_answer import equal_pairs
from bench.peers.answers import write_verified
from bench.peers.command import load, options
from bench.peers.reading import read_records
from bench.peers.rensa import BANDS, ROWS, digests, flagged
from neardup.sets.hashing import combine, mix


def main() -> int:
    args = options(__doc__, BANDS, ROWS)
    rensa = load("rensa", args.threads)
    records = read_records(args.file)
    hashes = args.bands * args.rows
    index = rensa.RMinHashLSH(float(args.threshold), hashes, args.bands)
    few = records.take(flagged(index, digests(rensa, records, hashes)))
    # A second digest of the few is much cheaper than `to_rows` of all.
    signatures = np.array(digests(rensa, few, hashes).to_rows(), dtype=np.uint64)
    pairs = candidates(signatures.reshape(len(few.ids), args.bands, args.rows))
    write_verified(few, pairs, args.threshold)
    return 0


def candidates(signatures: np.ndarray) -> np.ndarray:
    """Return the pairs of rows that are equal in a band, once for each band: int64 (P, 2).

    signatures: uint64 array of shape (records, bands, rows).

    >>> candidates(np.array([[[1, 2], [5, 6]], [[1, 3], [5, 6]]], dtype=np.uint64)).tolist()
    [[0, 1]]
    """
    found = [np.empty((0, 2), np.int64)]
    for band in range(signatures.shape[1]):
        contents = combine(mix(signatures[:, band]).T, band)
        found += [np.column_stack(pairs) for pairs in equal_pairs(contents)]
    return np.concatenate(found)


if __name__ == "__main__":
    sys.exit(main())
