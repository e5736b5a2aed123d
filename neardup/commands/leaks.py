"""`leaks`: find test records that are in training data, and the longest passage in both.

test and training files ── `neardup run --exact --against TEST --between` ── pairs of ids
                        └─ read again: the sets and texts of these ids ── leaks, or clean files
"""

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Callable, NamedTuple

from neardup.decisions.kept_lines import check_one_answer, keep_in_one
from neardup.engines.local import run
from neardup.engines.local.answer_file import LINES_OPTION, file_answer
from neardup.engines.local.workers import working_folder
from neardup.evaluation.exact_answers import add_option, check_files, check_regular
from neardup.lines.answer_lines import format_decided, parse_pair
from neardup.options import table
from neardup.options.settings import Settings, form_of
from neardup.options.table import Options
from neardup.reading import shingling
from neardup.reading.blocks import NEW, Block, file_places
from neardup.reading.compressed import kind_by_name
from neardup.reading.input_files import InputFile
from neardup.reading.input_format import InputFormat
from neardup.reading.row_files import fields_table
from neardup.reading.text_rows import row_id, with_row_ids
from neardup.runtime.program import UsageError, escaped, not_one_of
from neardup.runtime.summary import QUIET, VERBOSE
from neardup.similarity.measures import fraction_text

PROGRAM = "python3 -m neardup leaks"
NAME = "neardup leaks"
MEASURES = ("containment", "jaccard")
DEFAULT_THRESHOLD, DEFAULT_SHINGLE = "0.7", "word:8"
FLAGS = (
    *table.READING,
    "--clean",
    "--max-line",
    "--max-bad",
    "--strict",
)
OUTPUTS = ("leaks", "clean")
LEAKS = fields_table(test=str, train=str, share=float, place=str, passage=str)
SHOWN_WORDS, PLACES, MOST_PLACE = 40, 16, 5000
FOUND = 1  # the exit code
TRAINING = ""  # in counts, for the records of all training files
DESCRIPTION = """Find which records of test sets are in training data.

A test record is leaked if one training record contains at least 70 % of its eight-word sequences.
Every such pair is found and verified.

    python3 -m neardup leaks train.jsonl --test test.jsonl > leaks.tsv
    python3 -m neardup leaks train.jsonl --test test.jsonl --output clean > clean.jsonl

A line has the ids of the test record and of the training record, the share of the test record
that is in the training record, FILE:LINE of the training record, and the longest passage that both
have.  With --output leaks, the exit code is 1 if there is a leak.
"""
SHORT = {
    "--test": "test records; may be repeated",
    "--threshold": "the share of a test record that is in a training record (default: 0.7)",
    "--shingle": "length of the sequences: word:8, word:13, char:20 … (default: word:8)",
    "--output": "leaks, or clean: the training data without leaked records (default: leaks)",
    "--text": "the field of the text (default: text)",
    "--id": "the field of the id (default: id)",
    "-o": "write the answer to FILE",
    "-v": "also print all counts of the run",
}
TEXTS = {
    "--input": table.help_without("--input", "; with --weights own each may be SHINGLE:WEIGHT"),
}


class FoundRecord(NamedTuple):
    """A test or training record whose id is in a found pair."""

    file: str
    line: int
    place: int  # see `reading.blocks`
    id: bytes
    tokens: frozenset[int]
    text: str


class Leak(NamedTuple):
    test: FoundRecord
    train: FoundRecord
    similarity: Fraction

    def line(self, form: InputFormat) -> bytes:
        """Return the output line of a leak, with a passage or the number of common shingles."""
        both = len(self.test.tokens & self.train.tokens)
        passage = f"{both:,} shingles"
        if form.shingle is not None and form.shingle.unit != "spot":
            passage = longest_passage(form, self.test.text, self.train.text)
        place = f"{self.train.file}:{self.train.line}".encode("utf-8", "surrogateescape")
        fields = (
            self.test.id,
            self.train.id,
            fraction_text(self.similarity),
            escaped(place, limit=MOST_PLACE).encode(),
            passage.encode(),
        )
        return b"\t".join(fields) + b"\n"


