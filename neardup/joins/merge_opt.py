"""MergeOpt: merges whole lists of an index instead of prefixes, and sets the longest lists aside.

Sarawagi, Kirpal: Efficient Set Joins on Similarity Predicates (SIGMOD 2004).  A partner of y shares
T = ⌈t·|y|⌉ tokens with it or more.  Of the lists of y's tokens, T-1 long ones cannot make a
pair by themselves.  So the short ones are merged, and only the records met there are looked up in
the long ones, from the shortest list on, as long as the overlap can still be reached.

It leaves out prefixes and positions, and the weights of the paper: every token weighs 1.  Cost:
a heap step for each entry of the short lists; a doubling search for each lookup in a long one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from heapq import merge

from neardup.joins.joined import Joined
from neardup.joins.token_order import Ordered
from neardup.sets.ragged import Ragged
from neardup.similarity.filters import overlap_needed
from neardup.similarity.threshold import Threshold


def merge_opt(rows: Ragged, threshold: Threshold) -> Joined:
    """The pairs of rows whose resemblance reaches the threshold.

    >>> rows = Ragged.from_rows([[*range(9)], [*range(10)], [*range(5, 15)]])
    >>> joined = merge_opt(rows, Threshold.parse("0.9"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist(), joined.candidates
    ([0], [1], [9], {'all': 3, 'length': 3, 'merged': 1, 'pairs': 1})
    """
    records = Ordered.of(rows)
    first = records.first_partner(threshold)
    sizes = records.sizes.tolist()
    counts = {**records.counts(first), "merged": 0}
    index: dict[int, list[int]] = defaultdict(list)  # token → records, ascending
    found = []
    for y, tokens in enumerate(records.tokens()):
        lists = sorted((index[token] for token in tokens), key=len)
        cut = len(lists) - (threshold.smallest_partner(len(tokens)) - 1)
        short, long = lists[:cut], lists[cut:]
        places = [0] * len(long)
        starts = (bisect_left(list_, first[y]) for list_ in short)
        met = Counter(merge(*(list_[start:] for list_, start in zip(short, starts))))
        counts["merged"] += len(met)
        for x, common in met.items():  # ascending, so that each search starts where the last ended
            needed = overlap_needed(threshold, sizes[x], len(tokens))
            for k, list_ in enumerate(long):
                if common + len(long) - k < needed:
                    break
                places[k] = doubling_search(list_, x, places[k])
                common += list_[places[k] : places[k] + 1] == [x]
            if common >= needed:
                found.append((x, y, common))
        for token in tokens:
            index[token].append(y)
    return Joined.of(records.row, found, counts)


def doubling_search(numbers: Sequence[int], wanted: int, start: int) -> int:
    """The first place from `start` on with a number ≥ `wanted`, which is thought to be near.

    >>> doubling_search([10, 20, 30, 40, 50, 60], 50, 1), doubling_search([10, 20], 99, 0)
    (4, 2)
    """
    low, step = start, 1
    while start + step <= len(numbers) and numbers[start + step - 1] < wanted:
        low = start + step
        step *= 2
    return bisect_left(numbers, wanted, low, min(start + step - 1, len(numbers)))
