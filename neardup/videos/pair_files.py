"""Files of pairs of videos: lines, JSON lines, or a Parquet table, with a row for each run.

Memory: that of the pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import IO

from neardup.reading.compressed import kind_by_name, packing
from neardup.reading.parquet_rows import check_pyarrow
from neardup.runtime.program import write_to
from neardup.videos.pair_lines import COLUMNS, PairRun, format_object, format_run, row_of

FORMATS = {"lines": format_run, "json": format_object, "parquet": row_of}


def format_by_name(name: str) -> str:
    """Return the format of a file of pairs, inferred from its extension.

    >>> format_by_name("a.jsonl.gz"), format_by_name("a.parquet"), format_by_name("pairs.tsv")
    ('json', 'parquet', 'lines')
    """
    return {"jsonl": "json", "parquet": "parquet"}.get(kind_by_name(name) or "", "lines")


def write_runs(sink: IO[bytes], name: str, runs: Iterable[PairRun], form: str) -> None:
    """Write runs to a file, in one of FORMATS; `name` determines the compression."""
    if form == "parquet":
        _write_table(sink, runs)
        return
    with packing(sink, name) as packed:
        write_to(packed, map(format_object if form == "json" else format_run, runs), name)


def _write_table(sink: IO[bytes], runs: Iterable[PairRun]) -> None:
    check_pyarrow()
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    kinds = {"a": arrow.string(), "b": arrow.string(), "mirrored": arrow.bool_()}
    schema = arrow.schema([(name, kinds.get(name, arrow.float64())) for name in COLUMNS])
    parquet.write_table(arrow.Table.from_pylist([row_of(run) for run in runs], schema), sink)
