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
from itertools import count, groupby
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Any, Callable, NamedTuple, TypeVar

import numpy as np

from neardup.engines.local.plan import workers_for
from neardup.engines.local.workers import total_size
from neardup.options import table
from neardup.options.settings import Settings
from neardup.reading import input_check as flaws
from neardup.reading import text_rows
from neardup.reading.blocks import Block, count_lines, in_task
from neardup.reading.cleaning import Cleaning
from neardup.reading.decoders import Tasks, merged
from neardup.reading.folder_walk import path_of
from neardup.reading.input_files import Unchanged
from neardup.reading.input_format import InputFormat
from neardup.reading.table_rows import json_row
from neardup.reading.tally import Tally
from neardup.reading.text_rows import DEFAULT_TEXT, FlawError, Record, Row
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags, read
from neardup.runtime.program import StageError, UsageError, cores, one_of, printable, whole
from neardup.stages.pairs import check_start, reject
from neardup.stages.repeated_runs import ONE_GO
from neardup.stages.word_lines import KeptSteps, WordLines, Words
from neardup.tools.documents.documents import SHORT, DocumentFiles, with_guess

EXCERPT, SQUEEZED = 80, 1000  # characters
BIGGEST = 1 << 62
FOR_EACH = 4 << 20  # bytes of the files for each process
PART_BLOCKS = 64  # blocks of a part that is kept
Result = TypeVar("Result")
PASSAGE_FLAGS = (*table.READING, "--clean", "--max-line", "--max-bad", "--strict")
PASSAGE_OPTIONS = flags(
    """
    --length N      the minimum number of words of a passage; in scripts without blanks, of letters
                    [50]  -h
    --min-records N  only passages that at least N records have [1]  -h
    --places        a line for each place of a passage, not for the first one alone  -h
    """,
    length=whole(1, 1 << 20),
    min_records=whole(1, 1 << 40),
)
ORDERS, OUTPUTS = ("words", "count", "saved"), ("passages", "kept", "marked")
PASSAGES, KEPT, MARKED = OUTPUTS
ANSWER_OPTIONS = flags(
    f"""
    --by ORDER      what the largest come first by: words; count: of the places; saved: the words of
                    all places but one [{ORDERS[0]}]  -h
    --output KIND   passages: a line for each; kept: the records, with the passages cut out of their
                    texts; marked: all records, behind two columns: the share of their words that
                    is in passages (repeated), and in those of a place before (seen_before)
                    [{PASSAGES}]  -h: passages; kept: the records without them; marked: all
                    records, with the share of repeated words (default: passages)
    --keep WHICH    with --output kept: first: the first place of each passage is kept; none: all
                    are cut [first]  -h: with --output kept: keep the first place, or none
                    (default: first)
    """,
    by=one_of(*ORDERS),
    output={"dest": "kind", "type": partial(read, "--output", one_of(*OUTPUTS))},
    keep={"dest": "which", "type": partial(read, "--keep", one_of("first", "none"))},
)
IN_PARTS = tuple(  # on clusters, lines are not in order by themselves
    flag._replace(default=None) if flag.name == "--by" else flag for flag in ANSWER_OPTIONS
)
CLUSTER_OPTIONS = (
    *PASSAGE_OPTIONS,
    *IN_PARTS,
    *flags("--removed FOLDER  with --output kept: write each cut to this new folder"),
)


def options_of(args: argparse.Namespace) -> table.Options:
    """Return the options of a command line; UsageError for one that needs another --output."""
    for flag, kind in (("removed", KEPT), ("mark_prefix", MARKED)):
        if getattr(args, flag, None) is not None and args.kind != kind:
            name = f"--{flag.replace('_', '-')}"
            raise UsageError(f"{name} needs --output {kind}, but --output is {args.kind}")
    return replace(table.Options.of(args), output=MARKED if args.kind == MARKED else "pairs")


