"""The texts of records, read twice: for their words, and again for what is written about them.

Files that change in between are named, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO, NamedTuple

import numpy as np

from neardup.options.settings import Settings
from neardup.reading import input_check as flaws
from neardup.reading import text_rows
from neardup.reading.blocks import Block
from neardup.reading.input_files import Unchanged
from neardup.reading.text_rows import FlawError, Row
from neardup.repeats.word_lines import WordLines, Words
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError
from neardup.runtime.summary import QUIET
from neardup.stages.pairs import check_start, reject


class RecordText(NamedTuple):
    record: int  # its number, from 0
    place: int  # see `reading.blocks`
    id: str
    text: str  # as in its field, with the blanks around it
    spans: np.ndarray  # int64 (words, 2): where each word begins and ends, in characters


class RecordTexts:
    """The texts of files.

    single: a record has its text in a single field, since it will be cut there.
    """

    def __init__(
        self, settings: Settings, files: Sequence[str], counters: Counters, single: bool = False
    ):
        self._settings, self._files, self._counters = settings, files, counters
        fields = settings.form.fields
        content = partial(_text, single=single)
        self._records = (
            partial(text_rows.row_records, fields=fields, content_of=content)
            if fields
            else text_rows.text_lines
        )
        self._unchanged = Unchanged(files)
        self._words = Words(settings.form.clean)

    def lines(self, file: IO[bytes]) -> WordLines:
        """Read all texts, count bad lines, and write their words to an empty file."""
        texts = self._texts(self._settings, self._counters)
        lines = WordLines.written((self._words.line(text) for *_, text in texts), file)
        self._unchanged.check()
        return lines

    def again(self, lines: WordLines, wanted: np.ndarray) -> Iterator[RecordText]:
        """Read the files again; yield the records that are wanted (numbers, ascending).

        StageError if a file was changed.
        """
        counters = Counters("passages", reports="", verbosity=QUIET)
        left, record = iter(wanted.tolist()), -1
        following = next(left, None)
        for record, (place, id_, text) in enumerate(self._texts(self._settings, counters)):
            if record >= len(lines):
                break
            if record == following:
                if self._words.line(text) != lines.line(record):
                    break
                yield RecordText(record, place, id_.decode(), text, self._words.spans(text))
                following = next(left, None)
        self._unchanged.check()
        if record != len(lines) - 1 or following is not None:
            raise StageError(
                f"{', '.join(self._files)}: changed while it was read; run again when nobody "
                "writes to it, or read a copy of it"
            )

    def _texts(self, settings: Settings, counters: Counters) -> Iterator[tuple[int, bytes, str]]:
        """Yield (place, id, text) of each record; count bad lines, or StageError if strict."""
        counters.add("records", 0)
        counters.max_bad = settings.max_bad
        for block in settings.blocks(self._files):
            if block.flaw:
                reject(block, flaws.BadLine(0, block.data, block.flaw), settings, counters)
                continue
            found = list(self._records(block.data))
            good = [record for record in found if not record.flaw]
            bad = [flaws.BadLine(r.number, r.shown, r.flaw) for r in found if r.flaw]
            check_start(block, len(good), bad, settings, counters)
            for each in bad:
                reject(block, each, settings, counters)
            counters.add("records", len(good))
            for record, id_ in zip(good, self._ids(block, good)):
                yield block.first + record.number, id_, record.content

    def _ids(self, block: Block, records: Sequence[text_rows.Record]) -> list[bytes]:
        ids, fields = [record.id for record in records], self._settings.form.fields
        numbers = [record.number for record in records]
        return text_rows.with_row_ids(ids, numbers, block, fields) if fields else ids


def _text(row: Row, fields: text_rows.Fields, single: bool) -> str:
    """Return the text of a row, with the blanks around it; FlawError if it has none."""
    values = [fields.value(row, name) for name in fields.texts]
    if not isinstance(text_rows.content(row, fields), str):
        raise FlawError(flaws.NOT_A_TEXT)
    if single and not isinstance(values[0], str):
        raise FlawError(flaws.NOT_A_TEXT)
    return "\n".join(text_rows.texts_in([value for value in values if value is not None]))
