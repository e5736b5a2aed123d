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
from itertools import count
from pathlib import Path
from typing import IO, Any, Callable, NamedTuple, TypeVar

import numpy as np

from neardup.engines.local.plan import workers_for
from neardup.engines.local.workers import Progress, total_size
from neardup.options import table
from neardup.options.settings import Settings
from neardup.reading import input_check as flaws
from neardup.reading import mails, text_rows
from neardup.reading.blocks import Block, count_lines
from neardup.reading.cleaning import Cleaning
from neardup.reading.decoders import Tasks, merged
from neardup.reading.folder_walk import Patterns, Walk, path_of
from neardup.reading.input_files import Unchanged
from neardup.reading.row_files import json_row
from neardup.reading.tally import Rules, Tally
from neardup.reading.text_rows import DEFAULT_TEXT, FlawError, Record, Row
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, UsageError, cores, write_to
from neardup.stages.pairs import check_start, reject
from neardup.stages.word_lines import WordLines, Words
from neardup.tools.documents.document_files import is_archive
from neardup.tools.documents.documents import SHORT, found_files, json_lines, with_guess

FOR_EACH = 4 << 20  # bytes of the files for each process
Result = TypeVar("Result")


class RecordText(NamedTuple):
    record: int  # its number, from 0
    place: int  # see `reading.blocks`
    id: str
    text: str  # as in its field, with the blanks around it
    spans: np.ndarray  # int64 (words, 2): where each word begins and ends, in characters


class RecordTexts:
    """The texts of files; `single`: only those of a single field, since they will be cut there.

    jobs: number of processes, which read the blocks in turn; None: one for each 4 MiB of the files,
    at most one for each core
    """

    def __init__(
        self,
        settings: Settings,
        files: Sequence[str],
        counters: Counters,
        jobs: int | None,
        single: bool = False,
    ):
        self._settings, self._files, self._counters = settings, files, counters
        size = total_size(files)
        self.jobs = workers_for(jobs or min(cores(), size // FOR_EACH + 1), size)
        self._records: Callable[[Any], Iterator[Record]] = text_rows.text_lines
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
        settings, counters = self._settings, self._counters
        counters.add("records", 0)
        counters.max_bad = settings.max_bad

        def read(block: Block) -> tuple[Block, list[Record]]:
            found = (r._replace(content=self._words.line(r.content)) for r in self._of(block))
            return _start(block), list(found)

        def share(turn: int, turns: int) -> Tasks[tuple[Block, list[Record]]]:
            for block in settings.blocks(self._files, turns=count(turn, turns)):
                yield block.first, partial(read, block)

        for block, found in merged(share, self.jobs):
            flawed = [flaws.BadLine(0, block.data, block.flaw)] if block.flaw else []
            bad = flawed + [flaws.BadLine(r.number, r.shown, r.flaw) for r in found if r.flaw]
            good = [record for record in found if not record.flaw]
            if not flawed:
                check_start(block, len(good), bad, settings, counters)
            for each in bad:
                reject(block, each, settings, counters)
            counters.add("records", len(good))
            for record in good:
                self.places.append(block.first + record.number)
                yield record.content

    def again(
        self, lines: WordLines, wanted: np.ndarray, of: Callable[[RecordText], Result]
    ) -> Iterator[Result]:
        """Read the files again; yield what `of` returns for each wanted record.

        wanted: numbers of records, ascending.  StageError if a file was changed.
        """
        places = np.array(self.places, np.uint64)[wanted]

        def found_in(block: Block, records: dict[int, int]) -> list[Result]:
            return [of(each) for each in self._wanted(block, records, lines)]

        def share(turn: int, turns: int) -> Tasks[list[Result]]:
            for block in self._settings.blocks(self._files, turns=count(turn, turns)):
                size = count_lines(block.data) if isinstance(block.data, bytes) else len(block.data)
                ends = np.array([block.first, block.first + size], np.uint64)
                low, high = np.searchsorted(places, ends).tolist()
                if low < high:
                    records = dict(zip(places[low:high].tolist(), wanted[low:high].tolist()))
                    yield block.first, partial(found_in, block, records)

        read = 0
        for found in merged(share, self.jobs):
            read += len(found)
            yield from found
        self.check()
        if read != len(wanted):
            raise StageError(
                f"{', '.join(self._files)}: changed while it was read; run again when nobody "
                "writes to it, or read a copy of it"
            )

    def _wanted(
        self, block: Block, records: dict[int, int], lines: WordLines
    ) -> Iterator[RecordText]:
        """Yield the records of a block that are wanted, {place: number}, and as they were."""
        for number, id_, text, *_ in self._of(block):
            record = records.get(place := block.first + number, -1)
            if record >= 0 and self._words.line(text) == lines.line(record):
                yield RecordText(record, place, id_.decode(), text, self._words.spans(text))

    def _of(self, block: Block) -> list[Record]:
        """Return the records and bad lines of a block; rows without an id get one."""
        found = [] if block.flaw else list(self._records(block.data))
        if not (fields := self._settings.form.fields):
            return found
        good = [record for record in found if not record.flaw]
        ids, numbers = [record.id for record in good], [record.number for record in good]
        named = iter(text_rows.with_row_ids(ids, numbers, block, fields))
        return [each if each.flaw else each._replace(id=next(named)) for each in found]


def _start(block: Block) -> Block:
    """Return what is needed of a block, behind the start of its file, once its texts are read."""
    needed = isinstance(block.data, bytes) and (block.flaw or block.line == 1)
    return block._replace(data=block.data if needed else [], reserved=())


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
