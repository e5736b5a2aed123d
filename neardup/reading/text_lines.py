"""Text lines, `ID TAB TEXT` or `ID BLANK TEXT`, → batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from neardup.reading.bad_lines import (
    NO_ID,
    NO_SHINGLES,
    NUL_BYTE,
    BadLine,
    Gather,
    Parser,
    flaw_in,
)
from neardup.reading.cleaning import Cleaning
from neardup.reading.shingling import Shingler
from neardup.reading.texts import Text, batch_of_texts
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged

AS_IT_IS = Cleaning()


class TextLine(NamedTuple):
    """A line of a block: its number in it, from 0; why it is no record, or ""."""

    number: int
    line: bytes
    flaw: str
    id: bytes
    text: str


def text_line_parser(
    shingler: Shingler, clean: Cleaning = AS_IT_IS, gather: Gather = Ragged.from_unsorted
) -> Parser:
    r"""A parser of whole lines of `ID TAB TEXT`, or `ID BLANK TEXT` where a line has no tab.

    >>> parse = text_line_parser(Shingler.parse("word:3"))
    >>> batch, bad = parse(b"a\tto be or not to be\nb to be  OR not\n")
    >>> batch.ids, batch.sets.sizes.tolist()
    ([b'a', b'b'], [4, 2])

    """

    def parse(block: bytes) -> tuple[Batch, list[BadLine]]:
        texts: list[Text] = []
        bad: list[BadLine] = []
        for number, line, flaw, id_, text in text_lines(block):
            if flaw:
                bad.append(BadLine(number, line, flaw))
            else:
                texts.append(Text(number, id_, text))
        return batch_of_texts(texts, shingler, clean, gather), bad

    return parse


def text_lines(block: bytes) -> Iterator[TextLine]:
    r"""The lines that are not blank.

    >>> [(line.id, line.text, line.flaw) for line in text_lines(b"a\tto be\n\nb or not\nc\n")]
    [(b'a', 'to be', ''), (b'b', 'or not', ''), (b'c', '', 'no shingles')]
    """
    sound = flaw_in(block) is None  # and so is each line
    for number, line in enumerate(block.splitlines()):
        id_, tab, text = line.partition(b"\t")
        if not tab:
            id_, _, text = line.strip().partition(b" ")
        id_ = id_.strip()
        if not id_ and not line.strip():
            continue
        flaw = "" if id_ else NO_ID
        if not flaw and not sound:
            flaw = NUL_BYTE if b"\0" in text else flaw_in(id_) or flaw_in(text) or ""
        words = "" if flaw else str(text, "utf-8").strip()
        yield TextLine(number, line, flaw or ("" if words else NO_SHINGLES), id_, words)