def sizes_of(by: str, count: Any, words: Any) -> tuple[Any, Any]:
    """Return what passages are ordered by, the largest first: numbers, or arrays of them."""
    saved = (count - 1) * words
    return {"words": (words, count), "count": (count, words), "saved": (saved, words)}[by]


def sort_key(by: str, count: int, words: int) -> bytes:
    return b"%016x%016x" % tuple(BIGGEST - size for size in sizes_of(by, count, words))


class RecordText(NamedTuple):
    record: int  # its number, from 0
    place: int  # see `reading.blocks`
    id: str
    text: str  # as in its field, with the blanks around it
    spans: np.ndarray  # int32 (words, 2): where each word begins and ends, in characters


def passage_line(
    count: int, of: int, words: int, id_: str, text: str, low: int, high: int, shift: int = 0
) -> bytes:
    """Return the line of a passage at text[low:high]; shift: where this part of the text begins."""
    excerpt = " ".join(text[low : min(high, low + SQUEEZED)].split())
    more = "…" * (len(excerpt) > EXCERPT or high > low + SQUEEZED)
    place = f"{id_}:{low + shift}-{high + shift}"
    return f"{count}\t{of}\t{words}\t{place}\t{printable(excerpt[:EXCERPT])}{more}\n".encode()


_Read = tuple[int, Block, list[Record]]  # the number of a block, its start, and what is in it


