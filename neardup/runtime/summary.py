"""Summarise a run, and check at its end that the input was in the expected format.

`describe` adds up the reports of all stages: the result, what was wrong with the input, the promise
and the time, or with -v all counts.  `judged` is called once, at the end: if no line could be
read, or more are bad than --max-bad allows, the run ends with exit code 1, and a message says what
the first lines of a file look like (`looks`), or explains the most frequent reason.  Old and new
files are judged separately.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from neardup.runtime.program import TO_NUMBER, StageError, printable, shown, to_add

QUIET, SHORT_SUMMARY, VERBOSE = -1, 0, 1  # of -q, neither, -v
SHOWN_BAD_LINES, MAX_BAD_LINES = 10, 100_000  # without and with -v
BAD = "bad lines: "
SHUFFLED = "bytes shuffled"  # what the mappers have written
CANDIDATES, PAIRS = "candidate pairs", "pairs"  # all pairs of records
# For outputs that need few pairs: the pairs of sets that were verified, and the pairs of records
# that the output is made from.  Copies are pairs that need no comparison.
COMPARISONS, USED = "comparisons", "pairs used"
DENSE_MEMBERS = "members of dense clusters"  # the decision searches for pairs among them; not shown
REPEATED = "repeated ids"
SHARED_IDS = "removed ids that kept records have, too"
SUCH_AS = (
    "such as: "  # followed by such an id, quoted as in a URI, since Hadoop's counters have names
)
KEPT_OUT = "pairs kept out by --not-pairs"
# In counts of tasks that see a part of the records, the number of ids is in the name.
WITH_LISTED_ID = "records with one of the {} ids of --not-pairs"
ONE_ID = "records of one id"  # if most records of a stage have this id; not shown
FEW = 10  # no warning about so few records of one id
SINGLE = "texts of a single shingle"
HALVED = "texts with half a surrogate pair, read as U+FFFD"
REPEATING = "texts of few words, much repeated, in any order"
FEW_SINGLE = 10  # a warning is printed if one in ten records is such a text
WITHOUT_VALUE = "records without a value of --within or --across, compared with none"
OLD_RECORDS = "… old ones"
RENAMED: dict[str, str] = {}  # words for counts, set by a command that makes a run; "" hides one
REMOVED = "records removed"
STAYING = "records kept"
CHAINED = "… similar only through a chain"
CHAINED_AWAY = "… removed through a chain only"
IN_CLUSTERS, CLUSTERS, LARGEST = "records in clusters", "clusters", "records of the largest cluster"
SHARED_NAMES = "clusters with the name of another one, because ids repeat"
LEFT_OUT = "bad lines left out of the answer"  # an answer holds them only in the input's format
EMPTIED, NAMED = "records without words left", 10  # with `passages`; so many are named
LOST = "removed rows whose values --merge adds to no row: their kept ones are in --against"
EDGES = "edges"
COMPILED = "tasks with compiled kernels"
ORDER = (
    "records",
    OLD_RECORDS,
    "bad lines",
    "records without shingles",
    WITHOUT_VALUE,
    HALVED,
    REPEATING,
    "keys",
    "records without a key",
    SHUFFLED,
    "keyed lines",
    "buckets with more than one record",
    CANDIDATES,
    PAIRS,
    COMPARISONS,
    USED,
    KEPT_OUT,
    REPEATED,
    SHARED_IDS,
    "unique pairs",
    "repeated pairs",
    REMOVED,
    CHAINED_AWAY,
    STAYING,
    CHAINED,
    LEFT_OUT,
    LOST,
    EMPTIED,
    EDGES,
    IN_CLUSTERS,
    CLUSTERS,
    SHARED_NAMES,
    LARGEST,
    COMPILED,
)
HADOOP_NAME = 63  # characters of a counter's name
ADVICE = {  # by a word of the most frequent reason
    "fingerprint": "a fingerprint has a hexadecimal digit for each 4 of its --bits",
    "UTF-8": "name their encoding with --encoding",
    "text": "name the field of the text in each file, as in --text body or --text text,body",
    "id is neither": "an id is a text or a whole number; name its field, as in --id key",
    "in the id": "name another field, as in --id key, or number the rows with --id ''",
    "fields than": "name the character between fields, as in --delimiter ';'",
    "JSON object": "a line is a JSON object with the fields id and text, or as --id and --text say",
    "": "a line is an id and its shingles, or with --input text an id, a tab and the text",
}
TROUBLE = (
    *(
        KEPT_OUT,
        "bad lines",
        LEFT_OUT,
        LOST,
        "records without shingles",
        WITHOUT_VALUE,
        HALVED,
        REPEATING,
        "records without a key",
        REPEATED,
        SHARED_IDS,
        SHARED_NAMES,
        EMPTIED,
    ),
)
MAX_BAD = Fraction(1, 2)
OLD_BAD = "bad old lines"
SEEMS = "a file "  # followed by what its first lines look like, though some could be read
DOCUMENTS = (
    "for files that are one document each, type: python3 -m neardup documents {0}; or, for other "
    "commands and clusters: python3 -m neardup documents --output lines {0} > documents.jsonl"
)


def print_summary(
    reports: list[dict[str, Any]],
    verbosity: int,
    whole: bool = True,
    packed: bool = False,
    wrote: Sequence[str] = (),
    more: Sequence[str] = (),
) -> None:
    """Print the first bad lines, the summary and the lines `more` on stderr; nothing with -q."""
    if verbosity > QUIET:
        bad = sorted(tuple(line) for report in reports for line in report["bad_lines"])
        shown = bad if verbosity >= VERBOSE else bad[:SHOWN_BAD_LINES]
        first = [f"{printable(b[0])}{b[1]}: {b[2]}" for b in shown]
        summary = describe(reports, verbosity, whole, packed, wrote)
        print("\n".join([*first, summary, *more]), file=sys.stderr)


def describe(
    reports: list[dict[str, Any]],
    verbosity: int = VERBOSE,
    whole: bool = False,
    packed: bool = False,
    wrote: Sequence[str] = (),
) -> str:
    """Return the summary of one stage, or of a `whole` run.

    `packed`: the engine compresses what is shuffled; `wrote`: the files of the answer.

    >>> mapper = {"stage": "mapper", "counts": {"records": 2000, "keys": 30000},
    ...     "bad_lines": [], "promise": "", "started": 0.0, "ended": 0.5}
    >>> print(describe([mapper], SHORT_SUMMARY))
    mapper: 2,000 records, 30,000 keys; 0.5 seconds
    >>> print(describe([mapper], VERBOSE))
    records                                2,000
    bad lines                                  0
    keys                                  30,000
    seconds                           mapper 0.5
    """
    counts = total(report["counts"] for report in reports)
    if "records" in counts:
        counts["bad lines"] = bad_lines(counts)
        if REMOVED in counts:
            counts[STAYING] = counts["records"] - counts.get(OLD_RECORDS, 0) - counts[REMOVED]
    notes = {SHUFFLED: "  (before packing)"} if packed else {}
    reasons = [f"{counts[name]:,} {name[len(BAD) :]}" for name in sorted(counts) if BAD in name]
    if reasons:
        notes["bad lines"] = f"  ({', '.join(reasons)})"
    if ids := sorted(filter(None, (report.get("repeated") for report in reports))):
        notes[REPEATED] = f"  ({first_repeated(ids[0], decided=REMOVED in counts)})"
    if REPEATING in counts:
        notes[REPEATING] = f"  (their order does not count; {to_add('--shingle', 'word:20')})"
    if SHARED_IDS in counts:
        notes[SHARED_IDS] = f"  ({such_as(counts)})"
    if EMPTIED in counts:
        notes[EMPTIED] = f": {_emptied(counts)}"
    promises = [(report["ended"], report["promise"]) for report in reports if report["promise"]]
    promise = max(promises, default=(0, ""))[1]  # the last one: a run may choose another scheme
    if verbosity < VERBOSE:
        lines = _in_short(reports, counts, notes, promise, wrote if whole else None)
    else:
        lines = _all_counts(reports, counts, notes, promise)
    named = re.compile(WITH_LISTED_ID.format("[0-9]+"))
    lines += [many(counts[name], name) for name in counts if named.fullmatch(name)]
    if not counts.get(PAIRS, counts.get(USED, 0 if whole else 1)):
        lines += _why_no_pair(counts)
    if ONE_ID in counts:
        lines += of_one_id(reports, counts)
    single, records = counts.get(SINGLE, 0), counts.get("records", 0)
    if single and single * FEW_SINGLE >= records and SINGLE not in RENAMED:
        lines.append(
            f"{single:,} of {records:,} texts are no longer than one shingle, so that only an "
            f"equal text is found; shorter shingles find more; {to_add('--shingle', 'char:3')}"
        )
    return "\n".join(lines)


def _in_short(
    reports: list[dict[str, Any]],
    counts: Mapping[str, int],
    notes: Mapping[str, str],
    promise: str,
    wrote: "Sequence[str] | None",
) -> list[str]:
    """Return the short summary: the result, the problems, the scheme's promise, and the time.

    `wrote`: the files of a whole run; None for a stage.
    """
    began = min(report["started"] for report in reports)
    seconds = f"{max(report['ended'] for report in reports) - began:.1f} seconds"
    trouble = [
        f"{many(counts[name], name)}{notes.get(name, '')}"
        for name in TROUBLE
        if counts.get(name) and RENAMED.get(name, name)
    ]
    if wrote is None:
        others = {*TROUBLE, OLD_RECORDS, COMPILED}
        each = [many(counts[n], n) for n in ORDER if counts.get(n) and n not in others]
        result = ", ".join(each) or "0 records"
        promises = [promise] * bool(promise and "records" in counts)
        return [f"{reports[0]['stage']}: {result}; {seconds}", *trouble, *promises]
    files = f"; wrote {' and '.join(wrote)}" * bool(wrote)
    return [_result(counts) + files, *trouble, *[promise] * bool(promise), seconds]


def many(count: int, names: str) -> str:
    """Format a count and a plural noun; for 1, make the first word that ends in s singular.

    >>> many(1, "repeated ids"), many(2000, "records without a key"), many(1, "matches")
    ('1 repeated id', '2,000 records without a key', '1 match')
    """
    if count == 1:
        names = re.sub(r"(?:(?<=ch)e|(?<=\w))s\b", "", names, count=1)
    return f"{count:,} {names}"


def _result(counts: Mapping[str, int]) -> str:
    """Return the result of a run in words.

    >>> _result({"records": 3300, "records removed": 169, "records kept": 3131})
    '3,131 of 3,300 records kept, 169 removed'
    """
    old = counts.get(OLD_RECORDS, 0)
    records = many(counts.get("records", 0) - old, "new records" if old else "records")
    others = f" and {many(old, 'old records')}" * bool(old)
    if REMOVED in counts:
        return f"{counts[STAYING]:,} of {records} kept, {counts[REMOVED]:,} removed"
    if CLUSTERS in counts:
        clusters = many(counts[CLUSTERS], "clusters")
        members, largest = counts[IN_CLUSTERS], counts.get(LARGEST, 0)
        among = f"{members:,} of {records}{others}"
        return f"{clusters} of {among}" + f"; the largest has {largest:,}" * bool(largest)
    pairs = many(counts.get("unique pairs", counts.get(PAIRS, 0)), "pairs")
    return f"{pairs} among {records}{others}"


def _all_counts(
    reports: list[dict[str, Any]],
    counts: Mapping[str, int],
    notes: Mapping[str, str],
    promise: str,
) -> list[str]:
    """Return the long summary: the counts in ORDER, the scheme's promise, and seconds per stage."""
    shown = [name for name in ORDER if name in counts and RENAMED.get(name, name)]
    lines = [f"{RENAMED.get(n, n):33} {counts[n]:>10,}{notes.get(n, '')}" for n in shown]
    if promise:
        decided = "; decided on the pairs that were found" * bool(
            {REMOVED, IN_CLUSTERS} & counts.keys()
        )
        lines.append(f"{'promise':33} {promise}{decided}")
    seconds = ", ".join(f"{name} {spent:.1f}" for name, spent in seconds_of(reports).items())
    return [*lines, f"{'seconds':33} {seconds}"]


