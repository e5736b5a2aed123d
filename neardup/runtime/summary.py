"""The summary of a run in words, and whether its input was in the right format.

`describe` adds up the reports of all stages and makes the lines of the summary.  `judged` is called
once, at the end: where no line could be read, or more are bad than --max-bad allows, the run ends
with one message and exit code 1; it names what the lines look like, and the line to type.  Of two
collections each is judged.

An id that most records have is most often not an id at all, but the first word of each line.
"""

import sys
from collections.abc import Iterable, Mapping
from fractions import Fraction

from neardup.runtime import errors
from neardup.runtime.errors import StageError, piped, shown, typed_with

SHOWN_BAD_LINES = 10
BAD = "bad lines: "
SHUFFLED = "bytes shuffled"  # what the mappers have written
CANDIDATES, PAIRS = "candidate pairs", "pairs"  # of records: all of them
# Where an output needs few of the pairs: pairs of sets that were verified, if need be several
# times, and the pairs of records it is made from.  Copies are pairs that need no comparison.
COMPARISONS, USED = "comparisons", "pairs used"
DENSE_MEMBERS = "members of dense clusters"  # among which the decision looks for pairs; not shown
REPEATED = "repeated ids"
ONE_ID = "records of one id"  # that most records of a stage have; not shown
FEW = 10  # records of one id are nothing to warn of
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
MAX_BAD = Fraction(1, 2)
OLD_BAD = "bad old lines"
LIKE = "bad lines like "  # of the first ones of each process; then a look
JSONL, JSON_PART, SHINGLES, WEIGHTED = "jsonl", "parts of json", "shingles", "weighted shingles"
NUMBERS, CSV, TSV, TEXT = "shingles and commas", "csv", "tsv", "text"
JSON_ARRAY, CSV_HEADER, TSV_HEADER = "a json array", "a csv header", "a tsv header"  # first lines
PROSE = "prose"  # text without a tab, whose first word is not an id
OTHER = "nothing known"
DOCUMENT_LINES = 100  # files of no more lines each, of prose, are documents
DOCUMENTS = "each line or row is a record; files that are one document each cannot be read"
NAMED_COLUMNS = "; the first line has to name the columns, as id{}text"
# What lines look like, and the option, or the command before the job, that reads them.
ADVICE = {
    JSONL: ("JSON lines", "--input jsonl"),
    JSON_PART: ("JSON, but not one object a line", "jq -c '.'"),
    JSON_ARRAY: ("a JSON array", "jq -c '.[]'"),
    CSV: ("CSV" + NAMED_COLUMNS.format(","), "--input csv"),
    CSV_HEADER: ("CSV", "--input csv"),
    TSV: ("TSV" + NAMED_COLUMNS.format(", tab, "), "--input tsv"),
    TSV_HEADER: ("TSV", "--input tsv"),
    TEXT: ("text", "--input text"),
    PROSE: ("text", "--input text"),
    SHINGLES: ("shingle lines", "--input shingles"),
    WEIGHTED: ("shingles with weights", "--weights own"),
    NUMBERS: ("shingles between commas", "sed 's/[,;]/ /g'"),
}


def describe(reports: list[dict], whole: bool = False, packed: bool = False) -> str:
    """The summary of one stage, or of all stages of a run (`whole`); a line for each count.

    `packed`: the engine compresses what is shuffled, so that fewer bytes are sent than were
    counted.

    >>> print(describe([{"stage": "mapper", "counts": {"records": 2000, "keys": 30000},
    ...     "bad_lines": [], "promise": "", "started": 0.0, "ended": 0.5}]))
    records                                2,000
    bad lines                                  0
    keys                                  30,000
    seconds                           mapper 0.5
    """
    counts = total(report["counts"] for report in reports)
    decided = REMOVED in counts
    one_id = _one_id_of_all(reports, counts)
    if REPEATED in counts and not decided and one_id:
        counts[REPEATED] = counts[ONE_ID]  # not all of them share a key
    if "records" in counts:
        counts["bad lines"] = bad_lines(counts)
        if decided:
            counts[STAYING] = counts["records"] - counts.get(OLD_RECORDS, 0) - counts[REMOVED]
    notes = _notes(reports, counts, packed)
    lines = [
        f"{name:33} {counts[name]:>10,}{notes.get(name, '')}" for name in ORDER if name in counts
    ]
    promise = next((report["promise"] for report in reports if report["promise"]), "")
    if promise and {REMOVED, IN_CLUSTERS} & counts.keys():
        promise += "; decided on the pairs that were found"
    if promise:
        lines.append(f"{'promise':33} {promise}")
    seconds = ", ".join(f"{name} {spent:.1f}" for name, spent in seconds_of(reports).items())
    lines.append(f"{'seconds':33} {seconds}")
    lines += _why_no_pair(counts, whole, one_id)
    return "\n".join([*lines, *of_one_id(reports, counts), *_single(counts)])


