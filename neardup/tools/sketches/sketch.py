"""`sketch`: write a small sample of each record, from which similarity can be estimated.

A file of sketches is written once, and read in order or by the number of a record:

    64 bytes    a name and the version
    sketches    the items of one record after the other, see `sketch_kinds`
    items       uint32, the number of items of each record
    ids         each with a line end
    checksums   of all that, in blocks of 64 KiB
    contents    JSON: the options, the number of records, the length of each part
    24 bytes    the lengths of checksums and contents, their checksum, and a mark: the end

Held in memory: eight bytes a record, and the ids.
"""

import json
import os
import shlex
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from neardup.engines.local.workers import working_folder
from neardup.options import table
from neardup.options.command_parser import VERBOSITY
from neardup.options.settings import Settings, of_fingerprints
from neardup.reading.input_files import check_files
from neardup.runtime import program
from neardup.runtime.atomic_write import half
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError
from neardup.runtime.summary import QUIET
from neardup.sets.hashing import random_words
from neardup.sets.ragged import Batch, Ragged, chunks, spans
from neardup.stages.pairs import parsed
from neardup.stages.segment import SUM, CheckedFile, damaged, refuse_unlike, write_checked
from neardup.tools.sketches import sketch_kinds
from neardup.tools.sketches.sketch_kinds import Kind, kind_of

FORMAT = 1
NAME = b"neardup sketches, format "
HEAD = 64
END = struct.Struct("<QIIQ")
MAGIC = int.from_bytes(b"the end.", "little")
AGAIN = "make the sketches again"
COPIED = 1 << 20
NUMBERS_AT_ONCE = 1 << 18  # of sketches in memory
PROBES = (1, 5, 34, 233, 987)  # sizes of sets


def check_new(to: Path) -> None:
    """Raise UsageError if the file of sketches exists already."""
    if os.path.lexists(to):
        raise UsageError(f"--to {to}: already exists; name another file, or remove it")


def write_sketches(
    path: Path, batches: Iterable[Batch], kind: Kind, seed: int, options: Mapping[str, str]
) -> int:
    """Write the sketches of records to a new file; return the number of records."""
    counts = {"records": 0, "sketches": 0, "items": 0, "ids": 0}
    with tempfile.TemporaryFile() as items, tempfile.TemporaryFile() as ids:

        def pieces() -> Iterator[bytes]:
            yield (NAME + b"%d\n" % FORMAT).ljust(HEAD, b"\0")
            for batch in batches:
                counts["records"] += len(batch.ids)
                counts["ids"] += ids.write(b"".join([id_ + b"\n" for id_ in batch.ids]))
                for low, high in chunks(kind.numbers(batch.sets.sizes), NUMBERS_AT_ONCE):
                    some = batch.sets.take(np.arange(low, high))
                    data, sizes = kind.packed(kind.sketches(some, seed))
                    counts["items"] += items.write(sizes.astype("<u4").tobytes())
                    counts["sketches"] += len(data)
                    yield data.tobytes()
            for file in items, ids:
                file.seek(0)
                yield from iter(partial(file.read, COPIED), b"")

        sums = write_checked(path, pieces())
    contents = {"options": dict(options), "kind": kind.text, "probe": probe(kind), **counts}
    text = json.dumps(contents).encode()
    last = sums.tobytes() + text
    with program.naming(path), open(path, "ab") as file:
        file.write(last + END.pack(len(sums), len(text), zlib.crc32(last), MAGIC))
        file.flush()
        os.fsync(file.fileno())
    return counts["records"]


def probe(kind: Kind) -> str:
    """Return a hash of the sketches of fixed sets, to detect files that other versions made."""
    sets = Ragged.from_unsorted(random_words(1, sum(PROBES)), np.array(PROBES))
    sketches = kind.sketches(sets, seed=0).values.astype("<u8")
    return blake2b(sketches.tobytes(), digest_size=8).hexdigest()


class SketchFile:
    """A reader of a file of sketches; StageError if the file is invalid."""

    def __init__(self, name: str):
        self.name = name
        path = Path(name)
        contents, sums, behind = _contents(path)
        try:
            self.kind = kind_of(contents["kind"])
        except ValueError as error:
            raise StageError(f"{name}: --kind {error}, and {AGAIN}") from None
        self.options: dict[str, str] = contents["options"]
        if probe(self.kind) != contents["probe"]:
            raise StageError(f"{name}: made by another version of neardup; {AGAIN}")
        self.records: int = contents["records"]
        items_at = HEAD + contents["sketches"]
        self._ids_at = items_at + contents["items"]
        size = self._ids_at + contents["ids"]
        self._file = CheckedFile(path, size, sums, behind, AGAIN)
        items = self._file.read(items_at, self._ids_at).view("<u4")
        self.offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(items, dtype=np.int64)))
        if len(items) != self.records or self.offsets[-1] * self.kind.item != contents["sketches"]:
            raise damaged(path, "its parts disagree", AGAIN)

    @property
    def items(self) -> np.ndarray:
        """The number of items of each sketch (int64)."""
        return np.diff(self.offsets)

    def blocks(self) -> Iterator[tuple[int, Ragged]]:
        """Yield each block, checked, as (number of its first sketch, sketches)."""
        for low, high in chunks(self.kind.numbers(self.items) + 1, NUMBERS_AT_ONCE):
            start, stop = (HEAD + int(self.offsets[i]) * self.kind.item for i in (low, high))
            data = self._file.read(start, stop)
            yield low, self.kind.unpacked(data, self.items[low:high])

    def take(self, rows: np.ndarray) -> Ragged:
        """Return sketches by number (int64); `blocks` must have checked them."""
        sizes = self.items[rows]
        data = self._map[spans(self.offsets[rows], sizes)]
        return self.kind.unpacked(data.ravel(), sizes)

    @cached_property
    def _map(self) -> np.ndarray:
        shape = int(self.offsets[-1]), self.kind.item
        if not shape[0]:
            return np.empty(shape, np.uint8)
        return np.memmap(self.name, np.uint8, "r", offset=HEAD, shape=shape).view(np.ndarray)

    @cached_property
    def _names(self) -> tuple[bytes, np.ndarray]:
        """All ids, one per line, and the positions of the line ends, with -1 before the first."""
        names = self._file.read(self._ids_at, self._file.size)
        ends = np.flatnonzero(names == ord("\n"))
        if len(ends) != self.records:
            raise damaged(Path(self.name), "ids and records do not match", AGAIN)
        return names.tobytes(), np.concatenate((np.full(1, -1), ends))

    def ids(self, rows: np.ndarray) -> list[bytes]:
        names, ends = self._names
        bounds = zip((ends[rows] + 1).tolist(), ends[rows + 1].tolist())
        return [names[start:stop] for start, stop in bounds]

    def rows_of(self, ids: Iterable[bytes]) -> np.ndarray:
        """Return the numbers (int64) of records with these ids; StageError for an unknown id."""
        names, _ = self._names
        wanted = set(ids)
        found = [i for i, id_ in enumerate(names.split(b"\n")[:-1]) if id_ in wanted]
        for id_ in sorted(wanted - set(self.ids(np.array(found, dtype=np.int64)))):
            raise StageError(
                f"{self.name}: none of {self.records:,} records has id {program.shown(id_)}"
            )
        return np.array(found, dtype=np.int64)


