"""What `audit` has printed, read again: the report computes no interval of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from neardup.process.errors import StageError
from neardup.reading.blocks import read_files

ROW = re.compile(r"(\S.*?) {2,}(\S+)(?:  (\S.*))?")  # as `precision_recall.row` writes it
NEEDED = ("ids looked at", "recall", "precision")
MAX_LINE = 1 << 20


class Audited(NamedTuple):
    value: str
    note: str


def read_audit(file: str) -> dict[str, Audited]:
    """The rows of its table by name; StageError where a file is no such thing."""
    lines: list[str] = []
    for block in read_files([file], MAX_LINE):
        lines += block.data.decode("utf-8", "replace").splitlines()
    rows = audited(lines)
    if not all(name in rows for name in NEEDED):
        raise StageError(
            f"{file}: is not what `python3 -m neardup audit` prints; write that to a file, and "
            "name it by --audit"
        )
    return rows


def audited(lines: Iterable[str]) -> dict[str, Audited]:
    """
    >>> audited(["recall                              0.997468  0.990885 to 0.999694", "", "x:"])
    {'recall': Audited(value='0.997468', note='0.990885 to 0.999694')}
    """
    found = (ROW.fullmatch(line) for line in lines)
    return {row[1]: Audited(row[2], row[3] or "") for row in found if row}
