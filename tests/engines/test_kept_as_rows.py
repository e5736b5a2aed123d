"""Kept rows that -o writes in another table format have their original values or are refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from neardup.reading.compressed import unpacked
from tests.support.cases import in_turn
from tests.support.corpus_in_forms import CORPUS, FLAGS, TEXT, made
from tests.support.engines import RUN_LOCAL, refuse, run, succeed

typed_tables = pytest.importorskip("tests.support.typed_tables")
arrow, parquet = typed_tables.arrow, typed_tables.parquet

Rows = list[dict[str, Any]]
TARGETS = ["x.jsonl", "x.csv", "x.parquet", "x.arrow", "x.ndjson.gz", "x.csv.xz"]


def read(name: str, data: bytes) -> Rows:
    """Return the rows of a file, read without the project's parsers."""
    if "parquet" in name or "arrow" in name:
        rows: Rows = typed_tables.read_table(data).to_pylist()
        return rows
    if "json" in name:
        return [json.loads(line) for line in data.splitlines()]
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True))


def kept(folder: Path, files: Sequence[str], name: str, *flags: str) -> Rows:
    """Return the kept rows that a run with --output=kept writes to a file with this name."""
    words = [*RUN_LOCAL, "--output=kept", *flags, "-o", f"out/{name}", *files]
    (folder / "out").mkdir(exist_ok=True)
    succeed(words, folder, cwd=folder)
    return read(name, b"".join(unpacked(str(folder / "out" / name))))


