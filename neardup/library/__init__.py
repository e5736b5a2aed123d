"""For a notebook or a program: the same answers from records in memory, in this very process.

In: texts or sets, with ids or without.
Out: pairs, clusters, or which records stay, as plain named tuples; ValueError for anything wrong.
May import: everything before.

No process is forked, no file is written, and nothing is printed: `calls` joins the stages,
and holds all records at once.
"""

from neardup.runtime.program import interrupts_held

with interrupts_held():  # numpy, interrupted, stays half imported and cannot be imported again
    from neardup.library.calls import Deduplicated, Pair, Removed, clusters, deduplicate, pairs

__all__ = ["Deduplicated", "Pair", "Removed", "clusters", "deduplicate", "pairs"]