def check_agreement(one: SketchFile, other: SketchFile) -> None:
    """Raise UsageError if the sketches of two files cannot be compared."""
    mine, yours = ({"--kind": file.kind.text, **file.options} for file in (one, other))
    refuse_unlike(one.name, mine, other.name, yours, "make one of them again")


def _contents(path: Path) -> tuple[dict[str, Any], np.ndarray, int]:
    """Read the end of a file; return the contents, the block checksums, and the end's length."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(HEAD)
        if not head.startswith(NAME):
            raise StageError(
                f"{path}: is not a file of sketches; make one with python3 -m neardup sketch"
            )
        if len(head) < HEAD:
            raise damaged(path, "it is cut short", AGAIN)
        if head != (NAME + b"%d\n" % FORMAT).ljust(HEAD, b"\0"):
            raise StageError(f"{path}: made by another version of neardup; {AGAIN}")
        file.seek(size - END.size)
        sums, length, checksum, mark = END.unpack(file.read(END.size))
        behind = sums * SUM.itemsize + length + END.size
        if mark != MAGIC or behind > size - HEAD:
            raise damaged(path, "it is cut short", AGAIN)
        file.seek(size - behind)
        last = file.read(behind - END.size)
    if zlib.crc32(last) != checksum:
        raise damaged(path, "checksum mismatch", AGAIN)
    cut = sums * SUM.itemsize
    return json.loads(last[cut:]), np.frombuffer(last[:cut], SUM), behind


OF_PAIRS = {"--scheme", "--exact", "--measure", "--threshold", "--counts", "--own-counts"}
FLAGS = table.OPTIONS.keys() - table.OUTPUT_OPTIONS - table.SCHEME_OPTIONS.keys() - OF_PAIRS
OWN = flags(
    """
    files FILE…     plain or compressed; - is standard input
    --to SKETCHES   the new file of sketches  -h
    --kind KIND     min:S, the S smallest hashes of a set; mod:M, the hashes that M divides, also
                    for containment; signature:L, the smallest hash in each of L random orders
                    [min:64]  -h: min:S, mod:M or signature:L (default: min:64)
    """,
    to={"required": True},
    kind=sketch_kinds.kind_of,
)
DESCRIPTION = """Write a sketch of each record: a small sample from which similarity is estimated.

A million records take at most some 400 MB with min:64, whatever their size.  Sketches of new
records can be compared with those of old records that no longer exist; make them with the same
options.

    python3 -m neardup sketch videos.txt --to videos.sketches
    python3 -m neardup similar videos.sketches > pairs.tsv
"""


def main() -> None:
    parser = table.parser(
        "python3 -m neardup sketch", DESCRIPTION, FLAGS, [*OWN, *VERBOSITY], table.OF_READERS
    )
    args = parser.parse_intermixed_args()
    options = table.Options.of(args)
    if of_fingerprints(options):
        raise UsageError(
            "a fingerprint is a sketch already, of a few bytes; find pairs of them with "
            + shlex.join(program.job_command())
        )
    settings = Settings.of(options)
    program.check_file_name("--to", args.to, program.NOT_FILES)
    check_new(Path(args.to))
    check_files(args.files)
    counters = Counters("sketch", progress="records", verbosity=args.verbosity)
    options_of = {flag: value for flag, value in settings.keys_of.items() if flag in FLAGS}
    options_of |= {"texts of version": version} if (version := settings.form.probe()) else {}
    with working_folder():
        batches = parsed(settings.blocks(args.files), settings, counters)
        seed = int(settings.keys_of["--seed"])
        with half("--to", args.to) as path:
            records = write_sketches(path, batches, args.kind, seed, options_of)
            counters.report()
            size = path.stat().st_size
            check_new(Path(args.to))
    if args.verbosity > QUIET:
        of = f"{args.kind.text} of {records:,} records"
        print(f"wrote {args.to}: {of} in {size:,} bytes", file=sys.stderr)
