"""What --removed, or --output removed, has written: who went, and because of whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from neardup.evaluation.pair_files import MAX_LINE
from neardup.lines.decided_lines import parse_removed
from neardup.process.errors import StageError, WireError
from neardup.reading.blocks import read_files

FIRST = 20
REASONS = 10


class Gone(NamedTuple):
    """similarity: as printed, `-` where the two are only chained."""

    id: bytes
    kept: bytes
    similarity: str


@dataclass(frozen=True)
class RemovedRecords:
    """count: all that went; chained: of them by a chain alone; first: some; kept: how many records
    are a reason; reasons: the most frequent ones."""

    count: int
    chained: int
    first: list[Gone]
    kept: int
    reasons: list[tuple[bytes, int]]


def read_removed(file: str) -> RemovedRecords:
    """In memory: the ids of those that stay, and are a reason."""
    first: list[Gone] = []
    chained, reasons = 0, Counter[bytes]()
    for block in read_files([file], MAX_LINE):
        for number, line in enumerate(block.data.splitlines(), block.line):
            if line:
                try:
                    gone = Gone(*parse_removed(line))
                except WireError as error:
                    raise StageError(f"{block.place}{number}: {error}") from None
                reasons[gone.kept] += 1
                chained += gone.similarity == "-"
                if len(first) < FIRST:
                    first.append(gone)
    most = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))[:REASONS]
    return RemovedRecords(sum(reasons.values()), chained, first, len(reasons), most)
