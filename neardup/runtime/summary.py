"""The summary of a run in words, and whether its input was in the right format.

Whether the input was what it was taken for: judged once, at the end, by what was counted.

Lines of which none could be read, or fewer than --max-bad allows, end in one message, and exit code
1: with what they look like, and the line to type.  Of two collections each is judged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Callable

from neardup.runtime.errors import StageError, piped, shown, typed_files, typed_with
from neardup.runtime.frequent import (
    ON_CLUSTER,
    SHARE,
    frequent_in_words,
    frequent_on_cluster,
    most_frequent,
)

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
EDGES = "edges"
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


MAX_BAD = Fraction(1, 2)
OLD_BAD = "bad old lines"
LIKE = "bad lines like "  # of the first ones of each process; then a look
JSONL, JSON_PART, SHINGLES, WEIGHTED = "jsonl", "parts of json", "shingles", "weighted shingles"
NUMBERS, CSV, TSV, TEXT = "shingles and commas", "csv", "tsv", "text"
JSON_ARRAY, CSV_HEADER, TSV_HEADER = "a json array", "a csv header", "a tsv header"  # first lines
PROSE = "prose"  # text without a tab, whose first word is no id
OTHER = "nothing known"
DOCUMENT_LINES = 100  # files of no more lines each, of prose, are documents
DOCUMENTS = "each line or row is a record; files that are one document each cannot be read"
NAMED_COLUMNS = "; the first line has to name the columns, as id{}text"
ADVICE: Mapping[str, tuple[str, Callable[[], str]]] = {
    JSONL: ("JSON lines", lambda: typed_with("--input", "jsonl")),
    JSON_PART: ("JSON, but not one object a line", lambda: _by_jq(".")),
    JSON_ARRAY: ("a JSON array", lambda: _by_jq(".[]")),
    CSV: ("CSV" + NAMED_COLUMNS.format(","), lambda: typed_with("--input", "csv")),
    CSV_HEADER: ("CSV", lambda: typed_with("--input", "csv")),
    TSV: ("TSV" + NAMED_COLUMNS.format(", tab, "), lambda: typed_with("--input", "tsv")),
    TSV_HEADER: ("TSV", lambda: typed_with("--input", "tsv")),
    TEXT: ("text", lambda: typed_with("--input", "text")),
    PROSE: ("text", lambda: typed_with("--input", "text")),
    SHINGLES: ("shingle lines", lambda: typed_with("--input", "shingles")),
    WEIGHTED: ("shingles with weights", lambda: typed_with("--weights", "own")),
    NUMBERS: ("shingles between commas", lambda: piped("sed 's/[,;]/ /g'")),
}


def _by_jq(what: str) -> str:
    return piped(f"jq -c '{what}'", flag="--input", value="jsonl")


def judged(counts: Mapping[str, int], max_bad: Fraction) -> None:
    """StageError where the input, or the old records, could not be read; on stderr a warning where
    it looks like something else all the same.

    >>> judged({"records": 1, "bad lines: no id": 1}, Fraction(1, 2))
    >>> try:
    ...     judged({"records": 0, "bad lines: no id": 7, "bad lines like text": 6}, Fraction(1))
    ... except StageError as error:
    ...     print(error)
    no line of 7 could be read; they look like text; type: --input text
    """
    bad, old_bad = bad_lines(counts), counts.get(OLD_BAD, 0)
    old, records = counts.get(OLD_RECORDS, 0), counts.get("records", 0)
    if old + old_bad == records + bad:  # as in an index
        _judge(records, bad, "", counts, max_bad)
    else:
        _judge(records - old, bad - old_bad, "", counts, max_bad)
        _judge(old, old_bad, "old ", counts, max_bad)
    for look in CSV_HEADER, TSV_HEADER:  # without blanks, and so the only line that is bad
        if LIKE + look in counts:
            like, line = ADVICE[look]
            told = f"A first line names columns, as in {like}; for that, type: {line()}"
            print(told, file=sys.stderr)


def bad_lines(counts: Mapping[str, int]) -> int:
    return sum(n for name, n in counts.items() if name.startswith(BAD))


def _judge(
    records: int, bad: int, which: str, counts: Mapping[str, int], max_bad: Fraction
) -> None:
    if bad <= max_bad * (records + bad) and (records or not bad):
        return
    one, several = f"{which}line", f"{which}lines"
    if not records:
        raise StageError(f"no {one} of {bad:,} could be read; {_advice(counts)}")
    raise StageError(
        f"of {records + bad:,} {several} {bad:,} could not be read, which is more than --max-bad "
        f"{in_words(max_bad)} (with 1, all may be); {_advice(counts)}"
    )


def in_words(share: Fraction) -> str:
    """
    >>> in_words(Fraction("0.25")), in_words(Fraction("1/3"))
    ('0.25', '1/3')
    """
    decimal = f"{float(share):.9g}"
    return decimal if Fraction(decimal) == share else str(share)


def _advice(counts: Mapping[str, int]) -> str:
    looks = {name[len(LIKE) :]: n for name, n in counts.items() if name.startswith(LIKE)}
    look = look_of_most(looks)
    lines, files = counts.get("records", 0) + bad_lines(counts), len(typed_files())
    if look == PROSE and files > 1 and lines <= DOCUMENT_LINES * files:
        return DOCUMENTS
    if look not in ADVICE:
        return "a line is an id and its shingles, or with --input text an id, a tab and the text"
    like, line = ADVICE[look]
    return f"they look like {like}; type: {line()}"


def look_of_most(looks: Mapping[str, int]) -> str:
    """What most lines look like, seen with the first lines of files.

    >>> look_of_most({"text": 60, "csv": 38, "a csv header": 1, "nothing known": 2})
    'a csv header'
    """
    votes = dict(looks)
    for header, lines in (CSV_HEADER, CSV), (TSV_HEADER, TSV):
        if header in votes:  # what stands between quotes may go over several lines
            votes[header] += votes.pop(lines, 0) + votes.pop(TEXT, 0)
    if JSON_ARRAY in votes:
        votes[JSON_ARRAY] += votes.pop(JSON_PART, 0) + votes.pop(JSONL, 0)
    prose = votes.pop(PROSE, 0)
    if prose:
        votes[TEXT] = votes.get(TEXT, 0) + prose
    most = max(votes, key=lambda look: votes[look], default=OTHER)
    return PROSE if most == TEXT and 2 * prose > votes[TEXT] else most
