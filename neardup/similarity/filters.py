"""What two sets of resemblance t or more must have: sizes, prefixes and an overlap, in integers.

Letters: t the threshold (9/10), x and y the sizes of two sets (35 and 38).
"""

from __future__ import annotations

from neardup.similarity.threshold import Size, Threshold


def probing_prefix(t: Threshold, size: Size) -> Size:
    """Prefix: so many first tokens of a set meet each pair of it, whatever the pair's size.

    >>> probing_prefix(Threshold.parse("0.9"), 35)
    4
    """
    return size - t.smallest_partner(size) + 1


def indexing_prefix(t: Threshold, size: Size) -> Size:
    """Prefix: so many are enough in a set that only sets of its size or above ask for.

    >>> indexing_prefix(Threshold.parse("0.9"), 35)
    2
    """
    return size - overlap_needed(t, size, size) + 1


def overlap_needed(t: Threshold, x: Size, y: Size) -> Size:
    """α: the least overlap of a pair of these sizes.

    >>> overlap_needed(Threshold.parse("0.9"), 9, 10)
    9
    """
    return -(-(x + y) * t.num // (t.num + t.den))
