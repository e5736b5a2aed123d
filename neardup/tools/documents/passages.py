"""`passages`: find what occurs in several texts, or twice in one, and where.

files ── word lines ── repeated runs ── passages ── the files again: ids, places, excerpts
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from io import BytesIO
from itertools import chain
from typing import Callable

import numpy as np

from neardup.decisions.kept_lines import PlacesOf, keep_in_one
from neardup.engines.local import work_folder
from neardup.engines.local.answer_file import Answer, check_outputs, file_answer
from neardup.engines.local.workers import working_folder
from neardup.options import table
from neardup.options.command_parser import SHARED, plain_names
from neardup.options.settings import Settings
from neardup.reading.blocks import InputFile, numbered
from neardup.reading.input_files import check_files, check_regular
from neardup.reading.table_rows import fields_table
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import UsageError, write_to
from neardup.runtime.summary import QUIET, many
from neardup.stages.pairs import sorted_lines
from neardup.stages.repeated_runs import BY_PLACE, find_passages
from neardup.stages.word_lines import KeptSteps, WordLines
from neardup.tools.documents import passage_texts
from neardup.tools.documents.cut_words import (
    Cut,
    CutWords,
    Name,
    counted,
    cut_lines,
    rounds_of_cuts,
)
from neardup.tools.documents.document_files import is_archive
from neardup.tools.documents.documents import check_failures
from neardup.tools.documents.passage_rows import Shares, check_kept, cut_places
from neardup.tools.documents.passage_texts import RecordText, RecordTexts

PROGRAM, NAME = "python3 -m neardup passages", "neardup passages"
FLAGS = (*passage_texts.PASSAGE_FLAGS, "--mark-prefix")
PASSAGES = fields_table(count=int, records=int, words=int, place=str, excerpt=str)
PAGE = "neardup.tools.report.passage_page"  # imported only for --report
COLUMNS = ("id", "from", "to", "bytes", "repeats", "left", "text")
CUTS = fields_table(**dict(zip(COLUMNS, (str, int, int, int, str, int, str))))
DESCRIPTION = """Find passages: runs of words that occur in several texts, or twice in one.

A passage has at least 50 words, and goes on as far as all of its places have the same words.

    python3 -m neardup passages corpus.jsonl > passages.tsv
    python3 -m neardup passages --length 13 --min-records 5 --by saved corpus.jsonl | head
    python3 -m neardup passages --include '*.html' --clean html site

