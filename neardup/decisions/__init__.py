"""Pairs → a decision: which records stay, and because of whom the others go.

In: edge lines in order of records, which is the order of priority.
Out: a line for each record that goes, with its reason; or each member of each cluster.
May import: process, sets, reading, similarity, lines.

A rule is a class in a file of its own here, and one line in `RULES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from neardup.process.on_use import imported

if TYPE_CHECKING:
    from neardup.decisions.rule import Rule


class RuleKind(NamedTuple):
    file: str  # and its class, FILE.CLASS
    help: str

    @property
    def rule(self) -> type[Rule]:
        return imported(__name__, self.file)


RULES = {
    "direct": RuleKind(
        "direct.Direct",
        "a record goes because of one that stays before it and is a pair with it, and for nothing "
        "else",
    ),
    "cluster": RuleKind(
        "whole_clusters.WholeClusters",
        "of each cluster one record stays, though others may be no pair with it",
    ),
}