def _why_no_pair(counts: Mapping[str, int]) -> list[str]:
    if counts.get(DENSE_MEMBERS) or not (counts.get("records") or counts.get("keyed lines")):
        return []
    if counts.get(KEPT_OUT):
        return ["All pairs that were found are kept out."]
    if counts.get(REPEATED):
        return ["Only records with the same id are similar enough, and these do not form a pair."]
    return ["No two records are similar enough to form a pair."]


def of_one_id(reports: list[dict[str, Any]], counts: Mapping[str, int]) -> list[str]:
    """Return a list with a warning if most records have the same id, else [].

    Such an id is usually the first word of a text.  On a cluster only the tasks' logs name it.
    """
    found, records = counts.get(ONE_ID, 0), counts.get("records", 0)
    if found <= FEW or 2 * found <= records:
        return []
    named = [report for report in reports if report.get("one_id")]
    ids = sorted((-report["counts"][ONE_ID], report["one_id"]) for report in named)
    if not ids:
        return [
            f"{found:,} of {records:,} records have the same id, or one of a few; the tasks' logs "
            f"name these, after `{ONE_ID}`: yarn logs -applicationId …"
        ]
    id_ = ids[0][1]
    others = ", or one of a few" * any(i != id_ for _, i in ids)
    which = f"the id {shown(id_.encode(), 100)}{others}"
    on = f"{found:,}" if found == records else f"at least {found:,}"
    rows, lines = f"rows, {TO_NUMBER}", "lines, as `cat -n` does"
    advice = f"if these are not their ids, name a field with --id, or number {rows}, or {lines}"
    return [f"{on} of {records:,} records have {which}; {advice}"]


