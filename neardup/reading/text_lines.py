"""Text lines, `ID TAB TEXT` or `ID BLANK TEXT`, → batches."""

from __future__ import annotations

import numpy as np

from neardup.reading.bad_lines import (
    NO_ID,
    NO_SHINGLES,
    NOT_UTF8,
    NUL_BYTE,
    BadLine,
    Parser,
    flaw_in_id,
)
from neardup.reading.shingling import Shingler
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged


def text_line_parser(shingler: Shingler) -> Parser:
    r"""A parser of whole lines of `ID TAB TEXT`, or `ID BLANK TEXT` where a line has no tab.

    >>> parse = text_line_parser(Shingler.parse("word:3"))
    >>> batch, bad = parse(b"a\tto be or not to be\nb to be  OR not\n")
    >>> batch.ids, batch.sets.sizes.tolist()
    ([b'a', b'b'], [4, 2])

    Of spots there may be none, in a text without stop words: such records are only counted.
    """

    def parse(block: bytes) -> tuple[Batch, list[BadLine]]:
        ids: list[bytes] = []
        sets: list[np.ndarray] = []
        bad: list[BadLine] = []
        without_spots: list[int] = []
        places: list[int] = []
        position = 0
        for number, line in enumerate(block.splitlines(keepends=True)):
            if line.strip():
                id_, text = _split_text_line(line)
                flaw, shingles = _shingles_of_text(id_, text, shingler)
                if flaw:
                    bad.append(BadLine(position, line.rstrip(b"\r\n"), flaw))
                elif not len(shingles):
                    without_spots.append(position)
                else:
                    ids.append(id_)
                    sets.append(shingles)
                    places.append(number)
            position += len(line)
        sizes = np.array([len(shingles) for shingles in sets], dtype=np.int64)
        values = np.concatenate(sets) if sets else np.empty(0, np.uint64)
        records = Ragged.from_unsorted(values, sizes)
        return Batch(ids, records, tuple(without_spots), np.array(places, np.uint64)), bad

    return parse


def _split_text_line(line: bytes) -> tuple[bytes, bytes]:
    id_, tab, text = line.partition(b"\t")
    if not tab:
        id_, _, text = line.strip().partition(b" ")
    return id_.strip(), text


def _shingles_of_text(id_: bytes, text: bytes, shingler: Shingler) -> tuple[str, np.ndarray]:
    """(why this is no record, or "", its shingles); a good text may have no spots."""
    shingles = np.empty(0, np.uint64)
    flaw = "" if id_ else NO_ID
    if not flaw and b"\0" in text:
        flaw = NUL_BYTE
    flaw = flaw or flaw_in_id(id_) or ""
    if not flaw:
        try:
            words = text.decode("utf-8").strip()
        except UnicodeDecodeError:
            flaw = NOT_UTF8
        else:
            shingles = shingler(words)
            flaw = "" if words else NO_SHINGLES
    return flaw, shingles
