"""The texts of some records, by id; nothing is shingled.

In memory: a block, and the texts that are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Callable

from neardup.reading.bad_lines import flaw_in_id
from neardup.reading.blocks import read_files
from neardup.reading.line_form import LineForm
from neardup.reading.text_lines import text_lines

MAX_LINE = 64 << 20


@dataclass(frozen=True)
class ShownRecords:
    """count: of all records that were read; texts: of those with an id that was asked for, the
    first of each id; repeated: ids that came again."""

    count: int
    texts: dict[bytes, str]
    repeated: set[bytes]


def shown_records(files: list[str], form: LineForm, ids: Collection[bytes]) -> ShownRecords:
    """Of these ids, as far as they are in the files."""
    rows = ROWS[form.input]
    count, texts, repeated = 0, {}, set()
    for block in read_files(files, MAX_LINE) if files else ():
        for id_, text in () if block.cut else rows(block.data):
            count += 1
            if id_ in ids:
                if id_ in texts:
                    repeated.add(id_)
                else:
                    texts[id_] = text
    return ShownRecords(count, texts, repeated)


def _text_rows(block: bytes) -> Iterator[tuple[bytes, str]]:
    r"""
    >>> list(_text_rows(b"a\tto be\nb\n"))
    [(b'a', 'to be')]
    """
    return ((line.id, line.text) for line in text_lines(block) if not line.flaw)


def _shingle_rows(block: bytes) -> Iterator[tuple[bytes, str]]:
    r"""
    >>> list(_shingle_rows(b"a 1 2 3\n\nb\n"))
    [(b'a', '1 2 3')]
    """
    for line in block.splitlines():
        words = line.split(None, 1)
        if len(words) == 2 and not flaw_in_id(words[0]):
            yield words[0], words[1].decode("utf-8", "replace")


# What a block of each kind of input holds: (id, text) of each record.
ROWS: Mapping[str, Callable[[bytes], Iterator[tuple[bytes, str]]]] = {
    "text": _text_rows,
    "shingles": _shingle_rows,
}
