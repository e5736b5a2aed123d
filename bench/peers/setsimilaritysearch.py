"""SetSimilaritySearch: an exact all-pairs join.

SetSimilaritySearch is pure Python on numpy: All-Pairs-Binary (Bayardo, Ma, Srikant, WWW 2007) with
a position filter.  Its only way to all pairs is `all_pairs`, which takes a list of sets and yields
verified pairs: nothing is missed, and nothing has to be checked.  No banding; one thread; time
grows faster than the number of sets.
"""

from __future__ import annotations

import sys

from bench.peers.answers import write_pairs
from bench.peers.command import load, options
from bench.peers.reading import lists, read_sets


def main() -> int:
    args = options(__doc__, banded=False)
    peer = load("SetSimilaritySearch")
    records = read_sets(args.file)
    pairs = peer.all_pairs(lists(records.sets), "jaccard", float(args.threshold))
    write_pairs(records.ids, ((i, j) for i, j, _ in pairs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
