"""The ids that very many records have: most often no ids at all, but the first words of lines.

Ids are counted as in Misra, Gries (Finding repeated elements, 1982), many at a time:

    AT_ONCE   4,096 ids.  Where no two of them are equal, all are forgotten
    HELD      16,384 counts at most; with more, all go down by that of the first one not to stay
    STAYING   1,000 of them

Either way one is taken from more than STAYING different ids at a time.  So a count is short of the
truth by `short` at most, which is at most a 1,001st of the records, and none is lost that one in a
hundred has.  Counts of several workers are added up.  Cost: less than 100 ns a record; 5 MB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from neardup.runtime.errors import piped, shown, typed_numbering, typed_with

AT_ONCE, HELD, STAYING = 1 << 12, 1 << 14, 1000
LONGEST = 256  # bytes; longer ids are passed over, so that what is held is bounded
SHARE, FEW = 100, 10  # told is an id on more than one in so many records, and on more than so many
ON_CLUSTER = "records of a frequent id"  # a counter, which cannot hold the id


class Frequent(NamedTuple):
    """An id on `times` of so many records, or on more of them (`at_least`)."""

    id: str
    times: int
    at_least: bool
    records: int
    of_rows: bool = False  # which can be numbered

    @property
    def too_frequent(self) -> bool:
        return self.times > FEW and self.times * SHARE > self.records


class FrequentIds:
    """
    >>> ids = FrequentIds()
    >>> ids.add([b"a", b"b", b"a"], size=3)
    >>> most_frequent([ids.as_dict()])
    Frequent(id='a', times=2, at_least=False, records=3, of_rows=False)
    """

    def __init__(self) -> None:
        self.of_rows = False
        self._waiting: list[bytes] = []
        self._counts: Counter[bytes] = Counter()
        self._records = self._short = 0

    def add(self, ids: Sequence[bytes], size: int) -> None:
        """Some more, of so many bytes in all; b"" is that of a row that has none."""
        self._records += len(ids)
        if b"" in ids:
            ids = [id_ for id_ in ids if id_]
        if size > LONGEST * len(ids):  # else none can be long, but a few
            ids = [id_ for id_ in ids if len(id_) <= LONGEST]
        self._waiting += ids
        if len(self._waiting) >= AT_ONCE:
            self._count()

    def _count(self) -> None:
        """Those that wait."""
        if STAYING < len(self._waiting) == len(set(self._waiting)):
            self._short += 1
        else:
            self._counts.update(self._waiting)
        self._waiting = []
        if len(self._counts) > HELD:
            least = sorted(self._counts.values())[-STAYING - 1]
            self._short += least
            left = {id_: count - least for id_, count in self._counts.items() if count > least}
            self._counts = Counter(left)

    def as_dict(self) -> dict:
        """In plain JSON values, the most frequent ones."""
        self._count()
        told = {
            id_.decode("utf-8", "backslashreplace"): count
            for id_, count in self._counts.most_common(STAYING)
        }
        how = {"of_rows": True} if self.of_rows else {}
        return {"records": self._records, "short": self._short, "ids": told, **how}


def most_frequent(reports: Sequence[dict]) -> Frequent:
    """Of several workers' ids, the one that most records have."""
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update(report["ids"])
    records = sum(report["records"] for report in reports)
    id_, count = min(counts.items(), key=lambda each: (-each[1], each[0]), default=("", 0))
    missed = any(
        report["short"] or (id_ not in report["ids"] and len(report["ids"]) == STAYING)
        for report in reports
    )
    of_rows = any(report.get("of_rows") for report in reports)
    return Frequent(id_, count, missed, records, of_rows)


def frequent_in_words(most: Frequent) -> str:
    """The warning, and what to look at."""
    id_, count, at_least, records, of_rows = most
    on = f"{'at least ' if at_least else ''}{count:,} of {records:,} records"
    return f"the id {shown(id_.encode(), 100)} is on {on}; {_advice(id_, of_rows)}"


def _advice(id_: str, of_rows: bool) -> str:
    if id_.startswith("{"):
        return f"for JSON lines type: {typed_with('--input', 'jsonl')}"
    if of_rows:
        return f"name another field with --id, or number the rows; type: {typed_numbering()}"
    numbered = piped("nl -ba -w1", flag="--input", value="text")
    return (
        "does each line begin with an id of its own?  With --input text it ends at a tab, or else "
        f"at the first blank; of texts without ids, number the lines: {numbered}"
    )


def frequent_on_cluster(count: int) -> str:
    """The same warning, of what tasks have counted."""
    return (
        f"one id, or a few, are on {count:,} records as tasks have counted; their logs name them, "
        "behind `frequent`: yarn logs -applicationId …"
    )
