"""FastSketchLSH: Fast Similarity Sketching and banding; its candidates are verified exactly.

FastSketchLSH is C++ with SIMD and OpenMP.  Its fastest documented way for numbers is `batch_csr`
("CSR layout for maximum throughput") on hashed tokens, `LSH.insert` of the matrix, and `query` of
the whole matrix with format 'csr', which gives the candidates of each row.  They are verified here
in vector steps.  Threads: as many as told, in all three.

The index has no default banding; that of its README is 16 bands of 8.
"""

from __future__ import annotations

import sys

import numpy as np

from bench.peers.answers import write_verified
from bench.peers.command import load, options
from bench.peers.reading import read_records
from neardup.sets.hashing import mix


def main() -> int:
    args = options(__doc__, bands=16, rows=8)
    peer = load("FastSketchLSH", args.threads)
    records = read_records(args.file)
    hashes = args.bands * args.rows
    sketches = peer.FastSimilaritySketch(size=1 << (hashes - 1).bit_length()).batch_csr(
        mix(records.values + np.uint64(1)),
        records.offsets.astype(np.uint64),
        prehashed=True,
        num_threads=args.threads,
    )
    sketches = np.ascontiguousarray(sketches[:, :hashes])  # the sizes it makes are powers of two
    index = peer.LSH(num_perm=hashes, num_bands=args.bands, num_threads=args.threads)
    index.insert(sketches)
    right, offsets = index.query(sketches, format="csr")
    left = np.repeat(np.arange(len(records.ids)), np.diff(offsets.astype(np.int64)))
    pairs = np.column_stack((left, right.astype(np.int64)))
    write_verified(records, pairs, args.threshold)
    return 0


if __name__ == "__main__":
    sys.exit(main())