def main() -> None:
    args = _command_line()
    options = run_options(args)
    settings = Settings.of(options)
    new = [
        InputFile(*each) for each in zip(args.files, args.files, file_places(0, len(args.files)))
    ]
    given = [*args.test, *args.files]
    with working_folder() as folder, file_answer("-o", args.answer, given, LEAKS) as answer:
        if args.kind == "clean":
            check_one_answer(settings.form, new, answer.descriptor)
            check_kind(args.answer, settings.form.kind_of(args.files[0]))
        pairs = folder / "pairs"
        said = "-v" if args.verbosity >= VERBOSE else "-q"
        jobs = [] if args.jobs is None else [f"--jobs={args.jobs}"]
        words = [*options.given_arguments(), f"-o{pairs}", said, *jobs]
        run.main(NAME, PROGRAM, [*words, "--", *args.files])
        counts: Counter[str] = Counter()
        leaks = list(found_leaks(settings, args, partners(pairs), counts))
        if args.kind == "clean":
            decided = folder / "decided"
            decided.write_bytes(b"".join(decisions(leaks)))
            sys.stdout.flush()
            with decided.open("rb") as gone, answer.opened() as sink:
                keep_in_one(settings.form, new, settings.max_line, gone, sink)
        else:
            answer.write(sorted(leak.line(settings.form) for leak in leaks))
    if args.verbosity > QUIET:
        print("\n".join(summary(leaks, args.test, counts)), file=sys.stderr)
    if leaks and args.kind != "clean":
        sys.exit(FOUND)


def check_kind(name: "str | None", kind: str) -> None:
    """Raise UsageError if the extension of -o implies a format other than that of the input."""
    if kind_by_name(name or "") not in (None, kind):
        raise UsageError(
            f"-o {name}: records are written as {kind}, as in TRAIN; leave out this extension"
        )


def run_options(args: argparse.Namespace) -> Options:
    """Return the options for `neardup run`, with the defaults of `leaks`; UsageError if invalid."""
    if args.measure not in MEASURES:
        raise UsageError(f"--measure: {not_one_of(args.measure, MEASURES)}")
    if args.kind not in OUTPUTS:
        raise UsageError(f"--output: {not_one_of(args.kind, OUTPUTS)}")
    check_files([*args.test, *args.files])
    check_regular([*args.test, *args.files])
    options = Options.of(args)
    form = form_of(options)
    scheme = "prefix" if args.measure == "containment" else "exact"
    given: dict[str, str | bool] = {"--scheme": scheme, "--measure": args.measure}
    if options.shingle is None and form.shingle is not None:
        given["--shingle"] = DEFAULT_SHINGLE
    return replace(options.with_values(given), against=tuple(args.test), between=True)


def partners(pairs: Path) -> dict[bytes, set[bytes]]:
    """Read pair lines; return {id of a training record: ids of the test records leaked into it}."""
    found: dict[bytes, set[bytes]] = {}
    with pairs.open("rb") as lines:
        for line in lines:
            new, old, _, further = parse_pair(line)
            if not further.endswith(b"contained"):  # in the test record, as a quotation may be
                found.setdefault(new, set()).add(old)
    return found


def found_leaks(
    settings: Settings,
    args: argparse.Namespace,
    wanted: dict[bytes, set[bytes]],
    counts: Counter[str],
) -> Iterator[Leak]:
    """Yield the leaks among the pairs `wanted`; read the files again, and count their records.

    Test files come first.  Ids may be repeated, so each two records are verified once more.
    """
    tests: dict[bytes, list[FoundRecord]] = {}
    ids = set().union(*wanted.values())
    places = file_places(len(args.test), len(args.files))
    blocks = settings.blocks([*args.test, *args.files], places=places)
    for record in records(blocks, settings, lambda old: ids if old else wanted.keys(), counts):
        if record.place < NEW:
            tests.setdefault(record.id, []).append(record)
            continue
        for test in (test for id_ in sorted(wanted[record.id]) for test in tests.get(id_, ())):
            both = len(test.tokens & record.tokens)
            whole = len(test.tokens if settings.measure.directed else test.tokens | record.tokens)
            if Fraction(both, whole) >= Fraction(settings.threshold.num, settings.threshold.den):
                yield Leak(test, record, Fraction(both, whole))


def records(
    blocks: Iterable[Block],
    settings: Settings,
    ids: Callable[[bool], Collection[bytes]],
    counts: Counter[str],
) -> Iterator[FoundRecord]:
    """Yield the test and training records with wanted ids, and count all records.

    ids: returns the wanted ids of test records for True, and of training records for False; counts:
    by test file, and of all training files together.
    """
    for block in blocks:
        if block.flaw:
            continue
        batch, _ = settings.parse(block.data)
        name = re.sub(": [a-z]+ $", "", block.place)
        is_test = block.first < NEW
        counts[name if is_test else TRAINING] += len(batch.ids)
        wanted = ids(is_test)
        mine = [i for i, id_ in enumerate(with_row_ids(batch, block)) if id_ in wanted]
        texts = {n: (id_, text) for n, id_, text in settings.form.texts(block.data)} if mine else {}
        for i in mine:
            number = int(batch.places[i])
            id_ = texts[number][0] or row_id(block, number)
            tokens = frozenset(batch.sets.row(i).tolist())
            place = block.first + number
            yield FoundRecord(name, block.line + number, place, id_, tokens, texts[number][1])


