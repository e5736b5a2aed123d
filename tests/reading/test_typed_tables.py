"""Parquet and Arrow files written by other programs are read."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import subprocess
import uuid
from pathlib import Path
from typing import Any, Callable

import pytest

from neardup.runtime.program import StageError, UsageError
from tests.support.cases import in_turn
from tests.support.engines import refuse
from tests.support.programs import MAPPER, NEARDUP, RUN_LOCAL, run, succeed
from tests.support.typed_tables import (
    IDS,
    LISTS,
    TEXTS,
    arrow,
    by_pyarrow,
    form_of,
    names,
    read_table,
    rows_of,
    title_of,
    write_table,
    writers,
)


@pytest.mark.first_case
@writers
def test_all_that_is_in_them(name: str, write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / name
    write(path)
    body = rows_of(path, form_of(None, "meta.body"))
    assert [row.get("id") for row in body] == IDS
    meta = [(row.get("meta") or {}).get("body") for row in body]
    assert meta == [None if i == 3 else text for i, text in enumerate(TEXTS)]
    assert "lists" not in body[0]
    assert ("n" in body[0]["meta"]) == (title_of(name) == "Arrow")  # of Parquet it is not read
    assert [row.get("text") for row in rows_of(path, form_of())] == TEXTS
    assert [row.get("lists") for row in rows_of(path, form_of(None, "lists"))] == LISTS


@pytest.mark.slow
@writers
def test_a_run_reads_them(name: str, write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / name
    write(path)
    for text, jobs in (("text", "1"), ("meta.body", "2"), ("lists", "1")):
        result = succeed([*RUN_LOCAL, "--jobs", jobs, "--text", text, path], tmp_path)
        assert result.out == b"a\te\t1.000000\n"
        bad = result.count("bad lines")
        assert bad == 2
        assert f"{path}: row 2: no text: " in result.err
        assert result.count("records") == 3


IDS_OF_TYPES: dict[str, tuple[Any, list[str | int | None]]] = {
    "int64": (lambda: arrow.array([5, None, -1]), [5, None, -1]),
    "uint64": (lambda: arrow.array([5, 2**64 - 1, 0], arrow.uint64()), [5, 2**64 - 1, 0]),
    "float": (lambda: arrow.array([1.0, float("nan"), None]), ["1.0", None, None]),
    "date": (
        lambda: arrow.array([datetime.date(2020, 1, 2), None, datetime.date(1, 1, 1)]),
        ["2020-01-02", None, "0001-01-01"],
    ),
    "timestamp": (
        lambda: arrow.array([datetime.datetime(2020, 1, 2, 3), None, None]),
        ["2020-01-02 03:00:00", None, None],
    ),
    "decimal": (lambda: arrow.array([decimal.Decimal("1.50"), None, None]), ["1.50", None, None]),
    "bytes": (lambda: arrow.array([b"cd", "é".encode(), None]), ["cd", "é", None]),
    "large bytes": (
        lambda: arrow.array([b"cd", b"ab", None], arrow.large_binary()),
        ["cd", "ab", None],
    ),
    "two bytes": (
        lambda: arrow.array([b"\xff\0", b"ab", None], arrow.binary(2)),
        ["ff00", "6162", None],
    ),
    "whole seconds": (
        lambda: arrow.array([90_000_000_000, None, None], arrow.duration("ns")),
        ["0:01:30", None, None],
    ),
    "in a zone": (
        lambda: arrow.array([1577934000123456789, None, None], arrow.timestamp("ns", "UTC")),
        ["2020-01-02 03:00:00.123456789Z", None, None],
    ),
    "time": (
        lambda: arrow.array([1, None, None], arrow.time64("ns")),
        ["00:00:00.000000001", None, None],
    ),
    "duration": (
        lambda: arrow.array([90_000_000_001, None, None], arrow.duration("ns")),
        [90_000_000_001, None, None],
    ),
    "seconds": (
        lambda: arrow.array([90, None, None], arrow.duration("s")),
        ["0:01:30", None, None],
    ),
    "null": (lambda: arrow.nulls(3), [None] * 3),
    "uuid": (
        lambda: arrow.array([uuid.UUID(int=7).bytes, None, None], arrow.binary(16)).cast(
            arrow.uuid()
        ),
        [str(uuid.UUID(int=7)), None, None],
    ),
}


@pytest.mark.slow
@in_turn(1, kind=list(IDS_OF_TYPES), name=["a.arrow", "a.parquet"])
def test_ids(name: str, kind: str, tmp_path: Path) -> None:
    if kind == "uuid" and not hasattr(arrow, "uuid"):
        pytest.skip("needs a newer pyarrow")
    column, ids = IDS_OF_TYPES[kind]
    path = tmp_path / name
    write_table(arrow.table({"id": column(), "text": ["a", "a", "b"]}), path)
    assert [row.get("id") for row in rows_of(path, form_of())] == ids
    named = [f"{name}:{i + 1}" if id_ is None else str(id_) for i, id_ in enumerate(ids)]
    kept, removed = tmp_path / f"kept-{name}", tmp_path / "removed"
    succeed([*RUN_LOCAL, "--output=kept", path, "-o", kept, "--removed", removed], tmp_path)
    assert removed.read_text() == f"{named[1]}\t{named[0]}\t1.000000\n"
    assert read_table(kept).equals(read_table(path).take([0, 2]))


NS = 1577934000123456000  # whole microseconds
AS_WRITTEN = {NS: "2020-01-02 03:00:00.123456", NS + 7: "2020-01-02 03:00:00.123456007"}
PLACES: dict[str, tuple[Any, Any]] = {
    "list": (
        lambda time: arrow.list_(time),
        lambda value: None if value is None else [value, None],
    ),
    "long list": (lambda time: arrow.large_list(time), lambda value: [value]),
    "pair": (lambda time: arrow.list_(time, 2), lambda value: [value, value]),
    "struct": (lambda time: arrow.struct([("a", time)]), lambda value: {"a": value}),
    "list of structs": (
        lambda time: arrow.list_(arrow.struct([("a", time)])),
        lambda value: [{"a": value}, None],
    ),
    "map": (lambda time: arrow.map_(arrow.string(), time), lambda value: [("k", value)]),
    "itself": (lambda time: time, lambda value: value),
}


@names
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rows", [[NS, NS + 7], [NS + 7], [NS], [None, NS, NS + 7, None, NS]])
def test_a_time_does_not_depend_on_other_rows(
    name: str, place: str, rows: list, tmp_path: Path
) -> None:
    """Nor on its place in lists and nested fields, nor on pandas."""
    type_of, wrapped = PLACES[place]
    path = tmp_path / name
    column = arrow.array([wrapped(ns) for ns in rows], type_of(arrow.timestamp("ns")))
    ids = list(map(str, range(len(rows))))
    write_table(arrow.table({"id": ids, "text": ids, "t": column}), path)
    expected = json.loads(json.dumps([wrapped(AS_WRITTEN.get(ns)) for ns in rows]))
    assert [row.get("t") for row in rows_of(path, form_of("id", "text,t"))] == expected


@names
@pytest.mark.parametrize("place", PLACES)
def test_a_date_after_the_year_9999_in_a_list(name: str, place: str, tmp_path: Path) -> None:
    type_of, wrapped = PLACES[place]
    path = tmp_path / name
    days = arrow.array([wrapped(0), wrapped(3_000_000)], type_of(arrow.int32()))
    column = days.cast(type_of(arrow.date32()))
    write_table(arrow.table({"id": ["a", "b"], "text": ["a", "b"], "t": column}), path)
    expected = json.loads(json.dumps([wrapped("1970-01-01"), wrapped("10183-09-21")]))
    assert [row.get("t") for row in rows_of(path, form_of("id", "text,t"))] == expected


def test_a_uuid_that_duckdb_wrote(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.parquet"
    one, two = uuid.UUID(int=1), uuid.UUID(int=2)
    duckdb.sql(
        f"COPY (SELECT unnest(['{one}'::UUID, '{two}'::UUID]) AS id, 'to be' AS text) "
        f"TO '{path}' (FORMAT parquet)"
    )
    assert succeed([*RUN_LOCAL, path], tmp_path).out == f"{one}\t{two}\t1.000000\n".encode()


@names
@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ([1, 2], "text is not a string"),
        ([1.5, 2.5], "text is not a string"),
        ([[1, None], [1.5]], "not an integer"),
        ([[-1], [-2]], "negative shingle"),
        ([{"a": 1}, {"a": 2}], "text is not a string"),
        ([" ", "\n"], "no shingles"),
        ([b"", b" "], "no shingles"),
        (["a\0", "\0"], "NUL byte"),
    ],
)
def test_texts_that_are_none(name: str, texts: list, why: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write_table(arrow.table({"id": ["a", "b"], "text": texts}), path)
    result = run([*MAPPER, "--max-bad=1", path], tmp_path)
    assert result.code == 1
    assert f"{path}: row 1: {why}: " in result.err
    assert f"{path}: row 2: {why}: " in result.err


@names
@pytest.mark.first_case
@pytest.mark.parametrize(
    "wrapped", ["string", "binary", "large", "fixed", "dictionary", "struct", "string in a struct"]
)
def test_columns_of_bytes_are_texts(name: str, wrapped: str, tmp_path: Path) -> None:
    """Columns of bytes, as Hive and Impala write them, are texts.

    Rows whose text is not UTF-8, which writers of strings do not check either, are bad."""
    texts = arrow.array([b"to be\xc3\xa9", b"caf\xe9 ..", b"to be\xc3\xa9", b"or not."])
    strings = texts.view(arrow.string())
    column = {
        "string": lambda: strings,
        "binary": lambda: texts,
        "large": lambda: texts.cast(arrow.large_binary()),
        "fixed": lambda: texts.cast(arrow.binary(7)),
        "dictionary": lambda: texts.dictionary_encode(),
        "struct": lambda: arrow.StructArray.from_arrays([texts], ["body"]),
        "string in a struct": lambda: arrow.StructArray.from_arrays([strings], ["body"]),
    }[wrapped]()
    path, kept = tmp_path / name, tmp_path / f"kept-{name}"
    write_table(arrow.table({"id": ["a", "b", "c", "d"], "text": column}), path)
    flags = ["--text", "text.body" if "struct" in wrapped else "text"]
    result = succeed([*RUN_LOCAL, "--shingle=char:3", *flags, path], tmp_path)
    assert result.out == b"a\tc\t1.000000\n"
    assert f"{path}: row 2: not UTF-8: " in result.err
    succeed([*RUN_LOCAL, "--output=kept", *flags, path, "-o", kept], tmp_path)
    assert read_table(kept).equals(read_table(path).take([0, 1, 3]))


# Columns.


@names
@pytest.mark.parametrize(
    ("columns", "names", "told"),
    [
        ({"id": ["a"], "body": ["b"]}, (None, None), "no column 'text'; name one with --text"),
        ({"key": ["a"], "text": ["b"]}, ("id", None), "no column 'id'; name one with --id"),
        ({"id": ["a"], "meta": [{"x": "b"}]}, (None, "meta.body"), "no column 'meta.body'"),
        ({"id": ["a"], "meta": [{"x": "b"}]}, (None, "meta.x.y"), "no column 'meta.x.y'"),
        ({"id": ["a"], "meta": [{"xy": "b"}]}, (None, "meta.x"), "no column 'meta.x'"),
        ({"id": ["a"], "text": ["b"]}, ("meta.id", None), "no column 'meta.id'"),
        ({}, (None, None), "no column 'text'.*it has none"),
    ],
)
def test_columns_that_are_missing(
    name: str, columns: dict, names: tuple, told: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    write_table(arrow.table(columns), path)
    with pytest.raises(StageError, match=f"{name}: has {told}"):
        rows_of(path, form_of(*names))


@names
def test_columns_that_are_there_twice(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    arrays = [arrow.array([text]) for text in "abcc"]
    write_table(arrow.Table.from_arrays(arrays, ["id", "text", "x", "x"]), path)
    assert rows_of(path, form_of()) == [{"id": "a", "text": "b"}]
    with pytest.raises(StageError, match="has 2 columns 'x'"):
        rows_of(path, form_of(None, "x"))


@names
def test_a_column_with_a_dot_in_its_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    table = {"meta.body": ["b"], "id": ["a"], "meta": [{"x": {"y": "c"}, "id": 7}]}
    write_table(arrow.table(table), path)
    assert rows_of(path, form_of(None, "meta.body")) == [{"meta.body": "b", "id": "a"}]
    assert rows_of(path, form_of("meta.id", "meta.x.y")) == [{"meta": {"x": {"y": "c"}, "id": 7}}]


@names
def test_numbers_of_columns(name: str, tmp_path: Path) -> None:
    by_pyarrow(tmp_path / name)
    with pytest.raises(UsageError, match=f"must be column names for {title_of(name)}, not"):
        rows_of(tmp_path / name, form_of("1", "2"))


# Standard input, and pipes.


@names
@pytest.mark.slow
def test_standard_input(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    by_pyarrow(path)
    data = path.read_bytes()
    flags = [f"--input={name[2:]}", "-"]
    expected = b"a\te\t1.000000\n"
    assert succeed([*RUN_LOCAL, "--jobs=2", *flags], tmp_path, data).out == expected  # a file
    assert succeed([*RUN_LOCAL, *flags], tmp_path, data, process=True).out == expected  # a pipe
    mapped = succeed([*MAPPER, path], tmp_path).out
    assert succeed([*MAPPER, *flags], tmp_path, data).out == mapped
    result = refuse([*MAPPER, *flags], tmp_path, code=1, stdin=data, process=True)
    told = f"-: {title_of(name)} is read from its end, and a pipe has none; name a file"
    assert told in result.err


@names
@pytest.mark.slow
def test_a_pipe_with_a_name(name: str, tmp_path: Path) -> None:
    path, pipe = tmp_path / name, tmp_path / f"pipe-{name}"
    by_pyarrow(path)
    os.mkfifo(pipe)
    writer = subprocess.Popen(["timeout", "60", "sh", "-c", f"cat '{path}' > '{pipe}'"])
    out = succeed([*RUN_LOCAL, pipe], tmp_path).out
    assert writer.wait(60) == 0
    assert out == b"a\te\t1.000000\n"


@names
@pytest.mark.slow
def test_all_columns_are_converted(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    columns = {
        "key": [datetime.date(2020, 1, 2), None],
        "meta": [{"body": "to be", "at": [b"\xff", None]}, None],
        "score": [float("nan"), 0.1],
        "text": ["caf\u00e9\t\n", "\u2028"],
    }
    write_table(arrow.table(columns), path)
    out = succeed([*NEARDUP, "convert", path], tmp_path).out

    def none(word: str) -> None:
        raise AssertionError(word)  # which is no JSON

    assert [json.loads(line, parse_constant=none) for line in out.splitlines()] == [
        {
            "id": "1",
            "key": "2020-01-02",
            "meta": {"body": "to be", "at": ["/w==", None]},
            "score": None,
            "text": "caf\u00e9\t\n",
        },
        {"id": "2", "key": None, "meta": None, "score": 0.1, "text": "\u2028"},
    ]
    for name in ("key", "meta.body"):
        done = succeed([*NEARDUP, "convert", "--id", name, path], tmp_path)
        (row,) = map(json.loads, done.out.splitlines())
        assert row["text"].startswith("caf")
        assert "row 2: no id: " in done.err  # as in a run with these options


@names
@pytest.mark.slow
def test_without_pyarrow(name: str, tmp_path: Path) -> None:
    by_pyarrow(tmp_path / name)
    hide = (
        "import importlib.util as u; find = u.find_spec; "
        "u.find_spec = lambda name, *a: None if name == 'pyarrow' else find(name, *a)"
    )
    (tmp_path / "sitecustomize.py").write_text(hide + "\n")
    result = refuse([*RUN_LOCAL, tmp_path / name], tmp_path, code=1, PYTHONPATH=str(tmp_path))
    assert result.err.count("\n") == 1
    told = f"{title_of(name)} needs the package pyarrow: python3 -m pip install pyarrow"
    assert told in result.err
