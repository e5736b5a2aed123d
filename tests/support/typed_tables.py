"""Parquet and Arrow files as other programs write them, and their rows as a run reads them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from neardup.reading.blocks import numbered, read_files
from neardup.reading.input_format import InputFormat
from neardup.reading.text_rows import json_line

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
ipc = pytest.importorskip("pyarrow.ipc")

TEXTS = ["to be or not to be", None, 'caf\u00e9 \U0001f600\t"q"\n\u2028', "", "to be or not to be"]
IDS = ["a", "b", "c", "d", "e"]
META = [{"body": text, "n": i} if i != 3 else None for i, text in enumerate(TEXTS)]
LISTS = [[3, 1, 3], None, [], [2**40], [1, 3]]


def title_of(name: str) -> str:
    return "Parquet" if name.endswith(".parquet") else "Arrow"


def write_table(table: Any, path: Path, group: int | None = None, codec: str = "lz4") -> None:
    """Write a table as Parquet or as an Arrow file, or as a stream if the name says so."""
    if path.suffix == ".parquet":
        how: dict[str, Any] = dict(compression={"lz4": "snappy"}.get(codec, codec))
        parquet.write_table(table, path, row_group_size=group, write_page_checksum=True, **how)
        return
    options = ipc.IpcWriteOptions(compression=None if codec == "none" else codec)
    make = ipc.new_stream if "stream" in path.name else ipc.new_file
    with make(str(path), table.schema, options=options) as writer:
        writer.write_table(table, group)


def read_table(source: Path | bytes) -> Any:
    data = source if isinstance(source, bytes) else source.read_bytes()
    if data.startswith(b"PAR1"):
        return parquet.read_table(io.BytesIO(data))
    stream = not data.startswith(b"ARROW1")
    return (ipc.open_stream if stream else ipc.open_file)(io.BytesIO(data)).read_all()


def codec_of(path: Path) -> str | None:
    """Return the compression of a file; that of Arrow by the frame of its first long buffer."""
    if path.suffix == ".parquet":
        codec: str = parquet.ParquetFile(path).metadata.row_group(0).column(0).compression
        return codec
    frames = {"lz4": b"\x04\x22\x4d\x18", "zstd": b"\x28\xb5\x2f\xfd"}
    data = path.read_bytes()
    return next((name for name, frame in frames.items() if frame in data), None)


def by_pyarrow(path: Path) -> None:
    write_table(arrow.table({"id": IDS, "text": TEXTS, "meta": META, "lists": LISTS}), path, 2)


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
    if path.suffix == ".parquet":
        parquet.write_table(table, path, compression="zstd", version="2.6", data_page_version="2.0")
    else:
        write_table(table, path, codec="zstd")


def by_dictionary(path: Path) -> None:
    table = arrow.table(
        {
            "id": arrow.array(IDS).dictionary_encode(),
            "text": arrow.array(TEXTS).dictionary_encode(),
            "meta": META,
            "lists": LISTS,
        }
    )
    write_table(table, path, codec="none")


def by_pandas(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": IDS, "text": TEXTS, "meta": META, "lists": LISTS})
    frame["text"] = frame["text"].astype("category")
    if path.suffix == ".parquet":
        frame.set_index("id").to_parquet(path)  # the index is a column of its own
    else:
        frame.to_feather(path)


def by_polars(path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": IDS, "text": TEXTS, "meta": META, "lists": LISTS})
    frame = frame.with_columns(polars.col("id").cast(polars.Categorical))
    if path.suffix == ".parquet":
        frame.write_parquet(path, row_group_size=3)
    elif "stream" in path.name:
        frame.write_ipc_stream(path, compression="zstd")
    else:
        frame.write_ipc(path, compression="lz4")


def by_duckdb(path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    plain = path.with_name("plain.parquet")
    by_pyarrow(plain)
    duckdb.sql(f"COPY (SELECT * FROM '{plain}') TO '{path}' (FORMAT parquet)")


def by_datasets(path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"id": IDS, "text": TEXTS, "meta": META, "lists": LISTS})
    if path.suffix == ".parquet":
        made.to_parquet(str(path))
    else:
        made.save_to_disk(str(path.with_name("saved")))
        next(path.with_name("saved").glob("*.arrow")).rename(path)


names = pytest.mark.parametrize("name", ["a.arrow", "a.parquet"])
WRITERS = {
    "a.parquet": [by_duckdb, by_datasets, by_pandas],
    "a.arrow": [by_pandas],
    "stream.feather": [by_datasets],
}
for some in WRITERS.values():
    some += [by_pyarrow, by_pyarrow_large, by_dictionary, by_polars]
writers = pytest.mark.parametrize(
    ("name", "write"), [(name, write) for name, some in WRITERS.items() for write in some]
)


def form_of(id_: str | None = None, text: str | None = None) -> InputFormat:
    """Return a format of files of both kinds."""
    return InputFormat.of(None, "word:2", None, id_, text, ["a.parquet", "a.arrow"])


def rows_of(path: Path, form: InputFormat) -> list[dict]:
    blocks = read_files(numbered([str(path)]), 1 << 20, pieces=form.pieces)
    return [json.loads(json_line(row)) for block in blocks for row in block.data]


def many(path: Path, rows: int = 5000, **how: Any) -> Sequence[str]:
    ids = [f"v{i}" for i in range(rows)]
    texts = [f"number {i % 997} of {i % 991} and so on" for i in range(rows)]
    write_table(arrow.table({"text": texts, "id": ids}), path, **how)
    return ids
