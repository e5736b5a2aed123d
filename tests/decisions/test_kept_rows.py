"""Rows that -o writes in another format: bad rows are counted, and columns get types that fit."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neardup.decisions.marked_rows import Columns, keep_as_rows
from neardup.lines.answer_lines import format_decided
from neardup.reading.blocks import NEW, InputFile
from tests.support.drawn import settings_of
from tests.support.programs import NEARDUP, succeed


def test_rows_that_cannot_be_read_are_left_out_and_counted(tmp_path: Path) -> None:
    """Rows without an object, and those with half a row, are counted; a removed row is not."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": 1}\n[1]\n{"id": 2}\n{"id": \n\n{"id": 3}\nnull\n')
    gone = tmp_path / "decided"
    gone.write_bytes(format_decided(b"%016x" % (NEW + 2), b"2", b"1", b"1.000000"))
    sink, form = io.BytesIO(), settings_of("--input=jsonl", "--text=id").form
    file = InputFile(str(path), "rows.jsonl", NEW)
    with gone.open("rb") as decided:
        bad = np.array([1, 3, 6], np.uint64) + np.uint64(NEW)
        left_out = keep_as_rows(form, [file], 1 << 20, decided, sink, ("x.jsonl", "jsonl"), bad)
    assert sink.getvalue() == b'{"id": 1}\n{"id": 3}\n'
    assert left_out == 3


HUGE = 2**64 - 1


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value]], ids=["", "list"])
@pytest.mark.parametrize("values", [(1, HUGE), (HUGE, 1), (HUGE, HUGE), (1, HUGE, 2)])
def test_a_column_of_small_and_huge_integers_is_unsigned(values: Any, wrap: Any) -> None:
    arrow = pytest.importorskip("pyarrow")
    columns = Columns("x.parquet", "parquet", [])
    for value in values:
        columns.add([{"a": wrap(value)}])
    kind = arrow.uint64()
    assert columns.kinds == {"a": kind if wrap(0) == 0 else arrow.list_(kind)}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "arrow"])
def test_infinite_numbers_are_kept_where_a_format_has_them(kind: str, tmp_path: Path) -> None:
    tables = pytest.importorskip("tests.support.typed_tables")
    numbers = [math.inf, -math.inf, math.nan]
    rows = {"id": ["a", "b", "c"], "text": ["x", "y", "z"], "n": numbers}
    tables.write_table(tables.arrow.table(rows), tmp_path / "t.parquet")
    out = tmp_path / f"x.{kind}"
    succeed([*NEARDUP, "run", "--output=kept", "-o", out, tmp_path / "t.parquet"], tmp_path)
    data = out.read_bytes()
    if kind == "csv":
        assert data == b"id,text,n\na,x,inf\nb,y,-inf\nc,z,\n"
    elif kind == "jsonl":
        assert [json.loads(line)["n"] for line in data.splitlines()] == [None] * 3
    else:
        found = tables.read_table(data)["n"].to_pylist()
        assert found == [math.inf, -math.inf, None]