def decisions(leaks: Sequence[Leak]) -> Iterator[bytes]:
    """Yield a decision line for each training record to remove, in the order of the input."""
    for place, leak in sorted({leak.train.place: leak for leak in leaks}.items()):
        similarity = fraction_text(leak.similarity)
        yield format_decided(b"%016x" % place, leak.train.id, leak.test.id, similarity)


def longest_passage(form: InputFormat, a: str, b: str) -> str:
    """Return the longest passage found in both texts, as words or characters; long ones are cut.

    >>> form = InputFormat.of("text", "word:2", None)
    >>> longest_passage(form, "To be or not to be", "It is not to be seen")
    'not to be'
    """
    shingler = form.shingle
    assert shingler
    units: Sequence[str] = shingling.canonical_words(form.clean(a))
    if shingler.unit == "char":
        units = shingling.canonical(form.clean(a))
    start, length = _longest_run(shingler(form.clean(a)).tolist(), shingler(form.clean(b)).tolist())
    passage = units[start : start + length + shingler.width - 1]
    if isinstance(passage, str):
        return escaped(passage.encode())
    more = " …" * (len(passage) > SHOWN_WORDS)
    return escaped(shingling.joined(passage[:SHOWN_WORDS]).encode(), limit=2000) + more


def _longest_run(a: list[int], b: list[int]) -> tuple[int, int]:
    """Return the start in `a` and the length of the longest common run that a short search finds.

    Only the first 16 places of each value in `a` are tried.
    """
    at: dict[int, list[int]] = {}
    for i, value in enumerate(a):
        if len(some := at.setdefault(value, [])) < PLACES:
            some.append(i)
    best, before = (0, 0), dict[int, int]()
    for value in b:
        now = {i: before.get(i - 1, 0) + 1 for i in at.get(value, ())}
        for i, length in now.items():
            if length > best[1]:
                best = i - length + 1, length
        before = now
    return best


def summary(leaks: Sequence[Leak], tests: Sequence[str], counts: Counter[str]) -> list[str]:
    """Return the summary: a line for each file of test records, and one for the training data."""
    lines = []
    for name in tests:
        leaked = len({leak.test.line for leak in leaks if leak.test.file == name})
        share = f" ({leaked / counts[name]:.2%})" if leaked else ""
        shown = escaped(os.fsencode(name), MOST_PLACE)
        lines.append(f"{shown}: {leaked:,} of {counts[name]:,} records leaked{share}")
    gone = f"{len({leak.train.place for leak in leaks}):,} of {counts[TRAINING]:,}"
    return [*lines, f"{gone} training records have a leak"]


def _command_line() -> argparse.Namespace:
    parser = table.parser(PROGRAM, DESCRIPTION, FLAGS, SHORT, TEXTS)
    about = "one or several files of test records; may be repeated"
    parser.add_argument(
        "--test", metavar="FILE", nargs="+", action="extend", required=True, help=about
    )
    about = "containment: share of the test record in the training record; jaccard: common / all"
    add_option(parser, "--measure", "NAME", MEASURES[0], about)
    add_option(parser, "--threshold", "T", DEFAULT_THRESHOLD, "the minimum similarity of a leak")
    about = "every sequence of K words or characters, such as word:13 or char:50; for shingles: bag"
    parser.add_argument(
        "--shingle", metavar="UNIT:K", help=f"{about} (default: {DEFAULT_SHINGLE} for texts)"
    )
    about = "leaks: a line for each leak; clean: the training data without records that have a leak"
    parser.add_argument(
        "--output",
        dest="kind",
        metavar="KIND",
        default=OUTPUTS[0],
        help=f"{about} (default: {OUTPUTS[0]})",
    )
    parser.add_argument("--jobs", metavar="N", help="number of processes (default: one per core)")
    parser.add_argument("-o", **LINES_OPTION)
    parser.add_argument("files", nargs="+", metavar="TRAIN", help="plain or compressed")
    parser.add_verbosity()
    args = parser.parse_intermixed_args()
    args.test = list(dict.fromkeys(args.test))
    return args
