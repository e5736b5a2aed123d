"""Ids that are made for rows without one: they are never the id of another row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neardup.reading.blocks import BLOCK_BYTES, numbered, read_files
from neardup.reading.input_format import InputFormat
from neardup.reading.text_rows import with_row_ids
from neardup.runtime.program import StageError


def ids_of(*paths: Path, **options: str | None) -> list[str]:
    """Return the ids of all rows, as a run makes and checks them."""
    names = [str(path) for path in paths]
    form = InputFormat.of(None, "word:1", None, names=names, **options)  # type: ignore[arg-type]
    assert form.fields
    parse, ids = form.parser(), []
    for block in read_files(numbered(names), 1 << 20, pieces=form.pieces):
        batch, _ = parse(block.data)
        made = with_row_ids(batch.ids, batch.places.tolist(), block, form.fields)
        ids += [id_.decode() for id_ in made]
    return ids


def jsonl(path: Path, *ids: object) -> Path:
    """Write a row for each id; an id "-" is left out."""
    rows = [{"text": "t"} if id_ == "-" else {"id": id_, "text": "t"} for id_ in ids]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(path: Path, *ids: str | int | None) -> Path:
    """Write a row for each id to a table; None is an empty field or null."""
    if path.suffix in (".parquet", ".arrow"):
        files = pytest.importorskip("tests.support.typed_tables")
        rows = files.arrow.table({"id": list(ids), "text": ["t"] * len(ids)})
        files.write_table(rows, path)
        return path
    comma = "," if path.suffix == ".csv" else "\t"
    lines = [f"{'' if id_ is None else id_}{comma}t\n" for id_ in ids]
    path.write_text(f"id{comma}text\n" + "".join(lines))
    return path


@pytest.mark.parametrize("missing", ["-", None, ""])
def test_a_made_up_id_is_not_a_number_beside_real_ids(missing: object, tmp_path: Path) -> None:
    found = ids_of(jsonl(tmp_path / "x.jsonl", 3, missing, "7", missing))
    assert found == ["3", "x.jsonl:2", "7", "x.jsonl:4"]
    assert ids_of(jsonl(tmp_path / "x.jsonl", missing, 1)) == ["x.jsonl:1", "1"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow"])
def test_so_in_tables(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{kind}"
    assert ids_of(table(path, 3, None, 7)) == ["3", "x." + kind + ":2", "7"]
    assert ids_of(table(path, None, None)) == [f"x.{kind}:1", f"x.{kind}:2"]


def test_rows_of_a_file_without_ids_have_their_numbers(tmp_path: Path) -> None:
    """The same ids as before there were names in made-up ones."""
    assert ids_of(jsonl(tmp_path / "x.jsonl", "-", None, "")) == ["1", "2", "3"]
    (tmp_path / "x.csv").write_text("text\na\nb\n")
    assert ids_of(tmp_path / "x.csv") == ["1", "2"]
    (tmp_path / "x.csv").write_text("7,a\n3,b\n")
    assert ids_of(tmp_path / "x.csv", text="2") == ["1", "2"]
    assert ids_of(table(tmp_path / "y.csv", 3, None), id_="") == ["1", "2"]


def test_files_of_one_name_in_two_folders(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    paths = [jsonl(tmp_path / name / "x.jsonl", "-", 1) for name in ("a", "b")]
    assert ids_of(*paths) == ["a/x.jsonl:1", "1", "b/x.jsonl:1", "1"]


@pytest.mark.parametrize(
    "ids", [["x.jsonl:2", "-"], ["a", "-", "x.jsonl:2"], ["x.jsonl:99999999999999999999999", "-"]]
)
def test_an_id_like_that_of_another_row_is_refused(ids: list[str], tmp_path: Path) -> None:
    with pytest.raises(StageError, match="is also that of a row without an id; add: --id id"):
        ids_of(jsonl(tmp_path / "x.jsonl", *ids))


def test_other_ids_with_a_name_and_a_number_are_not(tmp_path: Path) -> None:
    ids = ["x.jsonl:1", "y.jsonl:1", "x.jsonl:02", "x.jsonl:", ":5", "x.jsonl:6", "1"]
    assert ids_of(jsonl(tmp_path / "x.jsonl", *ids)) == ids  # rows 1 and 6 name themselves
    ids = ["x.jsonl:2", "x.jsonl:1"]
    assert ids_of(jsonl(tmp_path / "x.jsonl", *ids), id_="id") == ids  # no ids are made


def test_a_name_in_another_file_of_the_run_is_refused(tmp_path: Path) -> None:
    one, two = jsonl(tmp_path / "x.jsonl", 1, "-"), jsonl(tmp_path / "y.jsonl", "x.jsonl:2")
    with pytest.raises(StageError, match=r"y.jsonl: line 1: the id 'x.jsonl:2'"):
        ids_of(one, two)


@pytest.mark.slow
def test_ids_that_come_late(tmp_path: Path) -> None:
    """Where the first rows are numbered, a number as id is refused, unless it is its own."""
    many = ["-"] * (BLOCK_BYTES // len('{"text": "t"}\n') + 1)
    end = len(many) + 1
    assert ids_of(jsonl(tmp_path / "x.jsonl", *many, end, "a", "-"))[-3:] == [
        str(end),
        "a",
        str(end + 2),
    ]
    with pytest.raises(StageError, match=rf"line {end}: the id '17' .* add: --id ''"):
        ids_of(jsonl(tmp_path / "x.jsonl", *many, "17"))
