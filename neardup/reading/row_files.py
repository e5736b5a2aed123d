r"""Write rows (dictionaries) as JSON lines, CSV, Parquet or Arrow, by the name of the file.

    {"a": "x", "b": "y", "similarity": 0.9}
        ─▶ {"a":"x","b":"y","similarity":0.9}⏎      .jsonl .ndjson .json
        ─▶ a,b,similarity⏎x,y,0.9⏎                  .csv, with a header
        ─▶ a row of a table with typed columns      .parquet .pq .arrow .feather

An answer is made as lines with tabs.  If its file has such a name, each line is written as a row,
and each row is read as that line.
Memory: some thousand rows, or a row group of Parquet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import chain, islice
from typing import IO, Any, Callable, NamedTuple

from neardup.reading.compressed import kind_by_name, plain_name
from neardup.reading.table_files import TABLES, check_pyarrow
from neardup.reading.table_rows import plain_value
from neardup.reading.text_rows import Row
from neardup.runtime.program import UsageError, WireError, naming, shown, write_to

JSON, CSV = "jsonl", "csv"
FORMATS = (JSON, CSV, *TABLES)
BATCH_ROWS = 1 << 12
SPECIAL = re.compile('[",\r\n]')
BOOLEANS = {"true": True, "false": False}

Columns = Mapping[str, Any]  # name: str, float, int or bool, or an Arrow type


class LineTable(NamedTuple):
    """The columns of an answer, and the functions that convert its lines to rows and back."""

    columns: Columns
    row_of: Callable[[bytes], Row]
    line_of: Callable[[Row], bytes]


def fields_table(**columns: type) -> LineTable:
    r"""Return the table for lines of tab-separated fields; `-` is null, except in text columns.

    >>> table = fields_table(id=str, kept=str, similarity=float)
    >>> table.row_of(b"b\ta\t-\n"), table.line_of({"id": "b", "kept": "a", "similarity": 0.9})
    ({'id': 'b', 'kept': 'a', 'similarity': None}, b'b\ta\t0.900000\n')
    """

    def row_of(line: bytes) -> Row:
        fields = line.decode().rstrip("\n").split("\t")
        pairs = zip(columns.items(), fields)
        return {
            name: None if kind is not str and f == "-" else kind(f) for (name, kind), f in pairs
        }

    def line_of(row: Row) -> bytes:
        values = (row[name] for name in columns)
        fields = (f"{v:.6f}" if isinstance(v, float) else "-" if v is None else v for v in values)
        return "\t".join(map(str, fields)).encode() + b"\n"

    return LineTable(columns, row_of, line_of)


def line_of_row(row: Row, tables: Sequence[LineTable]) -> bytes:
    r"""Convert a row to a line, by the first table whose columns it has; WireError if impossible.

    >>> line_of_row({"id": 7, "bits": 3, "share": "0.5"}, [fields_table(id=str, share=float)])
    b'7\t0.500000\n'
    """
    try:
        table = next(each for each in tables if row.keys() >= each.columns.keys())
        return table.line_of(
            {name: _value(row[name], kind) for name, kind in table.columns.items()}
        )
    except (StopIteration, ValueError, KeyError, OverflowError):
        names = ", or ".join(" ".join(table.columns) for table in reversed(tables))
        raise WireError(
            f"expected a row with {names}, as -o writes them, got {shown(json_row(row)[:-1])}"
        ) from None


def _value(value: Any, kind: type) -> Any:
    """Convert a value to the type of a column; else ValueError, KeyError or OverflowError."""
    if kind is bool:
        return BOOLEANS[str(value).lower()]
    if kind is not str and value in (None, ""):
        return None
    if type(value) not in ((str, int) if kind is str else (str, int, float, bool)):
        raise ValueError
    return kind(value)  # an id may be an int: another program took it for a number


def check_row_file(option: str, name: str) -> None:
    """Raise UsageError or StageError if the format that the name implies cannot be written."""
    kind = kind_by_name(name)
    if kind in TABLES:
        check_pyarrow(kind)
        if plain_name(name) != name:
            raise UsageError(
                f"{option} {name}: {TABLES[kind].title} is compressed inside; name it "
                f"{plain_name(name)}"
            )


def write_rows(
    sink: IO[bytes], name: str, form: str, rows: Iterable[Row], columns: Columns
) -> None:
    """Write rows in one of FORMATS; an OSError names the file `name`."""
    if form in TABLES:
        with naming(name):
            _write_typed(sink, form, rows, columns)
    elif form == CSV:
        header = [csv_row(columns)] if columns else []
        write_to(sink, chain(header, (csv_row(map(row.get, columns)) for row in rows)), name)
    else:
        write_to(sink, map(json_row, rows), name)


def json_row(row: Row) -> bytes:
    r"""Return a row as a JSON line; a lone surrogate, such as \ud83d, stays escaped."""
    return json_text(row, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


def json_text(row: Row, **how: Any) -> str:
    """Return a row as JSON, with null for NaN and infinite numbers."""
    how |= dict(ensure_ascii=False, allow_nan=False)
    try:
        return json.dumps(row, **how)
    except ValueError:
        return json.dumps(plain_value(row, finite=True), **how)


def csv_row(values: Iterable[Any]) -> bytes:
    r"""Return values as a row of CSV: null is an empty field, and an empty text is "".

    >>> csv_row(["to be, or", None, "", 0.5, True])
    b'"to be, or",,"",0.5,true\n'
    """
    fields = list(map(_csv_field, values))
    return (",".join(fields) or '""').encode() + b"\n"  # readers skip a blank row


def _csv_field(value: Any) -> str:
    if isinstance(value, str):
        quoted = not value or SPECIAL.search(value)
        return '"' + value.replace('"', '""') + '"' if quoted else value
    return "" if plain_value(value) is None else json.dumps(value).replace("Infinity", "inf")


def _write_typed(sink: IO[bytes], form: str, rows: Iterable[Row], columns: Columns) -> None:
    arrow = import_module("pyarrow")
    kinds = {str: arrow.string(), float: arrow.float64(), int: arrow.int64(), bool: arrow.bool_()}
    schema = arrow.schema([(name, kinds.get(kind, kind)) for name, kind in columns.items()])
    rows = iter(rows)
    pieces = iter(lambda: list(islice(rows, BATCH_ROWS)), [])
    batches = (arrow.RecordBatch.from_pylist(some, schema) for some in pieces)
    TABLES[form].write(sink, batches, schema)
