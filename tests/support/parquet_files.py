"""Parquet files as other programs write them, and their rows as a run reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from neardup.reading.blocks import read_files
from neardup.reading.input_format import InputFormat
from neardup.reading.text_rows import json_line

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


def form_of(id_: str | None = None, text: str | None = None) -> InputFormat:
    return InputFormat.of("parquet", "word:2", None, id_, text)


def rows_of(path: Path, form: InputFormat) -> list[dict]:
    blocks = read_files([str(path)], 1 << 20, pieces=form.pieces)
    return [json.loads(json_line(row)) for block in blocks for row in block.data]


def many(path: Path, rows: int = 5000, **how: Any) -> Sequence[str]:
    ids = [f"v{i}" for i in range(rows)]
    texts = [f"number {i % 997} of {i % 991} and so on" for i in range(rows)]
    parquet.write_table(arrow.table({"text": texts, "id": ids}), path, **how)
    return ids
