"""The answer of `deduplicate`, which can be asked again at a higher threshold.

It holds the edges that its pairs are, and the sets of the records in them: a higher threshold only
removes edges, and the same decision is made on the others.  Pairs are not searched again.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from neardup.library import keywords
from neardup.library.keywords import Value
from neardup.lines import answer_lines
from neardup.lines.keyed_lines import decode_sets
from neardup.options.settings import Settings
from neardup.reading.blocks import NEW
from neardup.runtime.counters import Counters
from neardup.runtime.program import UsageError
from neardup.runtime.summary import SHARED_IDS, many
from neardup.sets.ragged import Forest, Ragged
from neardup.similarity.measures import Measure, SetMeasure, Threshold, exact_text
from neardup.stages.index_manifest import lookup_measure
from neardup.stages.pairs import decide_edges


class Removed(NamedTuple):
    """The id of a removed record, the id of the kept record it duplicates, and their similarity.

    With the rule "cluster" the two may not be a pair, and then there is no similarity.
    """

    id: Any
    because: Any
    similarity: Fraction | None


class Kept(NamedTuple):
    """The id of a kept record, and the records that are removed because of it, in input order."""

    id: Any
    duplicates: list[Removed]


class _Lists(NamedTuple):
    kept: list[Any]
    removed: list[Removed]


class Deduplicated(_Lists):
    """The ids of the kept records, and the removed records, both in the order of the input."""

    _reasons: list[int] | None = None  # of each removed record: the index in `kept`
    _found: FoundEdges | None = None

    @property
    def ratio(self) -> float:
        """The share of the records that is removed, 0 to 1; 0 if there are no records.

        >>> Deduplicated(["a", "b", "c"], [Removed("d", "a", Fraction(1))]).ratio
        0.25
        """
        return len(self.removed) / (len(self.kept) + len(self.removed) or 1)

    def with_duplicates(self) -> list[Kept]:
        """Return each kept record with those removed because of it, in the order of the input.

        >>> Deduplicated(["a", "b"], [Removed("c", "b", Fraction(1))]).with_duplicates()[0]
        Kept(id='a', duplicates=[])
        """
        found = [Kept(id_, []) for id_ in self.kept]
        reasons = self._reasons
        if reasons is None:
            reasons = [self.kept.index(each.because) for each in self.removed]
        for each, reason in zip(self.removed, reasons):
            found[reason].duplicates.append(each)
        return found

    def rethreshold(self, threshold: Value) -> Deduplicated:
        """Return the answer at a higher threshold, without another search.

        The pairs are those of this answer that reach the new threshold: they keep the recall that
        this answer's search promised.  ValueError for a threshold below that of this answer.
        """
        with keywords.as_value_errors():
            if self._found is None:
                raise UsageError(
                    "this answer was copied or pickled, which leaves its pairs out; call "
                    "neardup.deduplicate(records, threshold) instead"
                )
            return self._found.at(keywords.as_text("threshold", threshold)).answer()

    def __getstate__(self) -> dict[str, Any]:
        return {"_reasons": self._reasons}  # settings cannot be pickled


@dataclass(frozen=True)
class FoundEdges:
    """The edges that a search among n records has found; `answer` decides on them.

    ids: None if positions are the ids; edges: sorted lines (see `answer_lines`) with numbers as
    ids; position: of each number's record; rows (int64): the positions of the records in `sets`,
    ascending.
    """

    ids: list[Hashable] | None
    n: int
    settings: Settings
    edges: list[bytes]
    position: list[int]
    rows: np.ndarray
    sets: Ragged

    def answer(self) -> Deduplicated:
        because, pairs = self._reasons()
        found = self._similarities(pairs)
        kept, ids = self.kept(because), range(self.n) if self.ids is None else self.ids
        answer = Deduplicated(
            [ids[i] for i in kept],
            [Removed(ids[i], ids[j], found.get(i)) for i, j in because.items()],
        )
        reasons = np.array([*because.values()], np.int64)
        answer._reasons = np.searchsorted(kept, reasons).tolist()
        answer._found = self
        if both := {} if self.ids is None else {*answer.kept} & {ids[i] for i in because}:
            warnings.warn(
                f"{many(len(both), SHARED_IDS)}, such as {min(both, key=repr)!r}: do not delete by "
                "ids; give records without ids, or a table (text=…), whose kept rows are returned",
                stacklevel=3,
            )
        return answer

    def kept(self, because: Mapping[int, int] | None = None) -> list[int]:
        """Return the positions of the kept records, ascending."""
        removed = self._reasons()[0] if because is None else because
        return [i for i in range(self.n) if i not in removed]

    def _reasons(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return {removed position: kept position}, and the part of it that are pairs."""
        because: dict[int, int] = {}
        pairs: dict[int, int] = {}
        counters = Counters("library", reports="nowhere")
        lines = decide_edges([b"".join(self.edges)], self.settings, counters, io.BytesIO)
        for place, _, kept, similarity in (line.rstrip(b"\n").split(b"\t") for line in lines):
            gone = int(place, 16) - NEW
            because[gone] = self.position[int(kept)]
            if similarity != answer_lines.NO_PAIR:
                pairs[gone] = because[gone]
        return dict(sorted(because.items())), pairs

    def _similarities(self, partners: dict[int, int]) -> dict[int, Fraction]:
        """Return {position: similarity} for records that are a pair with their partner."""
        ends = np.array([*partners.items()], np.int64).reshape(-1, 2)
        left, right = np.searchsorted(self.rows, ends.T)
        found = self.settings.measure.verified(self.sets, left, right)
        return {
            int(self.rows[row]): Fraction(part, whole)
            for row, part, whole in zip(found.left, found.part.tolist(), found.whole.tolist())
        }

    def at(self, threshold: str) -> FoundEdges:
        """Return the search with the edges that reach a threshold; UsageError if it is lower."""
        tag, rule = self.settings.tag, self.settings.rule
        if tag and tag.apart and rule.components_first:
            again = f"neardup.deduplicate(records, {threshold}, rule='cluster', across=…)"
            raise UsageError(f"clusters across values are found by another search: {again}")
        measure, old = lookup_measure(self.settings, threshold), self.settings.threshold
        new = Threshold.parse(threshold)
        if new.num * old.den < old.num * new.den:
            raise UsageError(
                f"--threshold: {threshold} is below that of this answer, {old.exactly()}; call "
                f"neardup.deduplicate(records, {exact_text(Fraction(new.num, new.den))}) instead"
            )
        if isinstance(measure, SetMeasure):
            measure = measure.undirected()
        settings = self.settings._replace(threshold=new, measure=measure)
        return replace(self, settings=settings, edges=self._edges_at(measure))

    def _edges_at(self, measure: Measure) -> list[bytes]:
        fields = answer_lines.parse_edge_lines(self.edges)
        size, same = answer_lines.EDGE, (answer_lines.SAME_SET, answer_lines.TWIN)
        to_check = [each for each in fields if len(each) == size and each[2] not in same]
        left, right = self._rows_of(to_check, 0), self._rows_of(to_check, 1)
        found = measure.verified(self.sets, left, right)
        good = set(zip(found.left.tolist(), found.right.tolist()))
        is_good = iter([ends in good for ends in zip(left.tolist(), right.tolist())])
        lines = [
            line
            for line, each in zip(self.edges, fields)
            if len(each) != size or each[2] in same or next(is_good)
        ]
        members = [each for each in fields if len(each) == answer_lines.MEMBER]
        if members and self.settings.rule.components_first:
            lines = [line for line in lines if line.count(b"\t") != answer_lines.MEMBER - 1]
            lines = sorted([*lines, *_in_new_clusters(members, measure)])
        return lines

    def _rows_of(self, fields: list[list[bytes]], column: int) -> np.ndarray:
        return rows_at(self.settings, [each[column] for each in fields], self.rows)