A line has the number of its places, that of the records with it, its words, ID:FROM-TO of its first
place, in characters of the text, and how it begins.
"""
TEXTS = {
    **table.OF_READERS,
    "--clean": "what to ignore in each word: width, accents, digits, punctuation, or several with "
    "commas, such as digits,punctuation; width: Ａ counts as A; accents: é counts as e; digits: "
    "numbers; punctuation: marks and symbols, which also separate words",
    "--mark-prefix": "with --output marked: what the names of the added columns begin with",
}
OWN = flags(
    """
    --separator TEXT  with --output kept: the blanks or line ends in place of each cut (default: a
                    blank)
    files FILE…     of texts: JSON lines, CSV, TSV, Parquet, Arrow, or lines with --input text;
                    plain or compressed.  Or folders and archives, of which each file is a text
    """,
    separator={"default": " "},
)


def main() -> None:
    args, options = _command_line()
    counters = Counters("passages", progress="records", verbosity=args.verbosity)
    kept, of_rows = args.kind == "kept", [] if args.folders else args.files
    files = numbered(args.files)
    with (
        opened_work(args, options) as work,
        working_folder(str(work.root) if work else None) as folder,
        file_answer("-o", args.answer, of_rows, PASSAGES) as answer,
        file_answer("--removed", args.removed, args.files, CUTS) as removed,
        file_answer("--report", args.report, of_rows, CUTS) as page,
    ):
        names, tally = args.files, None
        if args.folders:
            names = [str(folder / "documents")]
            settings, tally = passage_texts.write_documents(
                NAME, args, options, folder / "documents"
            )
        else:
            settings = Settings.of(options)
        if kept or args.kind == "marked":
            check_kept(settings, files, args.kind, args.separator, answer.descriptor, args.answer)
        texts = RecordTexts(settings, names, counters, args.jobs, single=kept)
        lines = texts.lines(steps := KeptSteps(texts.jobs, work))
        asked = lines, args.length, args.min_records
        if kept:
            first = args.which == "first"
            rounds = rounds_of_cuts(*asked, first, steps)
            cuts = array("Q")
            found = cut_lines(cuts_in(texts, lines, CutWords(rounds)), counters, cuts)
            removed.write(found) if args.removed else deque(found, maxlen=0)
            how = partial(cut_places, settings.form, cuts, args.separator)
            write_rows(settings, files, texts, answer, how)
            said = many(len(cuts) // 3, "cuts")
        elif args.kind == "marked":
            counts = steps.value("found", partial(counted, *asked, steps), spent=BY_PLACE)
            some = counts.words > 0
            shares = np.stack(counts[1:], axis=1)[some] / counts.words[some, np.newaxis]
            known = np.array(texts.places, np.uint64)[some], shares
            marks = partial(Shares, settings.form, settings.mark_prefix, *known)
            write_rows(settings, files, texts, answer, marks)
            said = f"{int(counts.repeated.sum()):,} of them in passages"
        else:
            every = bool(args.places or args.report)
            find = partial(find_passages, *asked, every, steps)
            places = steps.value("found", find, spent=BY_PLACE)
            firsts = np.flatnonzero(places[0] == places[3])
            said = many(len(firsts), "passages")
            if args.report:
                sizes = passage_texts.sizes_of(args.by, *places[[4, 6]][:, firsts])
                large = [-size for size in sizes]
                order = firsts[np.lexsort((places[0, firsts], *large[::-1]))]
                made = import_module(PAGE).passages_page(
                    texts, lines, places, order, args.files, args.folders
                )
                with page.file() as sink:
                    write_to(sink, [made.encode()])
                places = places if args.places else places[:, firsts]
            listed = sorted_lines(listing(texts, lines, places, args.by), counters)
            answer.write(line.partition(b"\t")[2] for block in listed for line in BytesIO(block))
        if tally:
            tally.report("")
        if work:
            work.finished = True
    counters.report()
    if args.verbosity > QUIET:
        print(f"{lines.words:,} words; {said}", file=sys.stderr)
    if tally:
        check_failures(tally, settings)


def opened_work(
    args: argparse.Namespace, options: table.Options
) -> AbstractContextManager[work_folder.RunWork | None]:
    """Return the folder of --work, to be opened, or None."""
    if args.work is None:
        return nullcontext()
    words = [f"--length={args.length}", f"--min-records={args.min_records}"]
    words += [f"--output={args.kind}", *[f"--keep={args.which}"] * (args.kind == "kept")]
    words += ["--places"] * bool(args.places or args.report)
    words += filter(lambda word: not word.startswith("--output="), options.arguments())
    return work_folder.opened(args.work, words, args.files, args.verbosity == QUIET, args.keep_work)


def write_rows(
    settings: Settings,
    files: Sequence[InputFile],
    texts: RecordTexts,
    answer: Answer,
    how: PlacesOf,
) -> None:
    """Write all rows of the files as `how` changes them; StageError if a file was changed."""
    with answer.opened() as sink:
        keep_in_one(settings.form, files, settings.max_line, None, sink, of_file=how)
    texts.check()


def cuts_in(
    texts: RecordTexts, lines: WordLines, words: CutWords
) -> Iterator[tuple[RecordText, list[Cut], Callable[[Name], str]]]:
    """Yield the records with cuts, or with what these repeat, as `cut_lines` takes them."""
    sources: dict[Name, str] = {}
    for each in texts.again(lines, words.records, lambda each: each):
        own, repeats = words.of(each.record, len(each.spans))
        sources.update({name: f"{each.id}:{each.spans[at, 0]}" for name, at in repeats.items()})
        yield each, own, sources.__getitem__


def listing(texts: RecordTexts, lines: WordLines, found: np.ndarray, by: str) -> Iterator[bytes]:
    """Return a line for each place, behind a key to sort by and a tab."""

    def listed(each: RecordText) -> list[bytes]:
        some, (low, high) = [], np.searchsorted(found[1], [each.record, each.record + 1])
        for begin, _, word, first, count, of, words in found[:, low:high].T.tolist():
            key = passage_texts.sort_key(by, count, words) + b"%016x%016x" % (first, begin)
            low, high = int(each.spans[word, 0]), int(each.spans[word + words - 1, 1])
            line = passage_texts.passage_line(count, of, words, each.id, each.text, low, high)
            some.append(key + b"\t" + line)
        return some

    return chain.from_iterable(texts.again(lines, np.unique(found[1]), listed))


def _command_line() -> tuple[argparse.Namespace, table.Options]:
    own = (*passage_texts.PASSAGE_OPTIONS, *passage_texts.ANSWER_OPTIONS, *OWN)
    parser = table.parser(PROGRAM, DESCRIPTION, FLAGS, own, TEXTS)
    about = "write each cut to FILE: id, from, to, bytes, what it repeats, the words left in the"
    about = f"with --output kept: also {about} record, and the text, in JSON"
    removed = SHARED["--removed"]._replace(help=about, short=True)
    names = "--include --exclude --jobs --work --keep-work -o --removed --report"
    parser.add_shared(names, removed)
    args = parser.parse_intermixed_args(plain_names(sys.argv[1:]))
    check_outputs(args, args.kind)
    work_folder.check_flags(args)
    options = passage_texts.options_of(args)
    if args.report:
        if args.kind != "passages":
            raise UsageError(f"--report shows passages; leave out --output {args.kind}")
        import_module(PAGE).page.check_jinja()
    args.folders = any(os.path.isdir(name) or is_archive(os.fsencode(name)) for name in args.files)
    if args.folders:
        check_folders(args)
        return args, options
    for flag in ("--include" * bool(args.include), "--exclude" * bool(args.exclude)):
        if flag:
            raise UsageError(f"{flag} is for folders, and {args.files[0]} is a file; leave it out")
    check_files(args.files)
    check_regular(args.files)
    passage_texts.check_words(Settings.of(options).form, args.kind)
    return args, options


def check_folders(args: argparse.Namespace) -> None:
    """Raise UsageError unless all inputs are folders or archives, whose passages are listed."""
    for name in args.files:
        if os.path.isfile(name) and not is_archive(os.fsencode(name)):
            raise UsageError(
                f"{name}: is a file of records, or one document, beside a folder or an archive; "
                "name it alone, or only its folder with --include"
            )
    if args.kind != "passages" or args.work:
        line = f"{PROGRAM.replace('passages', 'documents')} --output lines {shlex.join(args.files)}"
        rows = f"--output {args.kind} writes the rows of files"
        why = "--work goes on with files of records" if args.work else rows
        raise UsageError(
            f"{why}; make a file of the documents: {line} > documents.jsonl, and name that file"
        )
