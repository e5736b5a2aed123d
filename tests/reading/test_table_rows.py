"""Mappers share the rows of typed tables, kept rows are copied, and damaged files are reported."""

import datetime
import decimal
import io
import json
import re
from pathlib import Path
from typing import Any, Callable

import pytest

from neardup.decisions.kept_lines import keep_in_one
from neardup.lines.answer_lines import format_decided
from neardup.reading import table_files, table_rows
from neardup.reading.blocks import InputFile, first_place, numbered, read_files
from neardup.reading.compressed import kind_by_name
from neardup.reading.input_format import InputFormat
from neardup.reading.text_rows import Fields
from neardup.runtime.program import StageError
from tests.support.engines import refuse
from tests.support.failing import MEASURED
from tests.support.programs import MAPPER, RUN_LOCAL, run, succeed
from tests.support.typed_tables import (
    arrow,
    codec_of,
    form_of,
    many,
    names,
    read_table,
    rows_of,
    title_of,
    write_table,
    writers,
)


@pytest.mark.first_case
@writers
def test_kept_has_all_columns_and_types(
    name: str, write: Callable[[Path], None], tmp_path: Path
) -> None:
    path, kept = tmp_path / name, tmp_path / f"kept-{name}"
    write(path)
    succeed([*RUN_LOCAL, "--output=kept", path, "-o", kept], tmp_path)
    before, after = read_table(path), read_table(kept)
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after.to_pylist() == before.to_pylist()[:4]  # dictionaries may differ
    assert codec_of(kept) == codec_of(path)


@names
@pytest.mark.first_case
@pytest.mark.parametrize("kind", ["string_view", "binary_view"])
def test_kept_has_views(name: str, kind: str, tmp_path: Path) -> None:
    """Kept rows may have columns of Arrow's view types, which pyarrow cannot filter."""
    if not hasattr(arrow, kind):
        pytest.skip("needs a newer pyarrow")
    path, kept = tmp_path / name, tmp_path / f"kept-{name}"
    texts = arrow.array(["to be", "to be", "not", None, "to be"]).cast(getattr(arrow, kind)())
    write_table(arrow.table({"id": list("abcde"), "text": texts}), path)
    result = succeed([*RUN_LOCAL, "--output=kept", path, "-o", kept], tmp_path)
    assert result.count("records kept") == 2
    before, after = read_table(path), read_table(kept)
    assert after.schema.equals(before.schema)
    assert after.to_pylist() == [before.to_pylist()[i] for i in (0, 2, 3)]


@names
@pytest.mark.parametrize("group", [1, 7, 1000, 5000])
@pytest.mark.parametrize("turns", [[0], [0, 1, 2], [1, 0]])
def test_mappers_share_a_file(
    name: str, group: int, turns: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "BLOCK_BYTES", 1000)
    rows = 300 if group < 10 else 5000
    ids = many(tmp_path / name, rows, group=group)
    form, found = form_of(), {}
    for turn in turns:
        mine = iter(range(turn, 10**6, len(turns)))
        files = numbered([str(tmp_path / name)])
        for block in read_files(files, 1 << 20, mine, pieces=form.pieces):
            for i, row in enumerate(block.data):
                found[block.line + i] = row["id"]
                assert block.first + i == first_place(0, block.line + i - 1)
    assert [found[i + 1] for i in range(rows)] == list(ids)
    assert len(found) == rows


@names
@pytest.mark.first_case
@pytest.mark.parametrize("rows", [0, 1])
def test_small_files(name: str, rows: int, tmp_path: Path) -> None:
    path, kept = tmp_path / name, tmp_path / f"kept-{name}"
    many(path, rows)
    result = succeed([*RUN_LOCAL, "--output=kept", "-o", kept, path], tmp_path)
    assert result.count("records") == rows
    assert read_table(kept).equals(read_table(path))


@names
@pytest.mark.first_case
@pytest.mark.parametrize("damage", ["empty", "half", "no end", "text", "packed", "inside"])
def test_damaged(name: str, damage: str, tmp_path: Path) -> None:
    path = tmp_path / name
    many(path, codec="zstd")
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
        result = refuse([*command, path], tmp_path, code=1)
        assert re.search(f"{path}: is not an? {title_of(name)} file, or damaged", result.err)
        assert len([line for line in result.err.splitlines() if "damaged" in line]) == 1