def rows_at(settings: Settings, tagged: list[bytes], positions: np.ndarray) -> np.ndarray:
    """Return the places of records with these tagged ids in `positions`, ascending (int64)."""
    assert settings.tag
    places = settings.tag.places(tagged) - np.uint64(NEW)
    return np.searchsorted(positions, places.astype(np.int64))


def _in_new_clusters(members: list[list[bytes]], measure: Measure) -> Iterable[bytes]:
    """Yield member lines of dense clusters, which a higher threshold may have divided.

    The clusters are connected by their sets, one against all later ones that are not connected yet.
    """
    clusters: dict[bytes, list[list[bytes]]] = {}
    for each in members:
        clusters.setdefault(each[1], []).append(each)
    for name, some in clusters.items():
        sets, forest = decode_sets([each[3] for each in some]), Forest(len(some))
        numbers = np.arange(len(some))
        for i in range(len(some)):
            roots = forest.roots(numbers)
            later = np.flatnonzero((roots != roots[i]) & (numbers > i))
            found = measure.verified(sets, np.full(len(later), i), later)
            forest.join_all(found.left, found.right)
        for each, root in zip(some, forest.roots(numbers).tolist()):
            member = answer_lines.Member(b"%b.%d" % (name, root), each[2] == b"1", each[3])
            yield answer_lines.format_member(each[0], member)