def _notes(reports: list[dict], counts: dict[str, int], packed: bool) -> dict[str, str]:
    """What is written in brackets behind a count."""
    notes = {SHUFFLED: "  (before packing)"} if packed else {}
    if counts.get("bad lines"):
        reasons = sorted(
            (name[len(BAD) :], n) for name, n in counts.items() if name.startswith(BAD)
        )
        notes["bad lines"] = f"  ({', '.join(f'{n:,} {reason}' for reason, n in reasons)})"
    if ids := sorted(filter(None, (report.get("repeated") for report in reports))):
        notes[REPEATED] = f"  ({first_repeated(ids[0], decided=REMOVED in counts)})"
    return notes


def _why_no_pair(counts: dict[str, int], whole: bool, one_id: bool) -> list[str]:
    read = any(counts.get(name) for name in ("records", "bad lines", "keyed lines"))
    pairs = counts.get(PAIRS, counts.get(USED, 0 if whole else None))
    none_read = counts.get("bad lines") and not counts["records"]
    if pairs != 0 or counts.get(DENSE_MEMBERS) or not read or none_read:
        return []
    if one_id:
        return ["All records have one id, and records of one id form no pair."]
    if counts.get(REPEATED):
        return ["Only records of one id are similar enough, and these form no pair."]
    return ["No two records are similar enough to form a pair."]


def _one_id_of_all(reports: list[dict], counts: Mapping[str, int]) -> bool:
    """Whether all records have the same id, and there are more than a few."""
    ids = {report["one_id"] for report in reports if report.get("one_id")}
    with_ids = counts.get("records", 0) - counts.get("records without shingles", 0)
    return len(ids) == 1 and FEW < counts[ONE_ID] == with_ids


def of_one_id(reports: list[dict], counts: Mapping[str, int]) -> list[str]:
    """The warning of an id that most records have, if there is one.

    On a cluster nobody knows which: the tasks' logs name it.
    """
    found, records = counts.get(ONE_ID, 0), counts.get("records", 0)
    if found <= FEW or 2 * found <= records:
        return []
    ids = sorted({report["one_id"] for report in reports if report.get("one_id")})
    if not ids:
        return [
            f"one id, or a few, are on {found:,} of {records:,} records as tasks have counted; "
            f"their logs name them, behind `{ONE_ID}`: yarn logs -applicationId …"
        ]
    which = f"the id {shown(ids[0].encode(), 100)}" + (" or another" if len(ids) > 1 else "")
    on = f"{found:,}" if found == records else f"at least {found:,}"
    of_rows = any(report.get("of_rows") for report in reports)
    return [f"{which} is on {on} of {records:,} records; {_advice_on_ids(ids[0], of_rows)}"]


def _advice_on_ids(id_: str, of_rows: bool) -> str:
    if id_.startswith("{"):
        return f"for JSON lines type: {typed_with('--input', 'jsonl')}"
    if of_rows:
        return f"name another field with --id, or number the rows; type: {errors.typed_numbering()}"
    numbered = piped("nl -ba -w1", flag="--input", value="text")
    return (
        "does each line begin with an id of its own?  With --input text it ends at a tab, or else "
        f"at the first blank; of texts without ids, number the lines: {numbered}"
    )


def _single(counts: dict[str, int]) -> list[str]:
    """A hint where for many texts only an equal one can be found."""
    single, records = counts.get(SINGLE, 0), counts.get("records", 0)
    if not single or single * FEW_SINGLE < records:
        return []
    return [
        f"{single:,} of {records:,} texts are no longer than one shingle, so that only an equal "
        f"text is found; shorter shingles find more: {typed_with('--shingle', 'char:3')}"
    ]


def first_repeated(id_: str, decided: bool = False) -> str:
    """What to know of repeated ids, of which this is the smallest.

    >>> first_repeated("VIDEO_7")
    "the first: 'VIDEO_7'; records of one id form no pair"
    """
    what = "each line is a record of its own" if decided else "records of one id form no pair"
    return f"the first: {shown(id_.encode())}; {what}"


def total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
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
    """The first ten of all stages, in the order of the input."""
    lines = sorted(tuple(line) for report in reports for line in report["bad_lines"])
    return [f"{place}{line}: {message}" for place, line, message in lines[:SHOWN_BAD_LINES]]


