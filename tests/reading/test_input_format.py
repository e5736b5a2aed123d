"""The format of a file is given by --input or by its name, and never guessed."""

from __future__ import annotations

import pytest

from neardup.reading.compressed import (
    BY_SUFFIX,
    INPUTS,
    OPENERS,
    check_names,
    kind_by_name,
)
from neardup.reading.input_format import InputFormat
from neardup.runtime.program import UsageError


@pytest.mark.parametrize("packed", ["", *OPENERS])
def test_names(packed: str) -> None:
    for suffix, kind in BY_SUFFIX.items():
        for name in (f"a{suffix}", f"/x.y/A b{suffix.upper()}", f"./a.b{suffix}"):
            assert kind_by_name(name + packed) == kind
    for suffix in ("", ".txt", ".log", ".docx", ".1"):
        assert kind_by_name(f"a{suffix}{packed}") is None
    for name in ("-", "jsonl", ".jsonl", "a.csv/part-0", f"part{packed}"):
        assert kind_by_name(name) is None


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ([], "shingles"),
        (["-"], "shingles"),
        (["a.txt", "b"], "shingles"),
        (["a.jsonl", "b.ndjson.gz", "c.json"], "jsonl"),
        (["a.pq", "b.parquet"], "parquet"),
        (["a.csv", "b.parquet"], None),
        (["old.parquet", "new.jsonl"], None),
    ],
)
def test_what_is_read_where_nothing_is_said(names: list[str], kind: str | None) -> None:
    if "b.parquet" in names or "old.parquet" in names:
        pytest.importorskip("pyarrow")
    form = InputFormat.of(None, None, None, names=names)
    assert form.input == kind
    for name in names:
        assert form.kind_of(name) == (kind or kind_by_name(name))


@pytest.mark.parametrize(
    ("given", "names", "told"),
    [
        (None, ["a.jsonl", "b.txt"], "a.jsonl has an extension of jsonl, but b.txt has none of"),
        (None, ["-", "b.csv"], "b.csv has an extension of csv, but - has none of"),
    ],
)
def test_names_that_do_not_agree(given: str | None, names: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        check_names(given, names)
    with pytest.raises(UsageError, match=told):
        InputFormat.of(given, None, None, names=names)


def test_what_is_said_goes() -> None:
    for kind in INPUTS:
        check_names(kind, ["a.txt", "b", "-", "c.tsv"])
    for kind in ("jsonl", "csv", "tsv"):
        assert InputFormat.of(kind, None, None, names=["a.txt"]).kind_of("a.txt") == kind


@pytest.mark.parametrize("flags", [("id", None), (None, "text"), ("id", "text")])
@pytest.mark.parametrize("kind", ["shingles", "text"])
def test_lines_have_no_fields(kind: str, flags: tuple) -> None:
    with pytest.raises(UsageError, match=" needs --input jsonl or csv or tsv or parquet"):
        InputFormat.of(kind, None, None, *flags)
