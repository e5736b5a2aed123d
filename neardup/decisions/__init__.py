"""Decisions: which records are kept, and which are removed as duplicates of a kept one.

In: edge lines in order of records, which is the order of priority.
Out: a line for each removed record and its reason, or for each member of each cluster.
May import: runtime, sets, reading, similarity, lines.

A rule is a class in `rules.py` and one line in `RULES`.
"""

from typing import NamedTuple

from neardup.decisions.rules import Direct, Rule, WholeClusters


class RuleKind(NamedTuple):
    rule: type[Rule]
    help: str


RULES = {
    "direct": RuleKind(
        Direct, "a record is removed only if it is similar to one that is kept and comes before it"
    ),
    "cluster": RuleKind(
        WholeClusters,
        "one record of each cluster is kept, even if some members are not similar to it",
    ),
}
