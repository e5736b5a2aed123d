"""The Python API: the same answers from records in memory, in the same process.

In: texts or sets, with ids or without.
Out: pairs, clusters, or which records to keep, as named tuples; ValueError for anything wrong.
May import: everything before.

No process is forked, no file is written, and nothing is printed: `calls` joins the stages,
and holds all records at once.
"""

from neardup.runtime.program import interrupts_held

with interrupts_held():  # an interrupted import of numpy cannot be repeated
    from neardup.library.calls import Deduplicated, Pair, Removed, clusters, deduplicate, pairs

__all__ = ["Deduplicated", "Pair", "Removed", "clusters", "deduplicate", "pairs"]
