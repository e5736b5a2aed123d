"""The Python API: the results of the command line, for records in memory, in one process.

In: texts or sets, with ids or without.
Out: pairs, clusters, the records to keep, passages, or records of an index, as named tuples;
ValueError for anything wrong.
May import: everything before.

It holds all records in memory, forks no process, writes no file but an index and temporary ones,
and prints nothing.
"""

from neardup.runtime.program import interrupts_held

with interrupts_held():  # an interrupted import of numpy cannot be repeated
    from neardup.library.calls import (
        Pair,
        Passage,
        PassagePlace,
        clusters,
        deduplicate,
        pairs,
        passages,
    )
    from neardup.library.deduplicated import Deduplicated, Kept, Removed
    from neardup.library.record_index import Index, Match

__all__ = [
    "Deduplicated",
    "Index",
    "Kept",
    "Match",
    "Pair",
    "Passage",
    "PassagePlace",
    "Removed",
    "clusters",
    "deduplicate",
    "pairs",
    "passages",
]
