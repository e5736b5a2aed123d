"""near-dupes: MinHash and banding on the characters of texts; it verifies its own candidates.

near-dupes is Python on numpy.  Texts are sets of their runs of n_gram characters, and here each
shingle is a character of its own, in runs of one, so that its sets are ours; normalize=False, as
they are no letters.  Equal texts are given once, since of three copies it names two pairs only.
One thread.  It takes no banding: of 128 hashes it makes the bands in which the fewest dissimilar
records collide, and which find 98 % at the threshold; at 0.9 that is 11 bands of 11.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from itertools import combinations, product

from bench.peers.answers import write_pairs
from bench.peers.command import load, options
from bench.peers.reading import Records, ranks, read_records


def main() -> int:
    args = options(__doc__, banded=False)
    near_dupes = load("near_dupes")
    records = read_records(args.file)
    copies = defaultdict(list)
    for row, text in enumerate(texts(records)):
        copies[text].append(row)
    rows = list(copies.values())
    finder = near_dupes.DuplicateFinder(
        kind="text", threshold=float(args.threshold), n_gram=1, normalize=False
    )
    for equal in rows:
        write_pairs(records.ids, combinations(equal, 2))
    for i, j, _ in finder.find(list(copies)).pairs:
        write_pairs(records.ids, product(rows[i], rows[j]))
    return 0


def texts(records: Records) -> list[str]:
    """Return each record as a text, with one character for each shingle.

    >>> import numpy as np
    >>> texts(Records([b"a", b"b"], np.array([7, 9, 7], np.uint64), np.array([0, 2, 3])))
    ['\\x00\\x01', '\\x00']
    """
    numbers = ranks(records.values)
    if numbers.max(initial=0) > sys.maxunicode:
        raise SystemExit("bench.peers.near_dupes: more distinct shingles than there are characters")
    data = numbers.astype("<u4").tobytes()
    cuts = (4 * records.offsets).tolist()
    spans = zip(cuts, cuts[1:])
    return [data[start:stop].decode("utf-32-le", "surrogatepass") for start, stop in spans]


if __name__ == "__main__":
    sys.exit(main())
