"""Files that hold no lines, known by their first bytes, and refused before a line is read.

gzip: RFC 1952; xz, zstd, zip, 7z: their formats' descriptions; Parquet and Arrow: Apache's.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from neardup.process.errors import StageError
from neardup.process.typed import piped, typed_with
from neardup.reading.input_kinds import kind_by_name
from neardup.reading.packed import suffix_of

MAGIC_BYTES = 16  # enough for each


class Packed(NamedTuple):
    """start: no line of text begins so; suffix: by which such a file is known, if by any; unpack:
    to stdout; from_pipe: whether it can, from stdin."""

    start: bytes
    what: str
    suffix: str
    unpack: str
    from_pipe: bool = True


PACKED = (
    Packed(rb"\x1f\x8b\x08", "packed by gzip", ".gz", "gzip -dc"),
    Packed(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)", "packed by bzip2", ".bz2", "bzip2 -dc"),
    Packed(rb"\xfd7zXZ\0", "packed by xz", ".xz", "xz -dc"),
    Packed(rb"\x28\xb5\x2f\xfd", "packed by zstd", ".zst", "zstd -dc"),
    Packed(rb"PK(?:\x03\x04|\x05\x06)", "a zip archive", "", "unzip -p", from_pipe=False),
    Packed(rb"7z\xbc\xaf\x27\x1c", "a 7z archive", "", "7z x -so", from_pipe=False),
    Packed(rb"\xff\xfe|\xfe\xff", "text in UTF-16", "", "iconv -f UTF-16 -t UTF-8"),
)
# Not by PAR1 alone, which may be an id: Thrift's first byte behind it is no white space.
PARQUET = re.compile(rb"PAR1[\x00-\x08\x0e-\x1f]")
ARROW = re.compile(rb"ARROW1\0\0|FEA1[\x00-\x08\x0e-\x1f]|\xff\xff\xff\xff")
OFFICE = {".xlsx": "CSV", ".ods": "CSV", ".docx": "plain text", ".odt": "plain text"}
STDIN = "standard input"


def refuse_no_lines(start: bytes, name: str, unpacked: Collection[str]) -> None:
    """StageError where a file begins (`start`) as one without lines does; `name` may be "-".

    `unpacked` are the suffixes by which files are unpacked.

    >>> refuse_no_lines(b"PAR1 7 8 9", "videos.txt", [])
    """
    called = STDIN if name == "-" else name
    if PARQUET.match(start):
        line = f"type: {typed_with('--input', 'parquet')}"
        if name == "-":
            line = "write it to a file, and name that with --input parquet"
        raise StageError(f"{called}: is a Parquet file; {line}")
    if ARROW.match(start):
        raise StageError(f"{called}: is an Arrow file; write it as Parquet, for --input parquet")
    kind = OFFICE.get(suffix_of(name))
    if kind and start.startswith(b"PK"):
        raise StageError(f"{called}: is a document; save it as {kind} by what has made it")
    for packed in PACKED:
        if re.match(packed.start, start):
            raise StageError(f"{called}: is {packed.what}; {_line(packed, name, unpacked)}")


def _line(packed: Packed, name: str, unpacked: Collection[str]) -> str:
    """The line to type."""
    if name == "-" and not packed.from_pipe:
        return f"write it to a file, and type: {piped(packed.unpack, 'FILE')}"
    kind = kind_by_name(name) or ""  # which standard input does not tell
    line = f"type: {piped(packed.unpack, name, '--input' if kind else '', kind)}"
    if name != "-" and packed.suffix in unpacked and not name.endswith(packed.suffix):
        return f"rename it to end with {packed.suffix}, or {line}"
    return line
