"""Whether the input was what it was taken for: judged once, at the end, by what was counted.

Lines of which none could be read, or fewer than --max-bad allows, end in one message, and exit code
1: with what they look like, and the line to type.  Of two collections each is judged.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Callable

from neardup.process.errors import StageError
from neardup.process.summary import BAD, OLD_RECORDS
from neardup.process.typed import piped, typed_with

MAX_BAD = Fraction(1, 2)
OLD_BAD = "bad old lines"
LIKE = "bad lines like "  # of the first ones of each process; then a look
JSONL, JSON_PART, SHINGLES, WEIGHTED = "jsonl", "parts of json", "shingles", "weighted shingles"
NUMBERS, CSV, TSV, TEXT = "shingles and commas", "csv", "tsv", "text"
JSON_ARRAY, CSV_HEADER, TSV_HEADER = "a json array", "a csv header", "a tsv header"  # first lines
OTHER = "nothing known"
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
    return max(votes, key=lambda look: votes[look], default=OTHER)
