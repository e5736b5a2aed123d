"""PPJoin: adds to All-Pairs the positional filter, and a shorter prefix in the index.

Xiao, Wang, Lin, Yu: Efficient Similarity Joins for Near Duplicate Detection (WWW 2008).  The index
knows at which position of x a token stands.  Where it meets y, that says how many tokens both can
still share:

    x   a c d │ f g h i j         they meet in a, then in d: 2 tokens, and what follows is
    y   a b d │ f g h i           at most 4 more

It leaves out what the tokens that follow are.  Cost: as All-Pairs, with fewer comparisons.
"""

from __future__ import annotations

from collections import defaultdict

from neardup.joins.joined import Joined
from neardup.joins.positional_filters import most_common
from neardup.joins.token_order import Ordered
from neardup.sets.ragged import Ragged
from neardup.similarity.filters import indexing_prefix, overlap_needed, probing_prefix
from neardup.similarity.threshold import Threshold

DROPPED = 0


def ppjoin(rows: Ragged, threshold: Threshold) -> Joined:
    """The pairs of rows whose resemblance reaches the threshold.

    >>> rows = Ragged.from_rows([[*range(9)], [*range(10)], [*range(5, 15)]])
    >>> joined = ppjoin(rows, Threshold.parse("0.9"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist(), joined.candidates
    ([0], [1], [9], {'all': 3, 'length': 3, 'prefix': 1, 'positional': 1, 'pairs': 1})
    """
    records = Ordered.of(rows)
    first = records.first_partner(threshold)
    counts = {**records.counts(first), "prefix": 0, "positional": 0}
    sets = [frozenset(tokens) for tokens in records.tokens()]
    index: dict[int, list[tuple[int, int]]] = defaultdict(list)  # token → records and positions
    found = []
    for y, tokens in enumerate(records.tokens()):
        size = len(tokens)
        met: dict[int, int] = {}  # record → how often they met, or DROPPED
        for j, token in enumerate(tokens[: probing_prefix(threshold, size)], 1):
            for x, i in index[token]:
                if x >= first[y] and met.get(x) != DROPPED:
                    most = most_common(len(sets[x]), size, i, j, met.get(x, 0) + 1)
                    needed = overlap_needed(threshold, len(sets[x]), size)
                    met[x] = met.get(x, 0) + 1 if most >= needed else DROPPED
        possible = [x for x in met if met[x] != DROPPED]
        counts["prefix"] += len(met)
        counts["positional"] += len(possible)
        for x in possible:
            common = len(sets[x] & sets[y])
            if common >= overlap_needed(threshold, len(sets[x]), size):
                found.append((x, y, common))
        for i, token in enumerate(tokens[: indexing_prefix(threshold, size)], 1):
            index[token].append((y, i))
    return Joined.of(records.row, found, counts)
