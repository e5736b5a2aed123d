"""What a run counted, in words."""

from __future__ import annotations

from collections.abc import Iterable

from neardup.process.errors import shown
from neardup.process.frequent import (
    ON_CLUSTER,
    SHARE,
    frequent_in_words,
    frequent_on_cluster,
    most_frequent,
)
from neardup.process.typed import typed_with

SHOWN_BAD_LINES = 10
BAD = "bad lines: "
SHUFFLED = "bytes shuffled"  # what the mappers have written
CANDIDATES, PAIRS = "candidate pairs", "pairs"  # of records: all of them
# Where an output needs few of the pairs: pairs of sets that were verified, if need be several
# times, and the pairs of records it is made from.  Copies are pairs that need no comparison.
COMPARISONS, USED = "comparisons", "pairs used"
CROWDED = "members of crowds"  # among which the decision looks for pairs; not shown
REPEATED = "repeated ids"
SINGLE = "texts of a single shingle"
FEW_SINGLE = 10  # it is worth a word from one in ten records on
OLD_RECORDS = "… old ones"
REMOVED = "records removed"
STAYING = "records that stay"
CHAINED = "… that only a chain would remove"
CHAINED_AWAY = "… removed by a chain alone"
IN_CLUSTERS, CLUSTERS, LARGEST = "records in clusters", "clusters", "records of the largest cluster"
EDGES, LINKS, UNSETTLED = "edges", "links", "unsettled links"
ORDER = (
    "records",
    OLD_RECORDS,
    "bad lines",
    "records without shingles",
    "keys",
    "records without a key",
    SHUFFLED,
    "keyed lines",
    "buckets with more than one record",
    CANDIDATES,
    PAIRS,
    COMPARISONS,
    USED,
    REPEATED,
    "unique pairs",
    "repeated pairs",
    REMOVED,
    CHAINED_AWAY,
    STAYING,
    CHAINED,
    EDGES,
    LINKS,
    UNSETTLED,
    IN_CLUSTERS,
    CLUSTERS,
    LARGEST,
)


def describe(reports: list[dict], whole: bool = False, packed: bool = False) -> str:
    """The summary of one stage, or of all stages of a run (`whole`); a line each.

    `packed`: the engine packs what is shuffled, so that less of it travels than was counted.

    >>> print(describe([{"stage": "mapper", "counts": {"records": 2000, "keys": 30000},
    ...     "bad_lines": [], "promise": "", "started": 0.0, "ended": 0.5}]))
    records                                2,000
    bad lines                                  0
    keys                                  30,000
    seconds                           mapper 0.5
    """
    counts = total(report["counts"] for report in reports)
    if REPEATED in counts and REMOVED not in counts:
        counts[REPEATED] = _of_one_id(reports) or counts[REPEATED]  # not all of them meet
    if "records" in counts:
        reasons = {name: n for name, n in counts.items() if name.startswith(BAD)}
        counts["bad lines"] = sum(reasons.values())
    if "records" in counts and REMOVED in counts:
        counts[STAYING] = counts["records"] - counts.get(OLD_RECORDS, 0) - counts[REMOVED]
    lines = [f"{name:33} {counts[name]:>10,}" for name in ORDER if name in counts]
    if counts.get("bad lines"):
        listed = ", ".join(f"{n:,} {name[len(BAD) :]}" for name, n in sorted(reasons.items()))
        lines = [line + f"  ({listed})" if line.startswith("bad") else line for line in lines]
    if packed:
        said = "  (before packing)"
        lines = [line + said if line.startswith(SHUFFLED) else line for line in lines]
    ids = sorted(filter(None, (report.get("repeated") for report in reports)))
    if ids:
        told = f"  ({first_repeated(ids[0], decided=REMOVED in counts)})"
        lines = [line + told if line.startswith(REPEATED) else line for line in lines]
    promise = next((report["promise"] for report in reports if report["promise"]), "")
    if promise and {REMOVED, IN_CLUSTERS} & counts.keys():
        promise += "; decided on the pairs that were found"
    if promise:
        lines.append(f"{'promise':33} {promise}")
    seconds = ", ".join(f"{name} {spent:.1f}" for name, spent in seconds_of(reports).items())
    lines.append(f"{'seconds':33} {seconds}")
    read = ("records", "bad lines", "keyed lines")
    pairs = counts.get(PAIRS, counts.get(USED, 0 if whole else None))
    nothing_read = counts.get("bad lines") and not counts["records"]
    none = pairs == 0 and not counts.get(CROWDED)
    if none and any(counts.get(name) for name in read) and not nothing_read:
        lines.append(_why_no_pair(reports, counts))
    lines += [*_frequent(reports, counts), *_single(counts)]
    return "\n".join(lines)


def _single(counts: dict[str, int]) -> list[str]:
    """A hint where many texts can only be found by an equal one."""
    single, records = counts.get(SINGLE, 0), counts.get("records", 0)
    if not single or single * FEW_SINGLE < records:
        return []
    return [
        f"{single:,} of {records:,} texts are no longer than one shingle, so that only an equal "
        f"text is found; shorter shingles find more: {typed_with('--shingle', 'char:3')}"
    ]


def _of_one_id(reports: list[dict]) -> int:
    """Return the number of records if all have one id, else 0."""
    most = most_frequent([report["ids"] for report in reports if "ids" in report])
    return most.times if most.too_frequent and most.times == most.records else 0


def _why_no_pair(reports: list[dict], counts: dict[str, int]) -> str:
    if _of_one_id(reports):
        return "All records have one id, and records of one id form no pair."
    if counts.get(REPEATED):
        return "Only records of one id are similar enough, and these form no pair."
    return "No two records are similar enough to form a pair."


def _frequent(reports: list[dict], counts: dict[str, int]) -> list[str]:
    """The warning of an id that very many records have, if there is one."""
    if found := counts.get(ON_CLUSTER, 0):
        return [frequent_on_cluster(found)] if found * SHARE > counts["records"] else []
    most = most_frequent([report["ids"] for report in reports if "ids" in report])
    return [frequent_in_words(most)] if most.too_frequent else []


def first_repeated(id_: str, decided: bool = False) -> str:
    """What to know of ids that were met again, of which this is the smallest.

    >>> first_repeated("VIDEO_7")
    "the first: 'VIDEO_7'; records of one id form no pair"
    """
    what = "each line is a record of its own" if decided else "records of one id form no pair"
    return f"the first: {shown(id_.encode())}; {what}"


def total(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Counts added up by name.

    >>> total([{"pairs": 1}, {"pairs": 2, "keys": 5}])
    {'pairs': 3, 'keys': 5}
    """
    sums: dict[str, int] = {}
    for some in counts:
        for name, count in some.items():
            sums[name] = sums.get(name, 0) + count
    return sums


def first_bad_lines(reports: list[dict]) -> list[str]:
    """The first ten, in the order of the input, whoever met them."""
    lines = sorted(tuple(line) for report in reports for line in report["bad_lines"])
    return [f"{place}{line}: {message}" for place, line, message in lines[:SHOWN_BAD_LINES]]


def seconds_of(reports: list[dict]) -> dict[str, float]:
    """From the first start to the last end of each stage, in order."""
    stages = list(dict.fromkeys(report["stage"] for report in sorted(reports, key=_started)))
    spans = {}
    for stage in stages:
        mine = [report for report in reports if report["stage"] == stage]
        spans[stage] = max(r["ended"] for r in mine) - min(r["started"] for r in mine)
    return spans


def _started(report: dict) -> float:
    return report["started"]