@pytest.fixture(scope="module")
def stays(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Return the (id, text) of the kept records, from a run that reads lines of text."""
    tmp = tmp_path_factory.mktemp("stays")
    words = [*RUN_LOCAL, *FLAGS, "--input=text", "--output=kept", "-"]
    lines = succeed(words, tmp, TEXT).out.decode().splitlines()
    assert 0 < len(lines) < len(CORPUS)
    return [(id_, text) for id_, _, text in (line.partition("\t") for line in lines)]


@pytest.mark.first_case
@in_turn(
    2, source=["a.jsonl", "a.csv", "a.tsv", "a.parquet", "a.arrow", "a.ndjson.gz"], target=TARGETS
)
def test_the_same_rows_stay(source: str, target: str, stays: list, tmp_path: Path) -> None:
    made(source, tmp_path)
    rows = kept(tmp_path, [source], target, *FLAGS)
    assert [(row["id"], row["text"]) for row in rows] == stays
    assert len(rows[0]) == 3  # all columns


@pytest.mark.slow
def test_files_of_several_kinds(tmp_path: Path) -> None:
    """A column that a file lacks is absent in JSON, null in Parquet, and empty in CSV."""
    (tmp_path / "1.csv").write_bytes(b'id,text,lang\na,"to be, or",en\nb,"to be, or",fr\n')
    (tmp_path / "2.jsonl").write_bytes(
        b'{"id": "3", "text": "not"}\n{"text": "to be, or", "id": 4}\n{"id": "e", "text": "to"}\n'
    )
    parquet.write_table(arrow.table({"n": [1, 2], "text": ["x", "not"]}), tmp_path / "3.parquet")
    files = ["1.csv", "2.jsonl", "3.parquet"]
    assert kept(tmp_path, files, "x.jsonl") == [
        {"id": "a", "text": "to be, or", "lang": "en"},
        {"id": "3", "text": "not"},
        {"id": "e", "text": "to"},
        {"n": 1, "text": "x"},
    ]
    row = dict.fromkeys(["id", "text", "lang", "n"])
    assert kept(tmp_path, files, "x.parquet") == [
        {**row, "id": "a", "text": "to be, or", "lang": "en"},
        {**row, "id": "3", "text": "not"},
        {**row, "id": "e", "text": "to"},
        {**row, "n": 1, "text": "x"},
    ]
    assert kept(tmp_path, files, "x.csv")[-1] == {"id": "", "text": "x", "lang": "", "n": "1"}


PLAIN: list[Any] = ["", "x", 'a,"b"\r\nc\n', "é\u2028", 0, -(2**63), 2**63 - 1, 0.1, 1e300]
PLAIN += [True, False, -0.0, None]
NESTED: list[Any] = [[1, 2], [], ["a", None], {"a": 1, "b": {"c": [0.5]}}]


@pytest.mark.slow
@pytest.mark.parametrize("values", [PLAIN, NESTED], ids=["plain", "nested"])
def test_values_survive_a_round_trip(values: list[Any], tmp_path: Path) -> None:
    """Each value is a column, with a null in another row, from JSON to Parquet, Arrow and back."""
    columns = {f"x{i}": value for i, value in enumerate(values)}
    rows = [
        {"id": "a", "text": "to", **columns},
        {"id": "b", "text": "be", **dict.fromkeys(columns)},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert kept(tmp_path, ["a.jsonl"], "x.parquet") == rows
    assert kept(tmp_path, ["out/x.parquet"], "x.arrow") == rows
    back = kept(tmp_path, ["out/x.arrow"], "y.jsonl")
    assert repr(back) == repr(rows)
    if values is PLAIN:
        there = kept(tmp_path, ["out/x.parquet"], "y.csv")
        texts = [value if isinstance(value, str) else json.dumps(value) for value in values[:-1]]
        assert list(there[0].values()) == ["a", "to", *texts, ""]
        assert list(there[1].values()) == ["b", "be", *[""] * len(values)]
        data = (tmp_path / "out" / "y.csv").read_bytes()
        assert b'\na,to,"",x,"a,""b""\r\nc\n",' in data.replace(b"\r\na,", b"\na,")
        assert data.count(b'""') == 3  # null is not the empty text


@typed_tables.names
@pytest.mark.slow
def test_types_of_tables_become_text(name: str, tmp_path: Path) -> None:
    day, now = date(2024, 2, 29), datetime(2024, 2, 29, 12, 30, 0, 5, timezone.utc)
    table = arrow.table(
        {
            "id": arrow.array([1, 2], arrow.int16()),
            "text": ["to be", "or not"],
            "day": arrow.array([day, None], arrow.date32()),
            "now": arrow.array([now, None], arrow.timestamp("us", "UTC")),
            "price": arrow.array([Decimal("1.10"), None], arrow.decimal128(9, 2)),
            "data": arrow.array([b"\xff\0", None], arrow.binary()),
            "ratio": arrow.array([0.5, float("nan")], arrow.float32()),
            "none": arrow.array([None, None], arrow.string()),
        }
    )
    typed_tables.write_table(table, tmp_path / name)
    full = {"day": str(day), "now": str(now), "price": "1.10", "data": "/wA=", "ratio": 0.5}
    first = {"id": 1, "text": "to be", **full, "none": None}
    second = {**dict.fromkeys(first), "id": 2, "text": "or not"}
    assert kept(tmp_path, [name], "x.jsonl") == [first, second]
    as_text = [{k: "" if v is None else str(v) for k, v in row.items()} for row in (first, second)]
    assert kept(tmp_path, [name], "x.csv") == as_text
    back = kept(tmp_path, ["out/x.jsonl"], "y.parquet")
    assert back == [first, second]


@pytest.mark.slow
def test_integers_as_large_as_shingles(tmp_path: Path) -> None:
    rows: Rows = [
        {"id": "a", "text": [1, 2], "n": 1},
        {"id": "b", "text": [2**64 - 1, 5], "n": 2**64 - 1},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert kept(tmp_path, ["a.jsonl"], "x.parquet") == rows


@pytest.mark.slow
def test_bad_and_blank_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,text,n\na,to be,1\n\nbad\nb,to be,2\nc,,3\nd,\xff,4\n")
    words = [*RUN_LOCAL, "--output=kept", "-o", "x.jsonl", "--max-bad=0.9", "a.csv"]
    result = succeed(words, tmp_path, cwd=tmp_path)
    rows = read("x.jsonl", (tmp_path / "x.jsonl").read_bytes())
    assert rows == [{"id": "a", "text": "to be", "n": "1"}, {"id": "c", "text": "", "n": "3"}]
    assert result.count("bad lines") == 3
    assert "2 bad lines left out of the answer" in result.err
    lines = b'{"id": "a", "text": "to be"}\n[]\n\n{"id": "b"}\n' + b'{"id": "c", "text": "to"}'
    (tmp_path / "b.jsonl").write_bytes(lines)
    words = [*RUN_LOCAL, "--output=kept", "-o", "x.csv", "--max-bad=0.9", "b.jsonl"]
    result = succeed(words, tmp_path, cwd=tmp_path)
    assert (tmp_path / "x.csv").read_bytes() == b"id,text\na,to be\nb,\nc,to\n"
    assert "1 bad line left out of the answer" in result.err


@pytest.mark.parametrize("memory", ["1M", "0"])
@pytest.mark.parametrize("target", ["x.jsonl", "x.parquet"])
def test_a_compared_row_that_cannot_be_written_is_refused(
    target: str, memory: str, tmp_path: Path
) -> None:
    """Left out, it would be lost with the duplicates that are removed for it."""
    data = b"id,text,note\n1,to be or,caf\xe9\n2,to be or,x\n3,,caf\xe9\n4,not to be,y\n"
    (tmp_path / "a.csv").write_bytes(data)
    words = [*RUN_LOCAL, "--output=kept", "--id=id", "--text=text", f"--memory={memory}", "a.csv"]
    result = refuse([*words, "-o", target], tmp_path, code=1, cwd=tmp_path)
    assert "a.csv: row 1: " in result.err or "a.csv: line 2: " in result.err
    assert "-o x.csv" in result.err
    assert not (tmp_path / target).exists()
    succeed([*words, "-o", "x.csv"], tmp_path, cwd=tmp_path)
    assert (tmp_path / "x.csv").read_bytes() == data.replace(b"2,to be or,x\n", b"")


@pytest.mark.first_case
@pytest.mark.parametrize("data", [b"", b"id,text\n"])
@pytest.mark.parametrize("target", ["x.jsonl", "x.parquet"])
def test_an_empty_file(data: bytes, target: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    assert kept(tmp_path, ["a.csv"], target) == []
    if target == "x.parquet":
        names = parquet.read_schema(tmp_path / "out" / "x.parquet").names
        assert names == (["id", "text"] if data else [])
        if data:
            assert kept(tmp_path, ["out/x.parquet"], "y.csv") == []
            assert (tmp_path / "out" / "y.csv").read_bytes() == data


@pytest.mark.slow
def test_many_rows(tmp_path: Path) -> None:
    """A field and a fractional number that only the last row of several blocks has are kept."""
    rows: Rows = [{"id": f"r{i}", "text": f"w{i} " * 20, "n": i} for i in range(9000)]
    rows[-1] = {**rows[-1], "n": 0.5, "late": ["x"]}
    twice = [row for row in rows for _ in range(2)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in twice))
    found = kept(tmp_path, ["a.jsonl"], "x.parquet", "--exact", "--threshold=1", "--jobs=2")
    assert found == [{"late": None, **row} for row in rows]
    found = kept(tmp_path, ["a.jsonl"], "x.jsonl.gz", "--exact", "--threshold=1", "--jobs=2")
    assert found == rows


REFUSED = {  # rows, the name of the answer: what is said
    ('{"id":"a","text":"to","x":[1]}', "x.csv"): "field 'x' has lists or objects",
    ('{"id":"a","text":"to","x":{}}', "x.csv"): "field 'x' has lists or objects",
    (
        '{"id":"a","text":"to","x":1}\n{"id":"b","text":"be","x":"1"}',
        "x.parquet",
    ): "field 'x' has values",
    ('{"id":"a","text":"to","x":%d}'.replace("%d", str(2**64)), "x.parquet"): "field 'x' has numb",
    ('{"id":"a","text":"to","x":"\\ud83d"}', "x.parquet"): "field 'x' has text",
    ('{"id":"a","text":"to","x":{}}', "x.parquet"): "a field has objects without fields",
}


@pytest.mark.first_case
@pytest.mark.parametrize(("rows", "name"), REFUSED)
def test_refused_values(rows: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(rows + "\n")
    (tmp_path / name).write_bytes(b"of yesterday")
    words = [*RUN_LOCAL, "--output=kept", "-o", name, "a.jsonl"]
    result = run(words, tmp_path, cwd=tmp_path)
    assert (result.code, result.out, result.left) == (1, b"", [])
    assert f"-o {name}: {REFUSED[rows, name]}" in result.err
    assert "; add: -o x.jsonl\n" in result.err
    assert (tmp_path / name).read_bytes() == b"of yesterday"


@typed_tables.names
def test_packed_tables_are_refused(name: str, tmp_path: Path) -> None:
    typed_tables.write_table(arrow.table({"text": ["to"]}), tmp_path / name)
    words = [*RUN_LOCAL, "--output=kept", "-o", f"{name}.gz", name]
    result = run(words, tmp_path, cwd=tmp_path)
    assert (result.code, result.out, result.left) == (2, b"", [])
    assert f"{typed_tables.title_of(name)} is compressed inside; name it {name}" in result.err
