"""`passages`: find what occurs in several texts, or twice in one, and where.

files ── word lines ── repeated runs ── passages ── the files again: ids, places, excerpts
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterator
from io import BytesIO
from tempfile import TemporaryFile

import numpy as np

from neardup.commands.exact_answers import check_files, check_regular
from neardup.engines.local.answer_file import check_outputs, file_answer
from neardup.engines.local.workers import working_folder
from neardup.options import table
from neardup.options.command_parser import flags, plain_names
from neardup.options.settings import Settings
from neardup.reading.row_files import fields_table
from neardup.repeats.record_texts import RecordTexts
from neardup.repeats.repeated_runs import PassagePlaces, find_passages
from neardup.repeats.word_lines import WordLines
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, UsageError, one_of, printable, whole
from neardup.runtime.summary import QUIET, many
from neardup.stages.pairs import sorted_lines

PROGRAM, NAME = "python3 -m neardup passages", "neardup passages"
FLAGS = (*table.READING, "--clean", "--max-line", "--max-bad", "--strict")
PASSAGES = fields_table(count=int, records=int, words=int, place=str, excerpt=str)
DEFAULT_LENGTH, MAX_LENGTH, MAX_RECORDS = "50", 1 << 20, 1 << 40
EXCERPT, SQUEEZED = 80, 1000  # characters
BIGGEST = 1 << 62
ORDERS = ("words", "count", "saved")
DESCRIPTION = """Find passages: runs of words that occur in several texts, or twice in one.

A passage has at least 50 words, and occurs less often if a word is added at either end.

    python3 -m neardup passages corpus.jsonl > passages.tsv
    python3 -m neardup passages --length 13 --min-records 5 --by saved corpus.jsonl | head

A line has the number of its places, that of the records with it, its words, ID:FROM-TO of its first
place, in characters of the text, and how it begins.  No text is changed.
"""
TEXTS = {
    **table.OF_READERS,
    "--clean": "what to ignore in each word: width, accents, digits, punctuation, or several with "
    "commas, such as digits,punctuation; width: Ａ counts as A; accents: é counts as e; digits: "
    "numbers; punctuation: marks and symbols, which also separate words",
}
OWN = flags(
    f"""
    --length N      the minimum number of words of a passage; in scripts without blanks, of letters
                    [{DEFAULT_LENGTH}]  -h
    --min-records N  only passages that at least N records have [1]  -h
    --by ORDER      what the largest come first by: words; count: of the places; saved: the words of
                    all places but one [{ORDERS[0]}]  -h
    --places        a line for each place of a passage, not for the first one alone  -h
    files FILE…     of texts: JSON lines, CSV, TSV, Parquet, Arrow, or lines with --input text;
                    plain or compressed
    """,
    length=whole(1, MAX_LENGTH),
    min_records=whole(1, MAX_RECORDS),
    by=one_of(*ORDERS),
)


def main() -> None:
    args, settings = _command_line()
    counters = Counters("passages", progress="records", verbosity=args.verbosity)
    with (
        working_folder(),
        file_answer("-o", args.answer, args.files, PASSAGES) as answer,
        TemporaryFile() as file,
    ):
        texts = RecordTexts(settings, args.files, counters)
        lines = texts.lines(file)
        found, covered = find_passages(lines, args.length, args.min_records, args.places)
        number = int(np.count_nonzero(found.begin == found.first))
        listed = sorted_lines(listing(texts, lines, found, args.by), counters)
        answer.write(without_keys(listed))
    counters.report()
    if args.verbosity > QUIET:
        share = f" ({covered / lines.words:.1%})" if lines.words else ""
        what = f"{many(number, 'passages')} of {args.length:,} words or more"
        print(f"{what}; {covered:,} of {lines.words:,} words{share} are in them", file=sys.stderr)


def listing(texts: RecordTexts, lines: WordLines, found: PassagePlaces, by: str) -> Iterator[bytes]:
    """Yield a line for each place, behind a key to sort by and a tab."""
    at = 0
    records = np.unique(found.record)
    rows = list(zip(*(column.tolist() for column in found)))
    for each in texts.again(lines, records):
        while at < len(rows) and rows[at][0] == each.record:
            _, word, words, begin, first, count, of = rows[at]
            saved = (count - 1) * words
            sizes = {"words": (words, count), "count": (count, words), "saved": (saved, words)}
            key = b"%016x%016x%016x%016x" % (*(BIGGEST - size for size in sizes[by]), first, begin)
            low, high = int(each.spans[word, 0]), int(each.spans[word + words - 1, 1])
            excerpt = " ".join(each.text[low : min(high, low + SQUEEZED)].split())
            more = "…" * (len(excerpt) > EXCERPT or high > low + SQUEEZED)
            place = f"{each.id}:{low}-{high}"
            line = f"{count}\t{of}\t{words}\t{place}\t{printable(excerpt[:EXCERPT])}{more}\n"
            yield key + b"\t" + line.encode()
            at += 1


def without_keys(blocks: Iterator[bytes]) -> Iterator[bytes]:
    for block in blocks:
        yield b"".join(line.partition(b"\t")[2] for line in BytesIO(block))


def _command_line() -> tuple[argparse.Namespace, Settings]:
    parser = table.parser(PROGRAM, DESCRIPTION, FLAGS, OWN, TEXTS)
    parser.add_shared("-o")
    args = parser.parse_intermixed_args(plain_names(sys.argv[1:]))
    check_outputs(args, "passages")
    for name in filter(os.path.isdir, args.files):
        line = f"{PROGRAM.replace('passages', 'documents')} --output lines {shlex.quote(name)}"
        raise StageError(
            f"{name}: is a folder; make a file of it: {line} > documents.jsonl, and name that file"
        )
    check_files(args.files)
    check_regular(args.files)
    settings = Settings.of(table.Options.of(args))
    if settings.form.shingle is None:
        raise UsageError(
            f"lines of {settings.form.input} have no words; passages is for tables and texts; name "
            "their format, as in --input text"
        )
    if "html" in settings.form.clean.names:
        raise UsageError(
            "--clean html: a word may have a tag inside, so places in pages are not known; leave "
            "html out, or write the texts of the pages to a file first"
        )
    return args, settings
