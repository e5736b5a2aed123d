"""Exact joins in memory: all pairs of rows whose similarity reaches a threshold.

All joins return the same pairs.  Read them in the order of the table, simplest first; use
`bitmap_join`.  Each of the others shows, in a few lines, what a filter is and what it saves.  JOINS
ignore weights; WEIGHTED_JOINS compare weighted rows by a weighted measure.

In: rows of tokens, and a threshold.
Out: pairs of rows, with their overlaps.
May import: runtime, sets, similarity.
"""

from typing import Callable

from neardup.joins.bitmap_joins import bitmap_join
from neardup.joins.inverted_index import Joined, nested_loop
from neardup.joins.prefix_joins import ppjoin_plus
from neardup.joins.weighted_joins import all_pairs, weighted_all_pairs, weighted_nested_loop
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Threshold

Join = Callable[[Ragged, Threshold], Joined]
WeightedJoin = Callable[[Ragged, str, Threshold], Joined]  # by a measure: jaccard, dice or cosine

JOINS: dict[str, Join] = {
    "nested_loop": nested_loop,
    "all_pairs": all_pairs,
    "ppjoin_plus": ppjoin_plus,
    "bitmap_join": bitmap_join,
}

WEIGHTED_JOINS: dict[str, WeightedJoin] = {
    "nested_loop": weighted_nested_loop,
    "all_pairs": weighted_all_pairs,
}