class _TextPart(NamedTuple):
    """What is kept of some of the blocks, beside a file with the words of their texts."""

    number: int  # of the first block, by PART_BLOCKS
    sizes: np.ndarray  # of the lines of words; int64
    words: int
    places: array[int]
    counts: tuple[dict[str, int], list[tuple[str, int, str]]]  # of `Counters`, up to here


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
            self._records = settings.form.of_task(
                partial(text_rows.row_records, fields=fields, needs_id=in_task(), content_of=how)
            )
        self._words, self.check = Words(settings.form.clean), Unchanged(files).check
        self.places = array("Q")  # of all records, once they are read

    def lines(self, steps: KeptSteps = ONE_GO) -> WordLines:
        """Read all texts, count bad lines, and write their words to a file."""
        self._counters.add("records", 0)
        self._counters.max_bad = self._settings.max_bad
        with steps.file("words") as file:
            if steps.work is None:
                lines = WordLines.written(self._good(self._read()), file)
            else:
                lines = WordLines(file, *self._in_parts(steps, file))
        self.check()
        return lines

    def _in_parts(self, steps: KeptSteps, file: IO[bytes]) -> tuple[np.ndarray, int]:
        """Write the words of all texts, in parts that are kept; return the offsets and number."""
        parts: list[_TextPart] = []
        while (step := steps._replace(round=len(parts))).done("texts"):
            parts.append(step.kept("texts"))
            self.places += parts[-1].places
            self._counters.counts, self._counters.bad_lines = parts[-1].counts
        if not steps.done("words"):
            begin = PART_BLOCKS * (parts[-1].number + 1 if parts else 0)
            for some in groupby(self._read(begin), lambda each: each[0] // PART_BLOCKS):
                step = steps._replace(round=len(parts))
                parts.append(step.value("texts", partial(self._part, step, *some), more="part"))
            for i in range(len(parts)):
                with steps._replace(round=i).file("part") as part:
                    copyfileobj(part, file)
            file.flush()
            steps.finish("words", spent="part")
        sizes = np.concatenate([np.zeros(1, np.int64), *(part.sizes for part in parts)])
        return np.cumsum(sizes), sum(part.words for part in parts)

    def _part(self, step: KeptSteps, number: int, blocks: Iterator[_Read]) -> _TextPart:
        known = len(self.places)
        with step.file("part") as file:
            lines = WordLines.written(self._good(blocks), file)
        counts = self._counters.counts, self._counters.bad_lines
        return _TextPart(number, np.diff(lines.offsets), lines.words, self.places[known:], counts)

    def _read(self, begin: int = 0) -> Iterator[_Read]:
        """Yield what is read from the blocks, from a number on."""

        def read(number: int, block: Block) -> _Read:
            found = (r._replace(content=self._words.line(r.content)) for r in self._of(block))
            # Once its texts are read, only the start of a file is needed, and what is bad.
            needed = isinstance(block.data, bytes) and (block.flaw or block.line == 1)
            start = block._replace(data=block.data if needed else [], reserved=())
            return number, start, list(found)

        def share(turn: int, turns: int) -> Tasks[_Read]:
            at = 0

            def noted(number: int) -> int:  # of one or several blocks
                nonlocal at
                at = number
                return number

            numbers = map(noted, count(begin + turn, turns))
            for block in self._settings.blocks(self._files, turns=numbers):
                yield block.first, partial(read, at, block)

        return merged(share, self.jobs)

    def _good(self, blocks: Iterable[_Read]) -> Iterator[bytes]:
        """Yield the words of each record; count the bad lines."""
        for _, block, found in blocks:
            for record in self._counted(block, found):
                self.places.append(block.first + record.number)
                yield record.content

    def _counted(self, block: Block, found: Sequence[Record]) -> list[Record]:
        """Return the records of a block, and count them and its bad lines."""
        settings, counters = self._settings, self._counters
        flawed = [flaws.BadLine(0, block.data, block.flaw)] if block.flaw else []
        bad = flawed + [flaws.BadLine(r.number, r.shown, r.flaw) for r in found if r.flaw]
        good = [record for record in found if not record.flaw]
        if not flawed:
            check_start(block, len(good), bad, settings, counters)
        for each in bad:
            reject(block, each, settings, counters)
        counters.add("records", len(good))
        return good

    def of_blocks(self, blocks: Iterable[Block]) -> Iterator[tuple[int, Record]]:
        """Yield each record of blocks with its place and its text; count it, and bad lines."""
        self._counters.add("records", 0)
        self._counters.max_bad = self._settings.max_bad
        for block in blocks:
            for record in self._counted(block, self._of(block)):
                yield block.first + record.number, record

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


def check_words(form: InputFormat, kind: str = PASSAGES) -> None:
    """Raise UsageError if records have no words, or if it is not known where these are.

    kind: of --output
    """
    if kind == KEPT and form.fields and len(form.fields.texts) > 1:
        raise UsageError("--text: --output kept cuts one field; name one")
    if form.shingle is None:
        raise UsageError(
            f"lines of {form.input} have no words; passages is for tables and texts; name "
            "their format, as in --input text"
        )
    if "html" in form.clean.names:
        raise UsageError(
            "--clean html: a word may have a tag inside, so places in pages are not known; leave "
            "html out, or name a folder of pages, whose texts are then read"
        )


def write_documents(
    name: str, args: argparse.Namespace, options: table.Options, path: Path
) -> tuple[Settings, Tally]:
    """Write the documents of `args.files` to a file; return settings to read it, and the counts.

    With --clean html, the texts are those of the pages, without tags.  name: of the command
    """
    for flag in sorted({*table.READING} - {"--encoding"}):
        if options.value(flag) is not None:
            raise UsageError(f"{flag} is for files of records, not for folders; leave it out")
    options, guess = with_guess(options)
    options = replace(options, input="jsonl")
    settings = Settings.of(options)
    clean = ",".join(each for each in settings.form.clean.names if each != "html")
    files, of_html = DocumentFiles(name, args, settings), Cleaning.parse("html")

    def of_page(line: bytes) -> bytes:
        """Return the line with the text of a page; count those without text."""
        row = json.loads(line)
        row[DEFAULT_TEXT] = of_html(row[DEFAULT_TEXT])
        if row[DEFAULT_TEXT].strip():
            return json_row(row)
        files.tally.leave_out(SHORT[0], path_of(row["id"]))
        return b""

    files.write(path, guess, of=bytes if clean == str(settings.form.clean) else of_page)
    return Settings.of(replace(options, encoding=None, clean=clean or None)), files.tally
