"""Files of video fingerprints ("prints"): JSON lines, plain or compressed, Parquet or Arrow.

For the lines see `video_prints`.  In a table, each row is a print:

    id        string
    facts     string             a JSON object
    variants  list of strings    V names
    starts    list of int64      n, milliseconds
    ends      list of int64      n
    hashes    list of 32 bytes   n·V, all of the first span first; bits in the order of the hex

A file that a user names is a file of prints if it begins like one.  Its name does not matter, but a
compressed file must have the extension of its compression (.gz, .bz2, .xz, .zst).

Memory: one print, or of a table a few, at a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import chain, count
from typing import IO, Any, Callable

import numpy as np

from neardup.media.frames.video_prints import HEX_DIGITS, VideoPrint, checked, from_line, to_line
from neardup.reading.compressed import MAGIC_BYTES, kind_by_name, opened, packing, table_kind
from neardup.reading.table_files import TABLES, check_pyarrow, opened_typed
from neardup.runtime.program import StageError, WireError, write_to

BAD_LINE = "bad line"  # the reason of a failure
COLUMNS = ("id", "facts", "variants", "starts", "ends", "hashes")
HASH_BYTES = HEX_DIGITS // 2
MAX_LINE = 1 << 30  # bytes of a line: some hundred hours
ROWS = 4  # of a table that are read at once

Parse = Callable[[], VideoPrint]


def is_print_file(name: str) -> bool:
    """Return whether a regular file begins like a file of video fingerprints."""
    with opened(os.path.abspath(name), name) as stream:
        first: bytes = stream.read(64)
    return bool(table_kind(first)) or first.lstrip().startswith(b"{")


def prints_in(name: str, bad: Callable[[str], object]) -> Iterator[VideoPrint]:
    """Yield the video prints in a file; call `bad` with a message for each invalid line or row."""
    with open(name, "rb") as file:
        kind = table_kind(file.read(MAGIC_BYTES))
    for place, parse in _rows(kind, name) if kind else _lines(name):
        try:
            video = parse()
        except WireError as error:
            bad(f"{place}: {error}")
        else:
            yield video


def _lines(name: str) -> Iterator[tuple[str, Parse]]:
    with opened(os.path.abspath(name), name) as stream:
        for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), 1):
            if len(line) == MAX_LINE:
                raise StageError(
                    f"{name}: line {number}: longer than {MAX_LINE >> 20} MiB; name a file that "
                    "--output prints wrote"
                )
            if not line.isspace():
                yield f"line {number}", partial(from_line, line)


def _rows(kind: str, name: str) -> Iterator[tuple[str, Parse]]:
    check_pyarrow(kind)
    with opened_typed(kind, name, name) as file:
        missing = [column for column in COLUMNS if column not in file.schema.names]
        if missing:
            raise StageError(
                f"{name}: has no column {missing[0]}; expected a table of prints, as "
                "--output prints -o FILE.parquet writes it"
            )
        number = count(1)
        groups = file.groups(list(COLUMNS))
        for batch in chain.from_iterable(group.batches(ROWS, MAX_LINE) for group in groups):
            for row in zip(*map(batch.column, COLUMNS)):
                yield f"row {next(number)}", partial(_of_row, row)


def _of_row(row: Sequence[Any]) -> VideoPrint:
    """Convert a row of Arrow values to a `VideoPrint`; WireError if it is invalid."""
    try:
        id_, facts, variants, starts, ends, values = (value.as_py() for value in row)
        kinds = ((starts, int), (ends, int), (values, bytes), (variants, str), ([facts], str))
        if not all(_are(column, kind) for column, kind in kinds):
            raise ValueError
        spans = np.array([starts, ends], np.int64).T
        hashes = np.frombuffer(b"".join(values), ">u8").astype(np.uint64)
        return checked(id_, json.loads(facts), variants, spans, hashes)
    except (ValueError, OverflowError, RecursionError):
        raise WireError("expected the print of a video") from None


def _are(values: object, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def write_prints(sink: IO[bytes], name: str, prints: Iterable[VideoPrint]) -> None:
    """Write video prints to a file: a table if its name has that extension, otherwise lines."""
    kind = kind_by_name(name)
    if kind in TABLES:
        _write_table(sink, kind, prints)
    else:
        with packing(sink, name) as packed:
            write_to(packed, map(to_line, prints), name)


def _write_table(sink: IO[bytes], kind: str, prints: Iterable[VideoPrint]) -> None:
    check_pyarrow(kind)
    arrow = import_module("pyarrow")
    hashes = arrow.list_(arrow.binary(HASH_BYTES))
    kinds = (arrow.string(), arrow.string(), arrow.list_(arrow.string()))
    types = (*kinds, arrow.list_(arrow.int64()), arrow.list_(arrow.int64()), hashes)
    schema = arrow.schema(list(zip(COLUMNS, types)))
    rows = (arrow.RecordBatch.from_pylist([_row(video)], schema) for video in prints)
    TABLES[kind].write(sink, rows, schema, "zstd")


def _row(video: VideoPrint) -> dict[str, Any]:
    values = video.hashes.astype(">u8").tobytes()
    return {
        "id": video.id,
        "facts": json.dumps(video.facts),
        "variants": list(video.variants),
        "starts": video.spans[:, 0],
        "ends": video.spans[:, 1],
        "hashes": [values[k : k + HASH_BYTES] for k in range(0, len(values), HASH_BYTES)],
    }
