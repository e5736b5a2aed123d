"""Fingerprints of the frames of many videos ("prints"), in files that are mapped into memory.

    spans               int64 (n, 2), milliseconds
    hashes.0 …          uint64 (n, 4), the fingerprints of one variant
    fresh               uint32 (n,): bit v is set if variant v differs from all variants before it

The arrays are mapped into memory, so the system may drop what is not in use.  Held in memory: ids,
facts, and 12 bytes for each frame.

Letters: n frames of all videos, one after the other; V variants, at most 32.

Files that users keep are JSON lines, plain or compressed, Parquet or Arrow.  For the lines see
`video_prints`.  In a table, each row is a print:

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
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from itertools import chain, count
from pathlib import Path
from typing import IO, Any, Callable

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.frame_spans import shown_ms
from neardup.media.frames.video_prints import (
    HEX_DIGITS,
    MIRROR,
    WORDS,
    VideoPrint,
    checked,
    from_line,
    to_line,
)
from neardup.reading.compressed import MAGIC_BYTES, kind_by_name, opened, packing, table_kind
from neardup.reading.table_files import TABLES, check_pyarrow, opened_typed
from neardup.runtime.program import StageError, WireError, write_to


@dataclass(frozen=True, eq=False)
class FrameStore:
    """The prints of all videos of a run, in files of a working folder."""

    folder: Path
    ids: list[str]
    facts: list[dict[str, Any]]
    variants: tuple[str, ...]
    starts: NDArray[np.int64]  # (videos + 1,): the frames of video k are starts[k] … starts[k+1]-1

    @classmethod
    def write(cls, folder: Path, prints: Iterable[VideoPrint]) -> FrameStore:
        """Write prints to files in `folder`, one at a time; StageError if their variants differ."""
        ids: list[str] = []
        facts: list[dict[str, Any]] = []
        counts: list[int] = []
        variants: tuple[str, ...] = ()
        with ExitStack() as stack:
            files: list[IO[bytes]] = []
            for video in prints:
                if not files:
                    variants = video.variants
                    names = ["spans", "fresh", *(f"hashes.{v}" for v in range(len(variants)))]
                    files = [stack.enter_context((folder / name).open("wb")) for name in names]
                if video.variants != variants:
                    raise StageError(
                        f"the prints of {video.id} and {ids[0]} have different variants: make all "
                        "prints with one version of neardup"
                    )
                _append(files, video)
                ids.append(video.id)
                facts.append(video.facts)
                counts.append(len(video.spans))
        return cls(folder, ids, facts, variants, np.append(0, np.cumsum(counts, dtype=np.int64)))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def frames(self) -> int:
        """The number of frames of all videos."""
        return int(self.starts[-1])

    @cached_property
    def spans(self) -> NDArray[np.int64]:
        return self._mapped("spans", np.int64, 2).reshape(-1, 2)

    @cached_property
    def fresh(self) -> NDArray[np.uint32]:
        return self._mapped("fresh", np.uint32, 1)

    def hashes_of(self, variant: int) -> NDArray[np.uint64]:
        """Return the fingerprints of a variant, uint64 (n, 4).

        They are mapped anew, so that no more pages are in use than those of one variant.
        """
        return self._mapped(f"hashes.{variant}", np.uint64, WORDS).reshape(-1, WORDS)

    def is_fresh(self, frames: NDArray[np.int64] | slice, variant: int) -> NDArray[np.bool_]:
        """Mark the frames in which a variant differs from all variants before it."""
        return (self.fresh[frames] >> np.uint32(variant) & np.uint32(1)).astype(bool)

    @cached_property
    def owner(self) -> NDArray[np.int32]:
        """The index of each frame's video, int32 (n,)."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.starts))

    @cached_property
    def seconds(self) -> NDArray[np.float64]:
        """The seconds for which the frames of each video are shown, (videos,)."""
        lengths = shown_ms(self.spans)
        last = self.starts[1:][np.diff(self.starts) > 0] - 1
        lengths[last] = self.spans[last, 1] - self.spans[last, 0]
        return np.asarray(np.bincount(self.owner, lengths, minlength=len(self)) / 1000)

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """The place of each video in byte order of ids, (videos,); equal ids keep their order."""
        order = sorted(range(len(self)), key=lambda number: (self.ids[number].encode(), number))
        rank = np.empty(len(self), np.int64)
        rank[order] = np.arange(len(self))
        return rank

    @cached_property
    def mirrored(self) -> NDArray[np.bool_]:
        """A mark for each variant, bool (V,): true for variants of the mirror image."""
        return np.array([name.endswith(MIRROR) for name in self.variants], bool)

    def frames_of(self, video: int) -> slice:
        return slice(int(self.starts[video]), int(self.starts[video + 1]))

    def print_of(self, video: int) -> VideoPrint:
        """Return the print of a video, read from the files."""
        part = self.frames_of(video)
        hashes = [self.hashes_of(variant)[part] for variant in range(len(self.variants))]
        shaped = np.stack(hashes, axis=1) if hashes else np.empty((0, 0, WORDS), np.uint64)
        return VideoPrint(
            self.ids[video], self.facts[video], self.variants, np.array(self.spans[part]), shaped
        )

    def _mapped(self, name: str, dtype: Any, columns: int) -> NDArray[Any]:
        if not self.frames:  # an empty file cannot be mapped
            return np.empty(0, dtype)
        shape = (self.frames * columns,)
        return np.memmap(self.folder / name, dtype, "r", shape=shape).view(np.ndarray)


def _append(files: list[IO[bytes]], video: VideoPrint) -> None:
    spans, fresh, *hashes = files
    spans.write(np.ascontiguousarray(video.spans, np.int64).tobytes())
    fresh.write(fresh_variants(video.hashes).tobytes())
    for v, file in enumerate(hashes):
        file.write(np.ascontiguousarray(video.hashes[:, v], np.uint64).tobytes())


def fresh_variants(hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return, as bits, the variants that differ from all earlier ones of the frame: uint32 (n,).

    hashes: (n, V, 4).

    >>> hashes = np.array([[5, 5, 7, 5], [1, 2, 1, 3]], np.uint64)[:, :, np.newaxis].repeat(4, 2)
    >>> [bin(bits) for bits in fresh_variants(hashes)]
    ['0b101', '0b1011']
    """
    bits = np.zeros(len(hashes), np.uint32)
    for v in range(hashes.shape[1]):
        same = (hashes[:, :v] == hashes[:, v : v + 1]).all(axis=2).any(axis=1)
        bits |= (~same).astype(np.uint32) << np.uint32(v)
    return bits


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
