"""The filters of the joins: what two sets must have, or cannot have, if they are a pair.

Letters: t the threshold; x, y the sizes of two sets, such as 9 and 10; α the overlap that they
need, ⌈t/(1+t)·(x+y)⌉: 9 at t = 0.9.  Both sets are in one order of all tokens.

    length       a partner of y has at least ⌈t·y⌉ tokens
    prefix       two sets with an overlap of α share a token in their first x-α+1 and y-α+1
    positional   what they share so far, and all that is left of the shorter, must come to α
    suffix       what is left of both must not differ in more tokens than α allows

All but the last take plain integers or int64 arrays, element by element.  No floats: ⌈t·n⌉ of a
float is wrong for some t and n.  The suffix filter is of Xiao, Wang, Lin, Yu (WWW 2008).
"""

from __future__ import annotations

import numpy as np

from neardup.similarity.filters import overlap_needed
from neardup.similarity.threshold import Size, Threshold


def most_common(x: Size, y: Size, i: Size, j: Size, met: Size) -> Size:
    """Positional: the largest overlap of two sets that share `met` of their first i and j tokens.

    >>> int(most_common(10, 9, 4, 2, 1))
    7
    """
    return met + np.minimum(x - i, y - j)


def most_apart(t: Threshold, x: Size, y: Size, i: Size, j: Size, met: Size) -> Size:
    """H_max: in so many tokens may differ what follows the first i and j, which share `met`.

    A pair differs in x+y-2α tokens at most, and i+j-2·met of them are among the first.

    >>> most_apart(Threshold.parse("0.8"), 10, 10, 2, 1, 1)
    1
    """
    return x + y - 2 * overlap_needed(t, x, y) - (i + j - 2 * met)


Parts = tuple[np.ndarray, np.ndarray]  # from, to: positions among the keys (int64), for each pair


def least_apart(keys: np.ndarray, step: np.ndarray, x: Parts, y: Parts, depth: int) -> np.ndarray:
    """Suffix: in so many tokens, or more, differ the parts x and y of two records.

    keys: record·2^k + token for all records, ascending (uint64); step: the record of x minus that
    of y, times 2^k (uint64, wrapping).  Depth 0 compares lengths.  Else the middle token of y cuts
    both parts in two, and what differs on either side of it adds up:

        y   2 3 4 [6] 7 8 9             of 7 tokens each: they may be equal
        x       5 [6] 7 8 9 10 11       left of 6 are 3 and 1, right of it 3 and 5: 4 differ

    >>> y, x = [2, 3, 4, 6, 7, 8, 9], [5, 6, 7, 8, 9, 10, 11]
    >>> keys = np.array(y + [16 + token for token in x], np.uint64)
    >>> parts = np.array([[7], [14]]), np.array([[0], [7]])
    >>> [least_apart(keys, np.array([16], np.uint64), *parts, depth).tolist() for depth in (0, 1)]
    [[0], [4]]
    """
    (x_from, x_to), (y_from, y_to) = x, y
    if depth == 0:
        return np.abs((x_to - x_from) - (y_to - y_from))
    filled = y_from < y_to
    y_cut = (y_from + y_to) // 2
    middle = keys[np.where(filled, y_cut, 0)] + step
    x_cut = np.clip(np.searchsorted(keys, middle), x_from, x_to)
    found = filled & (x_cut < x_to)
    found[found] = keys[x_cut[found]] == middle[found]
    left = least_apart(keys, step, (x_from, x_cut), (y_from, y_cut), depth - 1)
    right = least_apart(keys, step, (x_cut + found, x_to), (y_cut + filled, y_to), depth - 1)
    return left + right + (filled & ~found)
