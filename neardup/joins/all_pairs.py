"""All-Pairs: adds to the nested loop an index of prefixes, and the length filter.

Bayardo, Ma, Srikant: Scaling Up All Pairs Similarity Search (WWW 2007), for sets.  Records come by
size, and their tokens rare first.  A record asks the index for each token of its prefix, is
compared with the records it meets, and then puts the same tokens into the index.

It leaves out where in the prefixes two records meet.  Cost: prefix lists walked, and a comparison
for each record met.
"""

from __future__ import annotations

from collections import defaultdict

from neardup.joins.joined import Joined
from neardup.joins.token_order import Ordered
from neardup.sets.ragged import Ragged
from neardup.similarity.filters import overlap_needed, probing_prefix
from neardup.similarity.threshold import Threshold


def all_pairs(rows: Ragged, threshold: Threshold) -> Joined:
    """The pairs of rows whose resemblance reaches the threshold.

    >>> rows = Ragged.from_rows([[*range(9)], [*range(10)], [*range(5, 15)]])
    >>> joined = all_pairs(rows, Threshold.parse("0.9"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist(), joined.candidates
    ([0], [1], [9], {'all': 3, 'length': 3, 'prefix': 1, 'pairs': 1})
    """
    records = Ordered.of(rows)
    first = records.first_partner(threshold)
    counts = {**records.counts(first), "prefix": 0}
    sets = [frozenset(tokens) for tokens in records.tokens()]
    index: dict[int, list[int]] = defaultdict(list)  # token → records, ascending
    found = []
    for y, tokens in enumerate(records.tokens()):
        prefix = tokens[: probing_prefix(threshold, len(tokens))]
        met = {x for token in prefix for x in index[token] if x >= first[y]}
        counts["prefix"] += len(met)
        for x in met:
            common = len(sets[x] & sets[y])
            if common >= overlap_needed(threshold, len(sets[x]), len(sets[y])):
                found.append((x, y, common))
        for token in prefix:
            index[token].append(y)
    return Joined.of(records.row, found, counts)