def test_a_wrong_offset_in_an_arrow_file(tmp_path: Path) -> None:
    """An offset outside the file, which has no checksum, is not followed into other memory."""
    path = tmp_path / "a.arrow"
    texts = ["first", "later", "to be or not to be"] * 9
    write_table(arrow.table({"id": list(range(27)), "text": texts}), path, codec="none")
    data, offsets = path.read_bytes(), b"\x05\0\0\0\x0a\0\0\0"
    assert data.count(offsets) == 1
    path.write_bytes(data.replace(offsets, b"\0\0\0\x70\x0a\0\0\0"))
    refuse([*RUN_LOCAL, path], tmp_path, f"{path}: is not an Arrow file, or damaged: ", code=1)


@pytest.mark.parametrize("share", [0.3, 0.9, 2])
def test_a_stream_that_is_cut_short_or_followed_by_another(share: float, tmp_path: Path) -> None:
    path = tmp_path / "stream.arrow"
    many(path, group=500)
    data = path.read_bytes()
    path.write_bytes((2 * data)[: int(share * len(data))])
    result = run([*RUN_LOCAL, "--output=kept", path], tmp_path)
    assert (result.code, result.out, result.left) == (1, b"", [])
    assert f"{path}: is not an Arrow file, or damaged: " in result.err


def test_a_stream_without_its_end_is_cut_between_batches(tmp_path: Path) -> None:
    """The line that the message names makes it a whole one."""
    path = tmp_path / "stream.arrow"
    write_table(arrow.table({"id": ["a", "b"], "text": ["to be"] * 2}), path)
    data = path.read_bytes()
    path.write_bytes(data.removesuffix(b"\xff\xff\xff\xff\0\0\0\0"))
    result = refuse([*RUN_LOCAL, "--output=kept", path], tmp_path, code=1)
    line = result.err.strip().partition("if none is, type: ")[2]
    run(["sh", "-c", line.replace("FILE", str(path))], tmp_path)
    assert path.read_bytes() == data


# What stays.


@names
def test_a_file_that_has_become_shorter(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    many(path, 10)
    with pytest.raises(StageError, match=f"{name}: is shorter than when the decision was made"):
        keep(path, [3, 10], tmp_path)


def keep(path: Path, gone: list[int], tmp: Path) -> Any:
    decided = tmp / "decided"
    decided.write_bytes(
        b"".join(format_decided(b"%016x" % first_place(0, n), b"x", b"y", b"-") for n in gone)
    )
    sink = io.BytesIO()
    with open(decided, "rb") as lines:
        keep_in_one(form_of(), [InputFile(str(path), str(path), first_place(0))], 1, lines, sink)
    return read_table(sink.getvalue())


@names
@pytest.mark.parametrize("group", [1000, 5000])
@pytest.mark.parametrize("written", [1, 1 << 26])
def test_rows_that_stay(
    name: str, group: int, written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "READ_BYTES", 1000)
    monkeypatch.setattr(table_files, "WRITTEN_BYTES", written)
    path = tmp_path / name
    many(path, group=group)
    table = read_table(path)
    for gone in ([], [0], [4999], [0, 1, 999, 1000, 1001, 4999], list(range(5000))):
        stays = sorted(set(range(5000)) - set(gone))
        assert keep(path, gone, tmp_path).equals(table.take(arrow.array(stays, arrow.int64())))


@names
@pytest.mark.slow
def test_types_that_few_have(name: str, tmp_path: Path) -> None:
    """Columns of rare types are kept unchanged, and can be read as JSON values."""
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
    path = tmp_path / name
    write_table(table, path, codec="zstd")
    kept = tmp_path / f"kept-{name}"
    succeed([*RUN_LOCAL, "--output=kept", path, "-o", kept], tmp_path)
    before, after = read_table(path), read_table(kept)
    assert after.schema.equals(before.schema, check_metadata=True)
    assert str(after.to_pylist()) == str(before.take([0, 2]).to_pylist())
    (first, second, third) = rows_of(
        path, InputFormat(None, None, form_of().clean, False, Fields("id", (), False))
    )
    assert first["nested"] == [{"x": ["/w==", None]}]
    assert (first["float"], second["float"], third["float"]) == (1.5, None, float("inf"))
    assert (first["fixed"], first["map"], first["lists"]) == ("YWI=", [["k", 1]], [1, 2])
    assert first["stamp"].startswith("2020-01-02 03:04:05.000006")
    assert (first["time"], first["decimal"]) == ("03:04:05.000006", "1.50")
    assert (first["null"], second["bool"]) == (None, None)
    assert third["bool"] is False


@names
@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        (arrow.timestamp("s"), 2**40, "1099511627776"),
        (arrow.timestamp("us", "Europe/Berlin"), 253402300799999999, "10000-01-01 00:59:59"),
        (arrow.date32(), 2**30, "1073741824"),
        (arrow.duration("s"), 2**62, "4611686018427387904"),
    ],
    ids=str,
)
def test_dates_that_python_does_not_have(
    name: str, kind: Any, number: int, text: str, tmp_path: Path
) -> None:
    """A date after the year 9999 is text in JSON lines, and a long duration a number."""
    column = arrow.array(
        [number, None, 0], arrow.int64() if kind != arrow.date32() else arrow.int32()
    )
    columns = {"id": ["a", "b", "c"], "text": ["x", "y", "z"], "when": column.cast(kind)}
    write_table(arrow.table(columns), tmp_path / name)
    kept = tmp_path / "kept.jsonl"
    succeed([*RUN_LOCAL, "--output=kept", "-o", kept, tmp_path / name], tmp_path)
    first, second, third = map(json.loads, kept.read_text().splitlines())
    assert text in str(first["when"])
    assert second["when"] is None
    assert str(third["when"]).startswith(("1970-01-01", "0"))


