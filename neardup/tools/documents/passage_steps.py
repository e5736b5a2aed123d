r"""Find passages in steps, with a sort between them: as a pipe, or on a cluster.

    records ─ hashes, shared, windows, runs ─▶ sort ─ lines ─▶ passages, or DECIDED
    records ─ rows (DECIDED) ─▶ the records without passages, or with shares

`passage_windows` finds the windows that occur twice; `lines` joins those of a record to passages as
`repeated_runs` does, and prints them.  So the lines are those of one machine, in another order, or
with --by behind a key.

With --output marked, `lines` counts the repeated words of each record, and with kept it cuts them.
What is left is searched again: all steps then take the cuts of the rounds before, until a round has
none (see `passage_answers`).  It holds the lines of a record.
"""

from __future__ import annotations

import argparse
import json
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from neardup.decisions.kept_lines import keep_in_one
from neardup.engines.local.workers import working_folder
from neardup.engines.pipe import input_blocks, list_of_files, part_of_task
from neardup.options import table
from neardup.options.command_parser import STANDARD_INPUT, VERBOSITY
from neardup.options.settings import Settings, with_input
from neardup.reading import blocks
from neardup.reading.input_files import task_blocks
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError, opened_output, shown, write_all
from neardup.stages import phases
from neardup.stages.word_lines import Words
from neardup.tools.documents import passage_answers, passage_texts
from neardup.tools.documents.cut_words import cut_lines
from neardup.tools.documents.passage_answers import DecidedLines, parts_of
from neardup.tools.documents.passage_rows import check_kept
from neardup.tools.documents.passage_texts import KEPT, MARKED, PASSAGES, RecordTexts
from neardup.tools.documents.passage_windows import (
    AT_DIGITS,
    BEFORE,
    BEHIND,
    PLACE_DIGITS,
    TEXT_MARK,
    PassageOptions,
    by_key,
    hashes,
    runs,
    shared,
    unlike,
    windows,
)

BIGGEST = 1 << 40  # number of a word


