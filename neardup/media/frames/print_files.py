"""Files of video fingerprints ("prints"): JSON lines, plain or compressed, or Parquet.

For the lines see `video_prints`.  In a table, each row is a print:

    id        string
    facts     string             a JSON object
    variants  list of strings    V names
    starts    list of int64      n, milliseconds
    ends      list of int64      n
    hashes    list of 32 bytes   n·V, all of the first span first; bits in the order of the hex

A file that a user names is a file of prints if it begins like one.  Its name does not matter, but a
compressed file must have the extension of its compression (.gz, .bz2, .xz, .zst).

Memory: one print, or for Parquet a few, at a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import count
from typing import IO, Any, Callable

import numpy as np

from neardup.media.frames.video_prints import HEX_DIGITS, VideoPrint, checked, from_line, to_line
from neardup.reading.compressed import kind_by_name, opened, packing
from neardup.reading.parquet_rows import check_pyarrow, damage_named, opened_parquet
from neardup.runtime.program import StageError, WireError, write_to

BAD_LINE = "bad line"  # the reason of a failure
PARQUET = b"PAR1"
COLUMNS = ("id", "facts", "variants", "starts", "ends", "hashes")
HASH_BYTES = HEX_DIGITS // 2
LONGEST = 1 << 30  # bytes of a line: some hundred hours
ROWS = 4  # of a table that are read at once
GROUP_BYTES = 64 << 20  # of hashes in a row group

Parse = Callable[[], VideoPrint]


def is_print_file(name: str) -> bool:
    """Return whether a regular file begins like a file of video fingerprints."""
    with opened(os.path.abspath(name), name) as stream:
        first: bytes = stream.read(64)
    return first.startswith(PARQUET) or first.lstrip().startswith(b"{")


def prints_in(name: str, bad: Callable[[str], object]) -> Iterator[VideoPrint]:
    """Yield the video prints in a file; call `bad` with a message for each invalid line or row."""
    with open(name, "rb") as file:
        parquet = file.read(len(PARQUET)) == PARQUET
    for place, parse in _rows(name) if parquet else _lines(name):
        try:
            video = parse()
        except WireError as error:
            bad(f"{place}: {error}")
        else:
            yield video


def _lines(name: str) -> Iterator[tuple[str, Parse]]:
    with opened(os.path.abspath(name), name) as stream:
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST), b""), 1):
            if len(line) == LONGEST:
                raise StageError(
                    f"{name}: line {number}: longer than {LONGEST >> 20} MiB; name a file that "
                    "--output prints wrote"
                )
            if not line.isspace():
                yield f"line {number}", partial(from_line, line)


def _rows(name: str) -> Iterator[tuple[str, Parse]]:
    check_pyarrow()
    with damage_named(name), opened_parquet(name, name) as file:
        missing = [column for column in COLUMNS if column not in file.schema_arrow.names]
        if missing:
            raise StageError(
                f"{name}: has no column {missing[0]}; expected a table of prints, as "
                "--output prints -o FILE.parquet writes it"
            )
        number = count(1)
        for batch in file.iter_batches(ROWS, columns=list(COLUMNS), use_threads=False):
            for row in zip(*map(batch.column, COLUMNS)):
                yield f"row {next(number)}", partial(_of_row, row)


def _of_row(row: Sequence[Any]) -> VideoPrint:
    """Convert a row of Arrow values to a `VideoPrint`; WireError if it is invalid."""
    try:
        id_, facts, variants, starts, ends, values = (value.as_py() for value in row)
        kinds = ((starts, int), (ends, int), (values, bytes), (variants, str), ([facts], str))
        if not all(_are(some, kind) for some, kind in kinds):
            raise ValueError
        spans = np.array([starts, ends], np.int64).T
        hashes = np.frombuffer(b"".join(values), ">u8").astype(np.uint64)
        return checked(id_, json.loads(facts), variants, spans, hashes)
    except (ValueError, OverflowError, RecursionError):
        raise WireError("expected the print of a video") from None


def _are(values: object, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def write_prints(sink: IO[bytes], name: str, prints: Iterable[VideoPrint]) -> None:
    """Write video prints to a file: Parquet if its name has that extension, otherwise lines."""
    if kind_by_name(name) == "parquet":
        _write_table(sink, prints)
    else:
        with packing(sink, name) as packed:
            write_to(packed, map(to_line, prints), name)


def _write_table(sink: IO[bytes], prints: Iterable[VideoPrint]) -> None:
    check_pyarrow()
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    hashes = arrow.list_(arrow.binary(HASH_BYTES))
    kinds = (arrow.string(), arrow.string(), arrow.list_(arrow.string()))
    types = (*kinds, arrow.list_(arrow.int64()), arrow.list_(arrow.int64()), hashes)
    schema = arrow.schema(list(zip(COLUMNS, types)))
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        held: list[dict[str, Any]] = []
        size = 0
        for video in prints:
            held.append(_row(video))
            size += video.hashes.nbytes
            if size > GROUP_BYTES:
                writer.write_table(arrow.Table.from_pylist(held, schema))
                held, size = [], 0
        if held:
            writer.write_table(arrow.Table.from_pylist(held, schema))


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
