"""datasketch: MinHash and MinHashLSH; its candidate pairs are verified exactly.

datasketch is Python on numpy, one set at a time.  Its fastest documented way is
`MinHash.generator` ("avoids unnecessary overhead") and `MinHashLSH` in memory, filled within an
`insertion_session`; each record is queried before it is inserted, so that no sketch is kept.  The
hash function is the user's: SHA-1 by default, and here none, since the tokens come hashed.  What a
query gives are candidates ("for exact results, filter by computing Jaccard similarity using
original sets"); they are verified here in vector steps.  One thread.

Its own choice at threshold 0.9, from 128 hashes, is 5 bands of 25.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import index as itself  # the cheapest function from an int to itself

import numpy as np

from bench.peers.answers import write_verified
from bench.peers.command import load, options
from bench.peers.reading import read_records
from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged

DEFAULT_HASHES = 128


def main() -> int:
    args = options(__doc__)
    datasketch = load("datasketch")
    records = read_records(args.file)
    params = (args.bands, args.rows) if args.bands else None
    hashes = args.bands * args.rows if args.bands else DEFAULT_HASHES
    lsh = datasketch.MinHashLSH(float(args.threshold), num_perm=hashes, params=params)
    sketches = datasketch.MinHash.generator(
        tokens(records.sets()), num_perm=hashes, hashfunc=itself
    )
    met = []
    with lsh.insertion_session() as session:
        for row, sketch in enumerate(sketches):
            met += [(earlier, row) for earlier in lsh.query(sketch)]
            session.insert(row, sketch, check_duplication=False)
    pairs = np.array(met, dtype=np.int64).reshape(-1, 2)
    write_verified(records, pairs, args.threshold)
    return 0


def tokens(sets: Ragged) -> Iterator[list[int]]:
    """Yield each set as a list of 32-bit hashes, which datasketch computes with."""
    hashes = mix(sets.values + np.uint64(1)) >> np.uint64(32)
    for start, stop in zip(sets.offsets[:-1], sets.offsets[1:]):
        yield hashes[start:stop].tolist()


if __name__ == "__main__":
    sys.exit(main())