def without_key(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of --by, which were sorted by the key in front of them."""
    return (line.partition(b"\t")[2] for line in lines)


def passage_lines(lines: Iterable[bytes], options: PassageOptions) -> Iterator[bytes]:
    """Yield the lines of passages, or what is decided, from the sorted output of `runs`."""
    words = Words(options.clean)
    decided = {KEPT: _cuts, MARKED: _counts}.get(options.kind)
    for place, group in by_key(lines):
        texts: list[_SentText] = []
        rows: list[_OnePlace] = []
        for fields in group:
            try:
                _, at, made, id_, low, text = fields
                if not at.startswith(TEXT_MARK):
                    first = text[:PLACE_DIGITS], int(text[PLACE_DIGITS:AT_DIGITS], 16)
                    found = int(at, 16), int(made), int(id_), int(low)
                    rows.append(_OnePlace(*found, *first, text[AT_DIGITS:]))
                    continue
                whole = json.loads(text.decode("utf-8", "surrogatepass"))
                texts.append(_SentText(int(at[1:], 16), int(low), id_.decode(), whole))
            except ValueError:
                raise unlike(fields, "runs") from None
            if made != options.digest:
                other = "the windows were made with another --length or --clean"
                raise StageError(f"{other}; give all steps the same")
        if rows and decided:
            yield from decided(place, rows, options)
        elif rows:
            yield from _of_record(place, texts, rows, words, options)


class _SentText(NamedTuple):
    """A part of a text, and its first word and character in it."""

    word: int
    low: int
    id: str
    text: str


class _OnePlace(NamedTuple):
    """A window at a place."""

    word: int
    places: int
    records: int
    same: int  # BEFORE, BEHIND: all places have the same window there
    place: bytes  # of the record where the window is first
    first: int  # its word
    source: bytes  # its id and character, if they are listed


def _of_record(
    place: bytes,
    texts: Sequence[_SentText],
    rows: Sequence[_OnePlace],
    words: Words,
    options: PassageOptions,
) -> Iterator[bytes]:
    """Yield the lines of passages with a place in a record, in order."""
    firsts, heads = [part.word for part in texts], [0]
    for i, (row, other) in enumerate(zip(rows, rows[1:]), 1):
        if not (other.word == row.word + 1 and row.same & BEHIND and other.same & BEFORE):
            heads.append(i)
    number, spans = -1, np.empty((0, 2), np.int64)
    for head, stop in zip(heads, [*heads[1:], len(rows)]):
        row, size = rows[head], stop - head + options.width - 1
        found = bisect_right(firsts, row.word) - 1
        if found >= 0 and found != number:
            number, spans = found, words.spans(texts[found].text)
        at = row.word - firsts[found] if found >= 0 else 0
        if found < 0 or at + size > len(spans):
            raise StageError(f"no text for {shown(place)}; run the step windows again")
        part = texts[found]
        low, high = int(spans[at, 0]), int(spans[at + size - 1, 1])
        line = passage_texts.passage_line(
            row.places, row.records, size, part.id, part.text, low, high, part.low
        )
        if options.by:
            key = passage_texts.sort_key(options.by, row.places, size)
            line = key + b"%b%08x%b%08x\t" % (row.place, row.first, place, row.word) + line
        yield line


def _counts(place: bytes, rows: Sequence[_OnePlace], options: PassageOptions) -> Iterator[bytes]:
    """Yield the line with the numbers of repeated words, and of those at a place before."""
    later = [row for row in rows if (row.place, row.first) != (place, row.word)]
    every, before = (
        int(np.minimum(np.diff([row.word for row in some], append=BIGGEST), options.width).sum())
        for some in (rows, later)
    )
    yield b"%b\t%d\t%d\n" % (place, every, before)


def _cuts(place: bytes, rows: Sequence[_OnePlace], options: PassageOptions) -> Iterator[bytes]:
    """Yield a line for each cut of a record, as `passage_rows` cuts; see `passage_answers`."""
    spans: list[tuple[int, int, bytes]] = []
    for row in rows:
        own, stop = row.place == place, row.word + options.width
        begin = max(row.word, row.first + options.width) if own and options.first else row.word
        source = b"%d" % (row.first + begin - row.word) if own else row.source
        spans += [(begin, stop, source)] * (begin < stop)
    cuts: list[tuple[int, int, bytes]] = []
    for begin, stop, source in sorted(spans, key=itemgetter(0)):
        if cuts and begin <= cuts[-1][1]:
            begin, last, source = cuts.pop()
            stop = max(last, stop)
        cuts.append((begin, stop, source))
    yield from (b"%b\t%08x\t%d\t%b\n" % (place, *cut) for cut in cuts)


# ---- step.py passages

STEP_OPTIONS = flags(
    """
    --shared FILE   for windows: the output of the step shared
    --decided FILE…  for rows: the output of the step lines; with --output kept: the cuts of each
                    round before, in order, also for hashes, windows and cuts
    --sources       for windows: also where each is, which cuts lists
    """
)
ABOUT = """Find passages in steps, with a sort between them: as a pipe, or on a cluster.

    ./step.py passages hashes FILE… | LC_ALL=C sort | ./step.py passages shared > shared
    ./step.py passages windows --shared shared FILE… | LC_ALL=C sort \\
        | ./step.py passages runs | LC_ALL=C sort \\
        | ./step.py passages lines > passages.tsv

The lines are those of `python3 -m neardup passages FILE…`, in another order; with --by, each is
behind a key: | LC_ALL=C sort | cut -f 2-.  All steps take the same options.

With --output marked, type in the place of the last line:

        | ./step.py passages lines --output marked > decided
    ./step.py passages rows --output marked --decided decided FILE…

With kept, all this is done again, with --decided of the rounds before, until lines prints nothing.
"""
STEPS = {
    "hashes": "records → hashes of all runs of words, in blocks",
    "shared": "sorted hashes → a filter of those that occur twice",
    "windows": "records → the runs that may occur twice, and the texts around them",
    "runs": "sorted runs → where those that occur twice are first, or all their places",
    "lines": "sorted places → passages, shares or cuts",
    "rows": "records → the same with shares, or without what is cut",
    "cuts": "records → a list of the cuts, as of --removed",
}
OF_RECORDS = ("hashes", "windows", "rows", "cuts")


def passages() -> None:
    """Run `step.py passages`; the first argument names a step of the search for passages."""
    names = "\n".join(f"    {name:9} {about}" for name, about in STEPS.items())
    description = f"{ABOUT}\n{names}\n"
    names_of = {*passage_texts.PASSAGE_FLAGS, "--mark-prefix", "--input-files"}
    parser = table.parser("step.py passages", description, names_of, (), table.OF_READERS)
    parser.usage = "step.py passages STEP [OPTIONS] [FILE ...]"
    parser.add_argument("step", choices=STEPS, metavar="STEP", help=argparse.SUPPRESS)
    parser.add(STANDARD_INPUT, *passage_texts.PASSAGE_OPTIONS, *passage_texts.IN_PARTS)
    parser.add(*STEP_OPTIONS, *VERBOSITY)
    args = parser.parse_intermixed_args()
    asked = passage_texts.options_of(args)
    if args.step not in OF_RECORDS:  # they need no more of the options of records
        asked = table.Options(input="text", clean=asked.clean)
    settings = Settings.of(with_input(asked))
    options = PassageOptions.of(args, settings.form.clean)
    lines = blocks.lines_of_stage(sys.stdin.buffer)
    with working_folder():
        if args.step in OF_RECORDS:
            passage_texts.check_words(settings.form, options.kind)
            of_records(args, settings, options)
            return
        if args.files:
            raise UsageError(f"{args.step} reads standard input, the sorted lines of another step")
        steps: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
            "shared": shared,
            "runs": partial(runs, least=options.least, every=args.places or args.kind != PASSAGES),
            "lines": partial(passage_lines, options=options),
        }
        write_all(steps[args.step](lines))


def of_records(args: argparse.Namespace, settings: Settings, options: PassageOptions) -> None:
    """Run a step that reads records: files, standard input, or a task's part of the input."""
    counters = Counters(f"passages {args.step}", progress="records", verbosity=args.verbosity)
    texts = RecordTexts(settings, (), counters, 1, single=options.kind == KEPT)
    with closing(DecidedLines([*map(parts_of, args.decided)])) as decided:
        if args.step == "rows":
            rows(args, settings, texts, decided, counters)
            counters.report()
            return
        if blocks.in_task():
            settings.form.check_task()
            names = list_of_files(settings.input_files)
            records = texts.of_blocks(task_blocks(names, settings.max_line, settings.pieces))
        else:
            records = texts.of_blocks(input_blocks(None, args.files, settings))
        if args.step == "hashes":
            write_all(hashes(records, options, phases.reducers_of_job(), decided))
        elif args.step == "cuts":
            found = passage_answers.cuts_of(records, decided, Words(options.clean))
            write_all(cut_lines(found, counters, array("Q")))
            return  # rows counts what is bad, and what is without words
        elif args.shared:
            known = phases.read_filter(args.shared, options.digest, "--shared")
            write_all(windows(records, options, known, decided, args.sources))
        else:
            raise UsageError("needs --shared FILE, the output of `./step.py passages shared`")
    counters.report()


def rows(
    args: argparse.Namespace,
    settings: Settings,
    texts: RecordTexts,
    decided: DecidedLines,
    counters: Counters,
) -> None:
    """Write the rows of files, or of a task's part of the input."""
    if args.kind == PASSAGES:
        raise UsageError("rows needs --output kept or marked")
    if blocks.in_task():
        settings.form.check_task()
        how = texts, decided, settings, args.kind, counters
        write_all(passage_answers.changed_rows(part_of_task(settings.input_files), *how))
        return
    if not {*args.files} - {"-"}:
        raise UsageError("rows reads its input twice; name FILE")
    files = blocks.numbered(args.files)
    check_kept(settings, files, args.kind)
    records = texts.of_blocks(input_blocks(None, args.files, settings))
    of_file = passage_answers.changes(records, decided, settings, args.kind, counters)
    with opened_output() as sink:
        keep_in_one(settings.form, files, settings.max_line, None, sink, of_file=of_file)
