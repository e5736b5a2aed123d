"""Parquet files as others write them: what is read of them, and what stays of them."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import os
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

import pytest

from neardup.decisions.keep_records import InputFile, keep_file
from neardup.lines.decided_lines import format_decided
from neardup.process.errors import StageError, UsageError
from neardup.reading.blocks import read_files
from neardup.reading.fields import Fields
from neardup.reading.line_form import LineForm
from neardup.reading.places import first_place
from neardup.reading.tables import parquet_rows
from tests.support.programs import MAPPER, NEARDUP, RUN_LOCAL, run, succeed

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TEXTS = ["to be or not to be", None, 'caf\u00e9 \U0001f600\t"q"\n\u2028', "", "to be or not to be"]
IDS = ["a", "b", "c", "d", "e"]
META = [{"body": text, "n": i} if i != 3 else None for i, text in enumerate(TEXTS)]
LISTS = [[3, 1, 3], None, [], [2**40], [1, 3]]


def by_pyarrow(path: Path) -> None:
    table = arrow.table({"id": IDS, "text": TEXTS, "meta": META, "lists": LISTS})
    parquet.write_table(table, path, row_group_size=2)


def by_pyarrow_large(path: Path) -> None:
    large, of_large = arrow.large_string(), arrow.large_list(arrow.uint64())
    body = arrow.struct([("body", large), ("n", arrow.int8())])
    columns = [
        arrow.array(IDS, large),
        arrow.array(TEXTS, large),
        arrow.array(META, body),
        arrow.array(LISTS, of_large),
    ]
    table = arrow.Table.from_arrays(columns, ["id", "text", "meta", "lists"])
    parquet.write_table(table, path, compression="zstd", version="2.6", data_page_version="2.0")


def by_dictionary(path: Path) -> None:
    table = arrow.table(
        {
            "id": arrow.array(IDS).dictionary_encode(),
            "text": arrow.array(TEXTS).dictionary_encode(),
            "meta": META,
            "lists": LISTS,
        }
    )
    parquet.write_table(table, path, compression="none")


def by_pandas(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": IDS, "text": TEXTS, "meta": META, "lists": LISTS})
    frame["text"] = frame["text"].astype("category")
    frame.set_index("id").to_parquet(path)  # the index is a column of its own


def by_polars(path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": IDS, "text": TEXTS, "meta": META, "lists": LISTS})
    frame.with_columns(polars.col("id").cast(polars.Categorical)).write_parquet(
        path, row_group_size=3
    )


def by_duckdb(path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    plain = path.with_name("plain.parquet")
    by_pyarrow(plain)
    duckdb.sql(f"COPY (SELECT * FROM '{plain}') TO '{path}' (FORMAT parquet)")


def by_datasets(path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"id": IDS, "text": TEXTS, "meta": META, "lists": LISTS})
    made.to_parquet(str(path))


WRITERS = [
    by_pyarrow,
    by_pyarrow_large,
    by_dictionary,
    by_pandas,
    by_polars,
    by_duckdb,
    by_datasets,
]
writers = pytest.mark.parametrize("write", WRITERS)


def form_of(id_: str | None = None, text: str | None = None) -> LineForm:
    return LineForm.of("parquet", "word:2", None, id_, text)


def rows_of(path: Path, form: LineForm) -> list[dict]:
    blocks = read_files([str(path)], 1 << 20, pieces=form.pieces)
    return [json.loads(line) for block in blocks for line in block.data.split(b"\n")[:-1]]


@writers
def test_all_that_is_in_them(write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path)
    body = rows_of(path, form_of(None, "meta.body"))
    assert [row.get("id") for row in body] == IDS
    meta = [(row.get("meta") or {}).get("body") for row in body]
    assert meta == [None if i == 3 else text for i, text in enumerate(TEXTS)]
    assert "lists" not in body[0]
    assert "n" not in body[0]["meta"]  # it is not read
    assert [row.get("text") for row in rows_of(path, form_of())] == TEXTS
    assert [row.get("lists") for row in rows_of(path, form_of(None, "lists"))] == LISTS


@writers
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_run_reads_them(write: Callable[[Path], None], jobs: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path)
    for text in ("text", "meta.body", "lists"):
        result = succeed([*RUN_LOCAL, "--jobs", jobs, "--text", text, path], tmp_path)
        assert result.out == b"a\te\t1.000000\n"
        bad = result.count("bad lines")
        assert bad == 2
        assert f"{path}: row 2: no text: " in result.err
        assert result.count("records") == 3


@writers
def test_kept_has_all_columns_and_types(write: Callable[[Path], None], tmp_path: Path) -> None:
    path, kept = tmp_path / "a.parquet", tmp_path / "kept.parquet"
    write(path)
    succeed([*RUN_LOCAL, "--output=kept", path, "-o", kept], tmp_path)
    before, after = parquet.read_table(path), parquet.read_table(kept)
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after.to_pylist() == before.to_pylist()[:4]  # dictionaries may differ
    codecs = [
        parquet.ParquetFile(name).metadata.row_group(0).column(0).compression
        for name in (path, kept)
    ]
    assert codecs[0] == codecs[1]


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
    "bytes": (lambda: arrow.array([b"\xff\0", b"ab", None]), ["ff00", "6162", None]),
    "null": (lambda: arrow.nulls(3), [None] * 3),
    "uuid": (
        lambda: arrow.array([uuid.UUID(int=7).bytes, None, None], arrow.binary(16)).cast(
            arrow.uuid()
        ),
        [str(uuid.UUID(int=7)), None, None],
    ),
}


@pytest.mark.parametrize("kind", IDS_OF_TYPES)
def test_ids(kind: str, tmp_path: Path) -> None:
    if kind == "uuid" and not hasattr(arrow, "uuid"):
        pytest.skip("needs a newer pyarrow")
    column, ids = IDS_OF_TYPES[kind]
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"id": column(), "text": ["a", "a", "b"]}), path)
    assert [row.get("id") for row in rows_of(path, form_of())] == ids
    named = [str(i + 1 if id_ is None else id_).encode() for i, id_ in enumerate(ids)]
    out = succeed([*RUN_LOCAL, path], tmp_path).out
    assert out == b"\t".join(sorted(named[:2])) + b"\t1.000000\n"
    kept = tmp_path / "kept.parquet"
    succeed([*RUN_LOCAL, "--output=kept", path, "-o", kept], tmp_path)
    assert parquet.read_table(kept).equals(parquet.read_table(path).take([0, 2]))


def test_a_uuid_that_duckdb_wrote(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.parquet"
    one, two = uuid.UUID(int=1), uuid.UUID(int=2)
    duckdb.sql(
        f"COPY (SELECT unnest(['{one}'::UUID, '{two}'::UUID]) AS id, 'to be' AS text) "
        f"TO '{path}' (FORMAT parquet)"
    )
    assert succeed([*RUN_LOCAL, path], tmp_path).out == f"{one}\t{two}\t1.000000\n".encode()


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ([1, 2], "text is no string"),
        ([1.5, 2.5], "text is no string"),
        ([[1, None], [1.5]], "not an integer"),
        ([[-1], [-2]], "negative shingle"),
        ([{"a": 1}, {"a": 2}], "text is no string"),
        ([["a"], ["b"]], "not an integer"),
        ([" ", "\n"], "no shingles"),
        (["a\0", "\0"], "NUL byte"),
    ],
)
def test_texts_that_are_none(texts: list, why: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"id": ["a", "b"], "text": texts}), path)
    result = run([*MAPPER, path], tmp_path)
    assert result.code == 1
    assert f"{path}: row 1: {why}: " in result.err
    assert f"{path}: row 2: {why}: " in result.err


@pytest.mark.parametrize("wrapped", ["string", "struct"])
def test_bytes_that_are_no_utf8(wrapped: str, tmp_path: Path) -> None:
    """Which nobody checks when they are written."""
    texts = arrow.array([b"to be", b"caf\xe9", b"to be"]).view(arrow.string())
    column = {
        "string": lambda: texts,
        "struct": lambda: arrow.StructArray.from_arrays([texts], ["body"]),
    }[wrapped]()
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"id": ["a", "b", "c"], "text": column}), path)
    name = "text.body" if wrapped == "struct" else "text"
    result = succeed([*RUN_LOCAL, "--text", name, path], tmp_path)
    assert result.out == b"a\tc\t1.000000\n"
    assert f"{path}: row 2: not UTF-8: " in result.err
    kept = tmp_path / "kept.parquet"
    succeed([*RUN_LOCAL, "--output=kept", "--text", name, path, "-o", kept], tmp_path)
    assert parquet.read_metadata(kept).num_rows == 2


# Columns.


@pytest.mark.parametrize(
    ("columns", "names", "told"),
    [
        ({"id": ["a"], "body": ["b"]}, (None, None), "no column 'text'; name one with --text"),
        ({"key": ["a"], "text": ["b"]}, ("id", None), "no column 'id'; name one with --id"),
        ({"id": ["a"], "meta": [{"x": "b"}]}, (None, "meta.body"), "no column 'meta.body'"),
        ({"id": ["a"], "meta": [{"x": "b"}]}, (None, "meta.x.y"), "no column 'meta.x.y'"),
        ({"id": ["a"], "meta": [{"xy": "b"}]}, (None, "meta.x"), "no column 'meta.x'"),
        ({"id": ["a"], "text": ["b"]}, ("meta.id", None), "no column 'meta.id'"),
    ],
)
def test_columns_that_are_missing(columns: dict, names: tuple, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table(columns), path)
    with pytest.raises(StageError, match=f"a.parquet: has {told}"):
        rows_of(path, form_of(*names))


def test_columns_that_are_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    arrays = [arrow.array([text]) for text in "abcc"]
    parquet.write_table(arrow.Table.from_arrays(arrays, ["id", "text", "x", "x"]), path)
    assert rows_of(path, form_of()) == [{"id": "a", "text": "b"}]
    with pytest.raises(StageError, match="has 2 columns 'x'"):
        rows_of(path, form_of(None, "x"))


def test_a_column_with_a_dot_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = {"meta.body": ["b"], "id": ["a"], "meta": [{"x": {"y": "c"}, "id": 7}]}
    parquet.write_table(arrow.table(table), path)
    assert rows_of(path, form_of(None, "meta.body")) == [{"meta.body": "b", "id": "a"}]
    assert rows_of(path, form_of("meta.id", "meta.x.y")) == [{"meta": {"x": {"y": "c"}, "id": 7}}]


def test_numbers_of_columns(tmp_path: Path) -> None:
    by_pyarrow(tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="names of columns in Parquet, and not numbers"):
        rows_of(tmp_path / "a.parquet", form_of("1", "2"))


# Row groups, slices and mappers.


def many(path: Path, rows: int = 5000, **how: Any) -> Sequence[str]:
    ids = [f"v{i}" for i in range(rows)]
    texts = [f"number {i % 997} of {i % 991} and so on" for i in range(rows)]
    parquet.write_table(arrow.table({"text": texts, "id": ids}), path, **how)
    return ids


@pytest.mark.parametrize("group", [1, 7, 1000, 5000])
@pytest.mark.parametrize("turns", [[0], [0, 1, 2], [1, 0]])
def test_mappers_share_a_file(
    group: int, turns: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_rows, "BLOCK_BYTES", 1000)
    rows = 300 if group < 10 else 5000
    ids = many(tmp_path / "a.parquet", rows, row_group_size=group)
    form, found = form_of(), {}
    for turn in turns:
        mine = iter(range(turn, 10**6, len(turns)))
        for block in read_files([str(tmp_path / "a.parquet")], 1 << 20, mine, pieces=form.pieces):
            for i, line in enumerate(block.data.splitlines()):
                found[block.line + i] = json.loads(line)["id"]
                assert block.first + i == first_place(0, block.line + i - 1)
    assert [found[i + 1] for i in range(rows)] == list(ids)
    assert len(found) == rows


@pytest.mark.parametrize("rows", [0, 1])
def test_small_files(rows: int, tmp_path: Path) -> None:
    path, kept = tmp_path / "a.parquet", tmp_path / "kept.parquet"
    many(path, rows)
    result = succeed([*RUN_LOCAL, "--output=kept", "-o", kept, path], tmp_path)
    assert result.count("records") == rows
    assert parquet.read_table(kept).equals(parquet.read_table(path))


def test_no_columns_and_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({}), path)
    with pytest.raises(StageError, match=r"has no column 'text'.*it has none"):
        rows_of(path, form_of())


@pytest.mark.parametrize("damage", ["empty", "half", "no end", "text", "packed", "inside"])
def test_damaged(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    many(path, compression="zstd", write_page_checksum=True)
    whole = path.read_bytes()
    inside = bytearray(whole)
    inside[100:200] = b"\xff" * 100
    path.write_bytes(
        {
            "empty": b"",
            "half": whole[: len(whole) // 2],
            "no end": whole[:-1],
            "text": b"to be or not to be\n",
            "packed": b"\x1f\x8b" + whole,
            "inside": bytes(inside),
        }[damage]
    )
    for command in ([*RUN_LOCAL, "--jobs=2"], [*RUN_LOCAL, "--output=kept"], MAPPER):
        result = run([*command, path], tmp_path)
        assert (result.code, result.out, result.left) == (1, b"", [])
        assert f"{path}: is no Parquet file, or damaged: " in result.err
        assert len([line for line in result.err.splitlines() if "damaged" in line]) == 1


# Standard input, and pipes.


def test_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    by_pyarrow(path)
    data = path.read_bytes()
    flags = ["--input=parquet", "-"]
    expected = b"a\te\t1.000000\n"
    assert succeed([*RUN_LOCAL, "--jobs=2", *flags], tmp_path, data).out == expected  # a file
    assert succeed([*RUN_LOCAL, *flags], tmp_path, data, process=True).out == expected  # a pipe
    mapped = succeed([*MAPPER, path], tmp_path).out
    assert succeed([*MAPPER, *flags], tmp_path, data).out == mapped
    result = run([*MAPPER, *flags], tmp_path, data, process=True)
    assert (result.code, result.out) == (1, b"")
    assert "-: Parquet is read from its end, and a pipe has none; name a file" in result.err


def test_a_pipe_with_a_name(tmp_path: Path) -> None:
    path, pipe = tmp_path / "a.parquet", tmp_path / "pipe.parquet"
    by_pyarrow(path)
    os.mkfifo(pipe)
    writer = subprocess.Popen(["timeout", "60", "sh", "-c", f"cat '{path}' > '{pipe}'"])
    out = succeed([*RUN_LOCAL, pipe], tmp_path).out
    assert writer.wait(60) == 0
    assert out == b"a\te\t1.000000\n"


# What stays.


def keep(path: Path, gone: list[int], tmp: Path) -> Any:
    decided = tmp / "decided"
    decided.write_bytes(b"".join(format_decided(first_place(0, n), b"x", b"y", b"-") for n in gone))
    sink = io.BytesIO()
    with open(decided, "rb") as lines:
        keep_file(form_of(), InputFile(str(path), str(path), first_place(0)), 1, lines, sink)
    return parquet.read_table(io.BytesIO(sink.getvalue()))


@pytest.mark.parametrize("group", [1000, 5000])
@pytest.mark.parametrize("written", [1, 1 << 26])
def test_rows_that_stay(
    group: int, written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_rows, "READ_BYTES", 1000)
    monkeypatch.setattr(parquet_rows, "WRITTEN_BYTES", written)
    path = tmp_path / "a.parquet"
    many(path, row_group_size=group)
    table = parquet.read_table(path)
    for gone in ([], [0], [4999], [0, 1, 999, 1000, 1001, 4999], list(range(5000))):
        stays = sorted(set(range(5000)) - set(gone))
        assert keep(path, gone, tmp_path).equals(table.take(arrow.array(stays, arrow.int64())))


def test_types_that_few_have(tmp_path: Path) -> None:
    """All of them stay, and all but the text may be anything."""
    now = datetime.datetime(2020, 1, 2, 3, 4, 5, 6)
    columns = {
        "id": arrow.array(["a", "b", "c"]),
        "text": arrow.array(["to be", "to be", "not"]),
        "float": arrow.array([1.5, float("nan"), float("inf")], arrow.float32()),
        "half": arrow.array([1, 2, 3]).cast(arrow.float32()).cast(arrow.float16()),
        "bool": arrow.array([True, None, False]),
        "time": arrow.array([now.time(), None, now.time()]),
        "stamp": arrow.array([now, None, now], arrow.timestamp("ns", tz="UTC")),
        "span": arrow.array([datetime.timedelta(1)] * 3),
        "decimal": arrow.array([decimal.Decimal("1.50")] * 3, arrow.decimal256(40, 2)),
        "fixed": arrow.array([b"ab", None, b"cd"], arrow.binary(2)),
        "map": arrow.array([[("k", 1)], None, []], arrow.map_(arrow.string(), arrow.int8())),
        "nested": arrow.array([[{"x": [b"\xff", None]}], None, []]),
        "null": arrow.nulls(3),
        "lists": arrow.array([[1, 2], [3, 4], None], arrow.list_(arrow.int8(), 2)),
        "codes": arrow.array(["x", "y", "x"]).dictionary_encode(),
    }
    table = arrow.table(columns).replace_schema_metadata({"of": "yesterday"})
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path, compression="gzip")
    kept = tmp_path / "kept.parquet"
    succeed([*RUN_LOCAL, "--output=kept", path, "-o", kept], tmp_path)
    before, after = parquet.read_table(path), parquet.read_table(kept)
    assert after.schema.equals(before.schema, check_metadata=True)
    assert str(after.to_pylist()) == str(before.take([0, 2]).to_pylist())
    (first, second, third) = rows_of(
        path, LineForm("parquet", None, form_of().clean, False, Fields("id", (), False))
    )
    assert first["nested"] == [{"x": ["/w==", None]}]
    assert (first["float"], second["float"], third["float"]) == (1.5, None, None)
    assert (first["fixed"], first["map"], first["lists"]) == ("YWI=", [["k", 1]], [1, 2])
    assert first["stamp"].startswith("2020-01-02 03:04:05.000006")
    assert (first["time"], first["decimal"]) == ("03:04:05.000006", "1.50")
    assert "null" not in first
    assert "bool" not in second
    assert third["bool"] is False


def test_all_columns_are_converted(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {
        "key": [datetime.date(2020, 1, 2), None],
        "meta": [{"body": "to be", "at": [b"\xff", None]}, None],
        "score": [float("nan"), 0.1],
        "text": ["caf\u00e9\t\n", "\u2028"],
    }
    parquet.write_table(arrow.table(columns), path)
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
        {"id": "2", "score": 0.1, "text": "\u2028"},
    ]
    for name in ("key", "meta.body"):
        done = succeed([*NEARDUP, "convert", "--id", name, path], tmp_path)
        (row,) = map(json.loads, done.out.splitlines())
        assert row["text"].startswith("caf")
        assert "row 2: no id: " in done.err  # as in a run with these options


def test_without_pyarrow(tmp_path: Path) -> None:
    """In an interpreter that finds none, whatever is installed."""
    by_pyarrow(tmp_path / "a.parquet")
    hide = (
        "import importlib.util as u; find = u.find_spec; "
        "u.find_spec = lambda name, *a: None if name == 'pyarrow' else find(name, *a)"
    )
    (tmp_path / "sitecustomize.py").write_text(hide + "\n")
    result = run([*RUN_LOCAL, tmp_path / "a.parquet"], tmp_path, PYTHONPATH=str(tmp_path))
    assert (result.code, result.out, result.left) == (1, b"", [])
    assert result.err.count("\n") == 1
    assert "Parquet needs the package pyarrow: python3 -m pip install pyarrow" in result.err
