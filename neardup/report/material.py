"""All that a page is made of, gathered: what was asked, the figures, the texts that are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from neardup.evaluation.shown_records import shown_records
from neardup.process.summary import BAD
from neardup.report.asked import Asked
from neardup.report.audit_text import Audited
from neardup.report.facts import SHOWN, Facts
from neardup.report.pair_graph import Found, Node
from neardup.report.passages import Parts, shingle_difference, text_difference
from neardup.report.removed_records import RemovedRecords


@dataclass(frozen=True)
class Sources:
    """pairs: a file, or a folder; records, old_records: files."""

    pairs: str
    records: list[str]
    old_records: list[str]
    removed: RemovedRecords | None
    audit: Mapping[str, Audited]


@dataclass(frozen=True)
class Material:
    """records: how many there are; repeated: records whose id others have, too."""

    sources: Sources
    asked: Asked
    facts: Facts
    texts: Mapping[Node, str]
    repeated: set[Node]
    records: int

    @property
    def bad_lines(self) -> dict[str, int]:
        """By reason."""
        counts = self.asked.counts
        return {name[len(BAD) :]: n for name, n in counts.items() if name.startswith(BAD)}

    def difference(self, a: Node, b: Node) -> Parts:
        """Of the texts of two records, or of their shingles; nothing where one is not known."""
        if a not in self.texts or b not in self.texts:
            return []
        text = self.asked.form.shingle is not None
        differ = text_difference if text else shingle_difference
        return differ(self.texts[a], self.texts[b])

    def most_similar(self) -> list[Found]:
        """Below 1; if there are too few, those of similarity 1 whose texts are not the same."""
        others = [pair for pair in self.facts.same if self._differ(pair)]
        return (others[: SHOWN - len(self.facts.most)] + self.facts.most)[:SHOWN]

    def _differ(self, pair: Found) -> bool:
        a, b = self.texts.get(pair.a), self.texts.get(pair.b)
        return a is not None and b is not None and a.split() != b.split()


def gathered_material(sources: Sources, asked: Asked, facts: Facts) -> Material:
    """Reads the records, once, for the texts of those that are shown."""
    nodes = _shown_nodes(facts) | _removed_nodes(sources.removed)
    texts: dict[Node, str] = {}
    repeated: set[Node] = set()
    count = 0
    among = [*sources.old_records, *sources.records]
    for old, files in (False, sources.records), (True, sources.old_records):
        found = shown_records(
            files, asked.form, {n.id for n in nodes if n.old == old}, among, asked.indexed
        )
        texts.update((Node(id_, old), text) for id_, text in found.texts.items())
        repeated.update(Node(id_, old) for id_ in found.repeated)
        count += found.count
    return Material(sources, asked, facts, texts, repeated, asked.counts.get("records", count))


def _shown_nodes(facts: Facts) -> set[Node]:
    pairs = [*facts.most, *facts.least, *facts.same, *facts.chains.longest]
    members = {node for cluster in facts.largest for node in cluster.members}
    return members.union(*((pair.a, pair.b) for pair in pairs)) if pairs else members


def _removed_nodes(removed: RemovedRecords | None) -> set[Node]:
    """Those that went are new; what they went because of may be old."""
    if removed is None:
        return set()
    nodes = {Node(gone.id) for gone in removed.first}
    kept = [gone.kept for gone in removed.first] + [id_ for id_, _ in removed.reasons]
    return nodes | {Node(id_, old) for id_ in kept for old in (False, True)}
