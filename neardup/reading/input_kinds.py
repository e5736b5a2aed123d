"""What a file holds: --input, or what its name says."""

from __future__ import annotations

from collections.abc import Iterable

from neardup.process.errors import UsageError
from neardup.reading.packed import plain_name, suffix_of

LINES, ROWS = ("shingles", "text"), ("jsonl", "csv", "tsv", "parquet")
INPUTS = (*LINES, *ROWS)
BY_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
OF_LINES = ("", ".txt", ".text", ".lines", ".dat", ".data", ".tab", ".part", ".out", ".log")
CONVERT = "python3 -m neardup convert FILE… > records.jsonl"


def kind_by_name(name: str) -> str | None:
    """
    >>> kind_by_name("c4.json.gz"), kind_by_name("a.csv"), kind_by_name("videos.txt")
    ('jsonl', 'csv', None)
    """
    return BY_SUFFIX.get(_suffix(name))


def _suffix(name: str) -> str:
    return suffix_of(plain_name(name)).lower()


def check_names(given: str | None, names: Iterable[str]) -> None:
    """UsageError where --input says one thing, and a name for certain another; or names differ."""
    kinds = {name: kind_by_name(name) for name in names}
    if given is None:
        lines = [name for name, kind in kinds.items() if kind is None]
        rows = [name for name, kind in kinds.items() if kind]
        if lines and rows:
            raise UsageError(
                f"{rows[0]} is {kinds[rows[0]]} by its name, and {lines[0]} is none of "
                f"{', '.join(ROWS)}; say what all are with --input, or convert: {CONVERT}"
            )
    elif given in LINES:
        for name, kind in kinds.items():
            if kind and kind != "tsv":  # ID, tab, text is both
                raise UsageError(
                    f"{name} is {kind} by its name, and --input is {given}; leave out --input, or "
                    "read it from standard input: - < FILE"
                )


def unknown_suffixes(names: Iterable[str]) -> tuple[str, ...]:
    """Those suffixes that say nothing about what a file holds, in words.

    >>> unknown_suffixes(["part-00000", "a.txt.gz", "corpus.docx", "b.3"])
    ('.docx',)
    """
    found = {_suffix(name) for name in names if not kind_by_name(name)}
    return tuple(sorted(s for s in found if s not in OF_LINES and not s[1:].isdigit()))
