"""Decisions: which records are kept, and which are removed as duplicates of a kept one.

In: edge lines in order of records, which is the order of priority.
Out: a line for each removed record and its reason, or for each member of each cluster.
May import: runtime, sets, reading, similarity, lines.

A rule is a class in `rules.py` and one line in `RULES`.
"""

from neardup.decisions.rules import Direct, Rule, WholeClusters

RULES: dict[str, type[Rule]] = {"direct": Direct, "cluster": WholeClusters}