def first_repeated(id_: str, decided: bool = False) -> str:
    """Return a remark that quotes the smallest repeated id, for a summary."""
    what = "do not delete by their ids" if decided else "records of one id form no pair"
    return f"the first: {shown(id_.encode())}; {what}"


def such_as(counts: Mapping[str, int], kept: str = "kept") -> str:
    """Return examples of the ids that removed and kept records have, and what to type instead.

    >>> such_as({"such as: v%2C1": 1})
    "such as 'v,1'; do not delete by ids; --output kept writes the rows that are kept"
    """
    ids = ", ".join(map(shown, _examples(counts)))
    return f"such as {ids}; do not delete by ids; --output {kept} writes the rows that are kept"


def _emptied(counts: Mapping[str, int]) -> str:
    """Return the first ids of records without words left; on Hadoop, where they are listed.

    >>> _emptied({EMPTIED: 3, "such as: b": 2, "such as: a": 1}), _emptied({EMPTIED: 3})
    ('a, b', '--removed lists them, with 0 words left')
    """
    ids = _examples(counts)
    more = ", …" * (counts[EMPTIED] > NAMED)
    first = ", ".join(printable(id_.decode()) for id_ in ids[:NAMED])
    return f"{first}{more}" if ids else "--removed lists them, with 0 words left"