def seconds_of(reports: list[dict]) -> dict[str, float]:
    """Seconds from the first start to the last end of each stage, in order of the starts."""
    spans: dict[str, tuple[float, float]] = {}
    for report in sorted(reports, key=lambda report: report["started"]):
        start, end = spans.get(report["stage"], (report["started"], report["ended"]))
        spans[report["stage"]] = start, max(end, report["ended"])
    return {stage: end - start for stage, (start, end) in spans.items()}


def judged(counts: Mapping[str, int], max_bad: Fraction) -> None:
    """Raise StageError where the input, or the old records, could not be read; print a warning
    where it was read, but looks like something else.

    >>> judged({"records": 1, "bad lines: no id": 1}, Fraction(1, 2))
    >>> try:
    ...     judged({"records": 0, "bad lines: no id": 7, "bad lines like text": 6}, Fraction(1))
    ... except StageError as error:
    ...     print(error)
    no line of 7 could be read; they look like text; type: --input text
    """
    bad, old_bad = bad_lines(counts), counts.get(OLD_BAD, 0)
    old, records = counts.get(OLD_RECORDS, 0), counts.get("records", 0)
    collections = [(records - old, bad - old_bad, ""), (old, old_bad, "old ")]
    if old + old_bad == records + bad:  # as in an index
        collections = [(records, bad, "")]
    for good, wrong, which in collections:
        if wrong and not good:
            raise StageError(f"no {which}line of {wrong:,} could be read; {_advice(counts)}")
        if wrong > max_bad * (good + wrong):
            raise StageError(
                f"of {good + wrong:,} {which}lines {wrong:,} could not be read, which is more than "
                f"--max-bad {in_words(max_bad)} (with 1, all may be); {_advice(counts)}"
            )
    for look in CSV_HEADER, TSV_HEADER:  # without blanks, and so the only line that is bad
        if LIKE + look in counts:
            like, line = _advice_for(look)
            text = f"A first line names columns, as in {like}; for that, type: {line}"
            print(text, file=sys.stderr)


def bad_lines(counts: Mapping[str, int]) -> int:
    """The sum of the counts of all reasons."""
    return sum(n for name, n in counts.items() if name.startswith(BAD))


def in_words(share: Fraction) -> str:
    """A share as a decimal number, if it is one.

    >>> in_words(Fraction("0.25")), in_words(Fraction("1/3"))
    ('0.25', '1/3')
    """
    decimal = f"{float(share):.9g}"
    return decimal if Fraction(decimal) == share else str(share)


def _advice_for(look: str) -> tuple[str, str]:
    """What lines of this look are like, and the line to type for them."""
    like, remedy = ADVICE[look]
    if remedy.startswith("--"):
        return like, typed_with(*remedy.split())
    flags = {"flag": "--input", "value": "jsonl"} if remedy.startswith("jq") else {}
    return like, piped(remedy, **flags)


def _advice(counts: Mapping[str, int]) -> str:
    """What bad lines look like, and the line to type."""
    looks = {name[len(LIKE) :]: n for name, n in counts.items() if name.startswith(LIKE)}
    look = look_of_most(looks)
    lines, files = counts.get("records", 0) + bad_lines(counts), len(errors.typed_files())
    if look == PROSE and files > 1 and lines <= DOCUMENT_LINES * files:
        return DOCUMENTS
    if look not in ADVICE:
        return "a line is an id and its shingles, or with --input text an id, a tab and the text"
    like, line = _advice_for(look)
    return f"they look like {like}; type: {line}"


def look_of_most(looks: Mapping[str, int]) -> str:
    """What most lines look like; the first lines of files, which name columns, count for more.

    >>> look_of_most({"text": 60, "csv": 38, "a csv header": 1, "nothing known": 2})
    'a csv header'
    """
    votes = dict(looks)
    for header, lines in (CSV_HEADER, CSV), (TSV_HEADER, TSV):
        if header in votes:  # a quoted value may have several lines
            votes[header] += votes.pop(lines, 0) + votes.pop(TEXT, 0)
    if JSON_ARRAY in votes:
        votes[JSON_ARRAY] += votes.pop(JSON_PART, 0) + votes.pop(JSONL, 0)
    prose = votes.pop(PROSE, 0)
    if prose:
        votes[TEXT] = votes.get(TEXT, 0) + prose
    most = max(votes, key=lambda look: votes[look], default=OTHER)
    return PROSE if most == TEXT and 2 * prose > votes[TEXT] else most
