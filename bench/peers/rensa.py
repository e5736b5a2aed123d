"""rensa, flags only: the records that share a band with another record.

rensa (Rust) makes signatures by Fast Similarity Sketching and looks for rows that share a band.
Its fastest way for sets of numbers is `digest_matrix_from_flat_token_hashes`, which takes flat
arrays, and `query_duplicate_flags_matrix_one_shot`, "useful for one-shot batch deduplication": no
index is kept, and the flags are those of `insert_matrix_and_query_duplicate_flags`.  (Its rho
sketch is faster still, but "document length and token order affect which duplicates it finds".)
The answer is one flag a record: no pairs, nothing verified.  Threads: Rayon's, as many as told.

The index has no default banding; that of rensa's own benchmark is 8 bands of 16.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from bench.peers.answers import write_flagged
from bench.peers.command import load, options
from bench.peers.reading import Records, read_records
from neardup.sets.hashing import mix

SEED = 42
BANDS, ROWS = 8, 16


def main() -> int:
    args = options(__doc__, BANDS, ROWS)
    rensa = load("rensa", args.threads)
    records = read_records(args.file)
    matrix = digests(rensa, records, args.bands * args.rows)
    index = rensa.RMinHashLSH(float(args.threshold), args.bands * args.rows, args.bands)
    write_flagged(records.ids, flagged(index, matrix).tolist())
    return 0


def digests(rensa: Any, records: Records, hashes: int) -> Any:
    """Return rensa's matrix of signatures, computed from the hashed shingles of each record."""
    tokens = mix(records.values + np.uint64(1))
    offsets = records.offsets.astype(np.uint64)
    return rensa.RMinHash.digest_matrix_from_flat_token_hashes(tokens, offsets, hashes, SEED)


def flagged(index: Any, matrix: Any) -> np.ndarray:
    """Return the rows (int64) that share a band with another row."""
    return np.flatnonzero(index.query_duplicate_flags_matrix_one_shot(matrix))


if __name__ == "__main__":
    sys.exit(main())