def _examples(counts: Mapping[str, int]) -> list[bytes]:
    from urllib.parse import unquote_to_bytes  # here, as few runs need it

    named = (name[len(SUCH_AS) :] for name in counts if name.startswith(SUCH_AS))
    return sorted(map(unquote_to_bytes, named))


def on_hadoop(name: str) -> str:
    """Return the name of a count as one of Hadoop's counters, which ends at a comma.

    In some locales Hadoop prints ? for characters that are not ASCII.

    >>> on_hadoop("… with, without")
    '... with; without'
    """
    return name.replace("…", "...").replace(",", ";")[:HADOOP_NAME]


def from_hadoop(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the counts of Hadoop's counters under our names.

    >>> from_hadoop([(on_hadoop(SHARED_IDS), 2)])
    {'removed ids that kept records have, too': 2}
    """
    ours = {on_hadoop(name): name for name in (*ORDER, *TROUBLE)}
    return {ours.get(name, name): count for name, count in counts}


def total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for some in counts:
        for name, count in some.items():
            sums[name] = sums.get(name, 0) + count
    return sums


def seconds_of(reports: list[dict[str, Any]]) -> dict[str, float]:
    """Return {stage: seconds} from the first start to the last end of the stage's processes."""
    spans: dict[str, tuple[float, float]] = {}
    for report in sorted(reports, key=lambda report: report["started"]):
        start, end = spans.get(report["stage"], (report["started"], report["ended"]))
        spans[report["stage"]] = start, max(end, report["ended"])
    return {stage: end - start for stage, (start, end) in spans.items()}


def judged(counts: Mapping[str, int], max_bad: Fraction) -> None:
    """Raise StageError if too few lines of the new or of the old input are records.

    Print a warning if the input was read, but the start of a file has another format.
    """
    bad, old_bad = bad_lines(counts), counts.get(OLD_BAD, 0)
    old, records = counts.get(OLD_RECORDS, 0), counts.get("records", 0)
    collections = [(records - old, bad - old_bad, ""), (old, old_bad, "old ")]
    if old + old_bad == records + bad:  # as in an index
        collections = [(records, bad, "")]
    for good, wrong, which in collections:
        if wrong and not good:
            raise StageError(f"none of {wrong:,} {which}lines could be read; {_advice(counts)}")
        if wrong > max_bad * (good + wrong):
            raise StageError(
                f"{wrong:,} of {good + wrong:,} {which}lines could not be read; --max-bad "
                f"{in_words(max_bad)} allows fewer, and --max-bad 1 allows all; {_advice(counts)}"
            )
    for name in sorted(counts):
        if name.startswith(SEEMS):
            print(name[len(SEEMS) :], file=sys.stderr)


def bad_lines(counts: Mapping[str, int]) -> int:
    return sum(n for name, n in counts.items() if name.startswith(BAD))


def in_words(share: Fraction) -> str:
    """Return a share as a decimal number, or as a fraction: 0.25, 1/3."""
    decimal = f"{float(share):.9g}"
    return decimal if Fraction(decimal) == share else str(share)


def _advice(counts: Mapping[str, int]) -> str:
    """Return what the first lines of a file look like, or else advice by the most frequent reason.

    >>> _advice({"bad lines: not UTF-8": 60, "bad lines: no text": 1})
    'name their encoding with --encoding'
    """
    if looks := [name[len(SEEMS) :] for name in sorted(counts) if name.startswith(SEEMS)]:
        return looks[0]
    why = max(counts, key=lambda name: name.startswith(BAD) * counts[name])
    return next(advice for word, advice in ADVICE.items() if word in why)
