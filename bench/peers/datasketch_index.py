"""datasketch with a stored index: built from old records, and queried for each new record.

The index is a pickled `MinHashLSH`, and the sets beside it as arrays, since what a query gives has
to be verified.  A new record is queried and then inserted, so that pairs of two new ones are found.
See `bench.peers.datasketch` for the rest.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from operator import index as itself
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers.answers import unique, verified, write_pairs
from bench.peers.command import load, options
from bench.peers.datasketch import tokens
from bench.peers.reading import read_sets
from neardup.sets.ragged import Batch, Ragged

BANDS, ROWS = 15, 7


def main() -> int:
    args = options(__doc__, BANDS, ROWS, index=True)
    datasketch = load("datasketch")
    records = read_sets(args.file)
    hashes = args.bands * args.rows
    sketches = datasketch.MinHash.generator(tokens(records.sets), num_perm=hashes, hashfunc=itself)
    if args.build:
        params = (args.bands, args.rows)
        lsh = datasketch.MinHashLSH(float(args.threshold), num_perm=hashes, params=params)
        with lsh.insertion_session() as session:
            for row, sketch in enumerate(sketches):
                session.insert(row, sketch, check_duplication=False)
        save(args.index, lsh, records)
        return 0
    lsh, old = saved(args.index)
    pairs = np.array(list(met(lsh, sketches, len(old.ids))), dtype=np.int64).reshape(-1, 2)
    few = np.unique(pairs)
    some = old.take(few[few < len(old.ids)])
    new = few[few >= len(old.ids)] - len(old.ids)
    both = joined(some, records.take(new))
    candidates = unique(np.searchsorted(few, pairs), len(few))
    found = verified(both.sets, candidates, args.threshold)
    write_pairs(both.ids, found.tolist())
    return 0


def met(lsh: Any, sketches: Any, first: int) -> Iterator[tuple[int, int]]:
    """Yield the candidate pairs (earlier, new) of new records, which are numbered from `first`."""
    with lsh.insertion_session() as session:
        for row, sketch in enumerate(sketches, first):
            yield from ((earlier, row) for earlier in lsh.query(sketch))
            session.insert(row, sketch, check_duplication=False)


def save(folder: Path, lsh: Any, records: Batch) -> None:
    folder.mkdir()
    with open(folder / "lsh", "wb") as file:
        pickle.dump(lsh, file, protocol=pickle.HIGHEST_PROTOCOL)
    np.save(folder / "values.npy", records.sets.values)
    np.save(folder / "offsets.npy", records.sets.offsets)
    (folder / "ids").write_bytes(b"\n".join(records.ids))


def saved(folder: Path) -> tuple[Any, Batch]:
    with open(folder / "lsh", "rb") as file:
        lsh = pickle.load(file)
    values = np.load(folder / "values.npy", mmap_mode="r")
    sets = Ragged(values, np.load(folder / "offsets.npy"))
    return lsh, Batch((folder / "ids").read_bytes().split(b"\n"), sets)


def joined(some: Batch, more: Batch) -> Batch:
    """Concatenate two batches of records."""
    values = np.concatenate((some.sets.values, more.sets.values))
    offsets = np.concatenate((some.sets.offsets, more.sets.offsets[1:] + len(some.sets.values)))
    return Batch(some.ids + more.ids, Ragged(values, offsets))


if __name__ == "__main__":
    sys.exit(main())
