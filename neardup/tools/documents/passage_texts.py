"""The texts of records, read twice: for their words, and again for what is written about them.

Files that change in between are named, and nothing is written.  The documents of folders are
written as rows first: the path as id, and the text.
"""

from __future__ import annotations

import argparse
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Callable, NamedTuple

import numpy as np

from neardup.engines.local.workers import Progress
from neardup.options import table
from neardup.options.settings import Settings
from neardup.reading import input_check as flaws
from neardup.reading import mails, text_rows
from neardup.reading.cleaning import Cleaning
from neardup.reading.folder_walk import Patterns, Walk, path_of
from neardup.reading.input_files import Unchanged
from neardup.reading.row_files import json_row
from neardup.reading.tally import Rules, Tally
from neardup.reading.text_rows import DEFAULT_TEXT, FlawError, Row
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, UsageError, write_to
from neardup.runtime.summary import QUIET
from neardup.stages.pairs import check_start, reject
from neardup.stages.word_lines import WordLines, Words
from neardup.tools.documents.document_files import is_archive
from neardup.tools.documents.documents import SHORT, found_files, json_lines, with_guess


class RecordText(NamedTuple):
    record: int  # its number, from 0
    place: int  # see `reading.blocks`
    id: str
    text: str  # as in its field, with the blanks around it
    spans: np.ndarray  # int64 (words, 2): where each word begins and ends, in characters


class RecordTexts:
    """The texts of files; `single`: only those of a single field, since they will be cut there."""

    def __init__(
        self, settings: Settings, files: Sequence[str], counters: Counters, single: bool = False
    ):
        self._settings, self._files, self._counters = settings, files, counters
        self._records: Callable[[Any], Iterator[text_rows.Record]] = text_rows.text_lines
        if fields := settings.form.fields:
            how = partial(_text, single=single)
            self._records = partial(text_rows.row_records, fields=fields, content_of=how)
        self._words, self.check = Words(settings.form.clean), Unchanged(files).check
        self.places = array("Q")  # of all records, once they are read

    def lines(self, file: IO[bytes]) -> WordLines:
        """Read all texts, count bad lines, and write their words to an empty file."""
        lines = WordLines.written(self._lines(), file)
        self.check()
        return lines

    def _lines(self) -> Iterator[bytes]:
        for place, _, text in self._texts(self._counters):
            self.places.append(place)
            yield self._words.line(text)

    def again(self, lines: WordLines, wanted: np.ndarray) -> Iterator[RecordText]:
        """Read the files again; yield the records that are wanted (numbers, ascending).

        StageError if a file was changed.
        """
        left, read = [-1, *reversed(wanted.tolist())], 0
        texts = self._texts(Counters("passages", reports="", verbosity=QUIET))
        for record, (place, id_, text) in enumerate(texts):
            read += 1
            if record == left[-1]:
                if self._words.line(text) != lines.line(record):
                    break
                yield RecordText(left.pop(), place, id_.decode(), text, self._words.spans(text))
        self.check()
        if read != len(lines):
            raise StageError(
                f"{', '.join(self._files)}: changed while it was read; run again when nobody "
                "writes to it, or read a copy of it"
            )

    def _texts(self, counters: Counters) -> Iterator[tuple[int, bytes, str]]:
        """Yield (place, id, text) of each record; count bad lines, or StageError if strict."""
        settings, fields = self._settings, self._settings.form.fields
        counters.add("records", 0)
        counters.max_bad = settings.max_bad
        for block in settings.blocks(self._files):
            flawed = [flaws.BadLine(0, block.data, block.flaw)] if block.flaw else []
            found = [] if block.flaw else list(self._records(block.data))
            bad = flawed + [flaws.BadLine(r.number, r.shown, r.flaw) for r in found if r.flaw]
            good = [record for record in found if not record.flaw]
            if not flawed:
                check_start(block, len(good), bad, settings, counters)
            for each in bad:
                reject(block, each, settings, counters)
            counters.add("records", len(good))
            ids, numbers = [record.id for record in good], [record.number for record in good]
            ids = text_rows.with_row_ids(ids, numbers, block, fields) if fields else ids
            for record, id_ in zip(good, ids):
                yield block.first + record.number, id_, record.content


def _text(row: Row, fields: text_rows.Fields, single: bool) -> str:
    """Return the text of a row, with the blanks around it; FlawError if it has none."""
    if single and fields.texts[0] not in row and "." in fields.texts[0]:
        raise StageError(
            f"--output kept cuts a field of the row, and {fields.texts[0]!r} is inside of another "
            "one; to list passages, leave --output out"
        )
    text = text_rows.unstripped(row, fields)
    whole = not single or isinstance(fields.value(row, fields.texts[0]), str)
    if not isinstance(text, str) or not whole:
        raise FlawError(flaws.NOT_A_TEXT)
    return text


OF_ROWS = set(table.READING) - {"--encoding"}


def write_documents(
    name: str, args: argparse.Namespace, options: table.Options, path: Path
) -> tuple[Settings, Tally]:
    """Write the documents of `args.files` to a file; return settings to read it, and the counts.

    With --clean html, the texts are those of the pages, without tags.  name: of the command
    """
    for flag in sorted(OF_ROWS):
        if options.value(flag) is not None:
            raise UsageError(f"{flag} is for files of records, not for folders; leave it out")
    options, guess = with_guess(options)
    options = replace(options, input="jsonl")
    settings = Settings.of(options)
    clean = ",".join(each for each in settings.form.clean.names if each != "html")
    progress = Progress(name, ["documents"], 1)
    tally = Tally(Rules(name, "document", settings.strict, args.verbosity), progress.clear)
    patterns = Patterns.of(args.include, args.exclude)
    walk = Walk(patterns, is_archive, shows=mails.is_maildir, skip=tally.leave_out)
    files = found_files(walk, args.files)
    walk.check_new("-o", args.answer)
    tally.fail_folders(walk.closed)
    with progress.shown(args.verbosity), path.open("wb") as sink:
        progress.stage("documents", len(files))
        counted = progress.counted(0, files, lambda _: 1)
        lines = json_lines(counted, settings, walk, tally, guess, (), None)
        write_to(sink, lines if clean == str(settings.form.clean) else texts_of_pages(lines, tally))
    return Settings.of(replace(options, encoding=None, clean=clean or None)), tally


def texts_of_pages(lines: Iterable[bytes], tally: Tally) -> Iterator[bytes]:
    """Yield JSON lines with the texts of pages; count those without text."""
    clean = Cleaning.parse("html")
    for line in lines:
        row = json.loads(line)
        row[DEFAULT_TEXT] = clean(row[DEFAULT_TEXT])
        if row[DEFAULT_TEXT].strip():
            yield json_row(row)
        else:
            tally.leave_out(SHORT[0], path_of(row["id"]))