# Memory.

LONG = [f"{k} " + "a word that is long " * 500 for k in range(3)]  # 10 KB, which the file has once


def write_long(path: Path) -> None:
    """Write texts of some 60 MB as 100 KB, with a column of structs and one of lists."""
    texts = [LONG[i % 3] for i in range(6000)]
    columns = {"text": texts, "meta": [{"body": text} for text in texts], "of": [[7] * 9] * 6000}
    if path.suffix != ".parquet":
        columns["text"] = arrow.array(texts).dictionary_encode()
    write_table(arrow.table({**columns, "id": list(range(6000))}), path)


@names
@pytest.mark.slow
@pytest.mark.parametrize("text", ["text", "meta.body"])
def test_strings_that_the_file_has_once_are_read_some_at_a_time(
    name: str, text: str, tmp_path: Path
) -> None:
    path, kept = tmp_path / name, tmp_path / f"kept-{name}"
    write_long(path)
    flags = ["--jobs=1", "--text", text, "--output=kept", "-o", kept]
    result = run([*MEASURED, *RUN_LOCAL, *flags, path], tmp_path, process=True)
    assert result.count("records kept") == 3
    assert read_table(kept).equals(read_table(path).take([0, 1, 2]))
    assert int(result.err.splitlines()[-1]) < 300_000  # KiB; all rows at once take 1 GB


@pytest.mark.slow
def test_record_batches_are_read_one_by_one(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.arrow", tmp_path / "kept.arrow"
    texts = [f"{i} " * 300 for i in range(50_000)] * 2
    table = arrow.table({"id": list(range(100_000)), "text": texts})
    write_table(table, path, 500, "none")  # 170 MB
    flags = ["--jobs=1", "--output=kept", "--shingle=word:1", "--memory=0", "-o", kept, path]
    result = run([*MEASURED, *RUN_LOCAL, *flags], tmp_path, process=True)
    assert read_table(kept).equals(table.slice(0, 50_000))
    assert int(result.err.splitlines()[-1]) < 150_000  # KiB


@names
@pytest.mark.parametrize("order", [1, -1])
def test_batches_are_bounded_wherever_the_large_rows_are(
    name: str, order: int, tmp_path: Path
) -> None:
    path, most = tmp_path / name, 100_000
    rows = ["b"] * 3000 + ["many words " * 1000] * 300 + ["huge" * 100_000] + ["a", "b", "c"] * 50
    table = arrow.table({"text": rows[::order], "n": [[i] for i in range(len(rows))]})
    write_table(table, path)
    with table_files.opened_typed(kind_by_name(name), str(path), name) as file:
        (group,) = file.groups()
        found = list(group.batches(1000, most))
    assert arrow.Table.from_batches(found).equals(table)
    large = [batch for batch in found if batch.num_rows > 1 and batch.nbytes > most]
    assert len(large) < 6  # where rows grow, until it is seen
    assert len(found) < 200
