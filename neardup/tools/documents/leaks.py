"""`leaks`: find test records that are in training data, and the longest passage in both.

test and training files ── `neardup run --exact --against TEST --between` ── pairs of ids
                        └─ read again: the sets and texts of these ids ── leaks, or clean files
                           and all training texts: short test texts in them"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from neardup.decisions.kept_lines import check_one_answer, keep_in_one
from neardup.engines.local import run
from neardup.engines.local.answer_file import check_outputs, file_answer
from neardup.engines.local.workers import working_folder
from neardup.lines import answer_lines
from neardup.lines.id_lines import shared_ids
from neardup.options import table
from neardup.options.command_parser import SHARED
from neardup.options.settings import Settings, form_of
from neardup.options.table import Options
from neardup.reading import shingling
from neardup.reading.blocks import NEW, Block, numbered
from neardup.reading.input_check import NO_SHINGLES, BadLine
from neardup.reading.input_files import Unchanged, check_files, check_regular, refuse_twice
from neardup.reading.input_format import InputFormat
from neardup.reading.table_rows import fields_table
from neardup.runtime import summary
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags, read
from neardup.runtime.program import StageError, UsageError, escaped, one_of, printable, to_add
from neardup.runtime.summary import (
    BAD,
    QUIET,
    SHARED_IDS,
    SINGLE,
    VERBOSE,
    bad_lines,
    judged,
    many,
    such_as,
)
from neardup.similarity.measures import fraction_text
from neardup.stages.pairs import parsed, reject
from neardup.tools.documents import common_passages
from neardup.tools.documents.common_passages import WholeTexts
from neardup.tools.documents.findings import OPTIONS, Check, Finding, key_of

PROGRAM = "python3 -m neardup leaks"
NAME = "neardup leaks"
MEASURES = ("containment", "jaccard")
DEFAULT_THRESHOLD, DEFAULT_SHINGLE = "0.7", "word:8"
FLAGS = (*table.READING, "--clean", "--max-line", "--max-bad", "--strict")
OUTPUTS, BY = ("leaks", "clean"), ("records", "passages")
LEAKS = fields_table(test=str, train=str, share=float, place=str, passage=str)
MAX_PLACE = 5000
FOUND, UNSEARCHED = 1, 3  # exit codes
ALLOW = "--allow-unsearched"
TRAINING = ""  # in counts, for the records of all training files
WORDLESS, NO_WORDS = "test records without words", "no words"
MAX_LISTED, SHOWN_TEXTS = 100, 3
DESCRIPTION = """Find which records of test sets are in training data.

A test record is leaked if one training record contains at least 70 % of its eight-word sequences,
or a short text as a whole.  Every such pair is found and verified.

    python3 -m neardup leaks train.jsonl --test test.jsonl > leaks.tsv
    python3 -m neardup leaks train.jsonl --test test.jsonl --output clean > clean.jsonl

A line has the ids of the test record and of the training record, the share of the test record
that is in the training record, FILE:LINE of the training record, and the longest passage that both
have.  With --output leaks, the exit code is 1 if there is a leak; it is 3 if there may be one in
what could not be read.
"""
TEXTS = {"--input": table.OF_READERS["--input"]}
OWN = flags(
    f"""
    --test FILE     one or several files of test records; may be repeated
                    -h: test records; may be repeated
    --measure NAME  containment: share of the test record in the training record; jaccard: common /
                    all [{MEASURES[0]}]
    --threshold T   the minimum similarity of a leak [{DEFAULT_THRESHOLD}]  -h: the share of a test
                    record that is in a training record (default: {DEFAULT_THRESHOLD})
    --shingle UNIT:K  every sequence of K words or characters, such as word:13 or char:50; for
                    shingles: bag (default: {DEFAULT_SHINGLE} for texts)
                    -h: length of the sequences: word:8, word:13, char:20 … (default: word:8)
    --output KIND   leaks: a line for each leak; clean: the training data without records that have
                    a leak [{OUTPUTS[0]}]  -h: leaks, or clean: the training data without leaked
                    records (default: leaks)
    --by WHAT       records; passages: the place of a leak ends in the characters of the passage in
                    the training text, as in train.jsonl:1:120-170 [{BY[0]}]
    {ALLOW}  exit with 0 even if test records could not be looked for, or training lines not read
    files TRAIN…    plain or compressed
    """,
    test={"nargs": "+", "action": "extend", "required": True},
    measure=one_of(*MEASURES),
    output={"dest": "kind"},
    by=one_of(*BY),
)


class FoundRecord(NamedTuple):
    """A test or training record that may be part of a leak."""

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
    whole: bool = False  # if the test text was found as a whole
    listed: bool = True

    def line(self, form: InputFormat, by: str = BY[0]) -> bytes:
        """Return the output line of a leak, with a passage or the number of common shingles.

        by: see `--by`
        """
        both = len(self.test.tokens & self.train.tokens)
        passage = many(both, "shingles")
        if self.whole:
            passage = common_passages.shown_words(
                shingling.canonical_words(form.clean(self.test.text))
            )
        elif form.shingle is not None and form.shingle.unit != "spot":
            passage = common_passages.longest_passage(form, self.test.text, self.train.text)
        place = f"{self.train.file}:{self.train.line}".encode("utf-8", "surrogateescape")
        span = None
        if by != BY[0] and self.whole:
            span = WholeTexts().span(form.clean(self.test.text), self.train.text, form.clean)
        elif by != BY[0]:
            span = common_passages.span_of_passage(form, self.test.text, self.train.text)
        place += b":%d-%d" % span if span else b""
        where, share = escaped(place, limit=MAX_PLACE).encode(), fraction_text(self.similarity)
        fields = self.test.id, self.train.id, share, where, passage.encode()
        return b"\t".join(fields) + b"\n"

    def finding(self, form: InputFormat, by: str) -> Finding:
        """Return the leak for a report: the training record is the one to remove."""
        both = self.train, self.test
        texts = (each.text.strip() or sorted(each.tokens) for each in both)
        key = key_of(*(ascii(text).encode() for text in texts))
        places = [(os.fsencode(each.file), each.line) for each in both]
        train, test = (escaped(each.id, MAX_PLACE) for each in both)
        message = f"{train} has {fraction_text(self.similarity).decode()} of the test record {test}"
        return Finding(self.line(form, by), key, (self.test.id, self.train.id), places, message)


def main() -> None:
    args = _command_line()
    options = run_options(args)
    settings = Settings.of(options)
    new = numbered(args.files)
    given = [*args.test, *args.files]
    unchanged = Unchanged(given)
    check = Check(args, "leaks", "leaked-test-record", "A test record leaked.", "leaks")
    search = LeakSearch(settings, args.test, args.files, args.verbosity)
    search.marks = args.by != BY[0]
    search.listed = sys.maxsize if check.asked else MAX_LISTED
    with (
        working_folder() as folder,
        file_answer("-o", args.answer, given, LEAKS) as answer,
        file_answer("--removed", args.removed, given, answer_lines.REMOVED) as removed,
    ):
        refuse_twice(args.test, args.files, lists_removed=bool(args.removed), flag="--test")
        if args.kind == "clean":
            check_one_answer(settings.form, new, answer.descriptor, answer=args.answer)
        search.read_tests()
        search.ids = array("q") if args.removed else None
        pairs, decided = folder / "pairs", folder / "decided"
        said = "-v" if args.verbosity >= VERBOSE else "-q"
        summary.RENAMED.update({summary.OLD_RECORDS: "… test records", SINGLE: ""})
        words = [*options.given_arguments(), f"-o{pairs}", said]
        words += [] if args.jobs is None else [f"--jobs={args.jobs}"]
        run.main(NAME, PROGRAM, [*words, "--", *args.files])
        with decided.open("wb") as gone:
            leaks = list(search.leaks(partners(pairs), gone))
            found = [leak.finding(settings.form, args.by) for leak in leaks] if check.asked else []
            listed = [] if args.kind == "clean" else leaks
            lines = sorted(leak.line(settings.form, args.by) for leak in listed)
        unchanged.check()
        code = FOUND if lines else 0
        if args.kind == "clean":
            if args.removed:
                with decided.open("rb") as gone:
                    removed.write(map(answer_lines.removed_line, gone))
                with decided.open("rb") as gone:
                    search.count_shared_ids([answer_lines.parse_decided(line)[1] for line in gone])
            sys.stdout.flush()
            with decided.open("rb") as gone, answer.opened() as sink:
                keep_in_one(settings.form, new, settings.max_line, gone, sink)
            unchanged.check()
        elif check.asked:
            code = check.finish(sorted(found), answer, given)
        else:
            answer.write(lines)
    if args.verbosity > QUIET:
        print("\n".join(search.summary()), file=sys.stderr)
    if code:
        sys.exit(code)
    if (missed := search.unsearched()) and not args.allow_unsearched:
        print(f"{NAME}: {missed}; to accept this, {to_add(ALLOW)}", file=sys.stderr)
        sys.exit(UNSEARCHED)


def run_options(args: argparse.Namespace) -> Options:
    """Return the options for `neardup run`, with the defaults of `leaks`; UsageError if invalid."""
    read("--output", one_of(*OUTPUTS), args.kind)
    check_outputs(args, args.kind, kept="clean")
    if any(map(os.path.isdir, (*args.test, *args.files))):
        against = [word for name in args.files for word in ("--against", name)]
        images = f"images {shlex.join([*args.test, *against])}"
        raise StageError(
            f"a folder cannot be read; for pictures, type: python3 -m neardup {images} --output "
            "leaks; for documents, make a file of each folder: python3 -m neardup documents "
            "--output lines FOLDER > FILE.jsonl"
        )
    check_files([*args.test, *args.files])
    check_regular([*args.test, *args.files])
    options = Options.of(args)
    form = form_of(options)
    if args.by != BY[0] and args.kind != OUTPUTS[0]:
        raise UsageError(f"--by passages needs --output {OUTPUTS[0]}, but --output is {args.kind}")
    of_words = form.shingle is not None and form.shingle.unit == "word"
    if args.by != BY[0] and (not of_words or "html" in form.clean.names):
        raise UsageError(
            "--by passages marks words of texts: it needs --shingle word:K, and no --clean html, "
            "since a word may have a tag inside"
        )
    scheme = "prefix" if args.measure == "containment" else "exact"
    given: dict[str, str | bool] = {"--scheme": scheme, "--measure": args.measure}
    if options.shingle is None and form.shingle is not None:
        given["--shingle"] = DEFAULT_SHINGLE
    return replace(options.with_values(given), against=tuple(args.test), between=True)


def partners(pairs: Path) -> dict[bytes, set[bytes]]:
    """Read pair lines; return {id of a training record: ids of the test records leaked into it}."""
    tests = defaultdict[bytes, set[bytes]](set)
    for train, test, _, further in answer_lines.parsed_lines([str(pairs)], answer_lines.parse_pair):
        if not further.endswith(b"contained"):  # in the test record, as a quotation may be
            tests[train].add(test)
    return tests


class LeakSearch:
    """The search for test records in training records, and what it counts.

    A test text shorter than two runs is looked for as a whole, too: it has few runs, and other
    punctuation at its ends changes most of them.
    """

    def __init__(
        self, settings: Settings, tests: Sequence[str], files: Sequence[str], verbosity: int
    ):
        self.settings, self.tests, self.files = settings, tests, files
        said = QUIET if verbosity >= VERBOSE else verbosity  # the run prints bad lines with -v
        self.counters = {name: Counters(NAME, "", "", said) for name in (*tests, TRAINING)}
        self.wordless = Counters(NAME, "", "", verbosity)
        self.leaked: dict[str, set[int]] = {name: set() for name in tests}  # lines
        self.removed = 0  # training records
        self.ids: array[int] | None = None  # hashes of those of training records, for --removed
        self.marks = False  # whether texts are as in their fields, for `--by passages`
        self.listed = MAX_LISTED  # the maximum number of listed records that contain a short text
        self.texts = WholeTexts() if settings.measure.directed and settings.form.shingle else None
        self.short: dict[int, list[FoundRecord]] = {}  # by the hash of the text
        # number of training records that contain a short text, by the text's hash
        self.times: Counter[int] = Counter()

    def read_tests(self) -> None:
        """Note all short test texts; UsageError for a file without a test record."""
        among, form = [*self.tests, *self.files], self.settings.form
        for name, counters in zip(self.tests, self.counters.values()):
            for block in self.settings.blocks([name], among=among):
                for record, _ in self._records(block, counters, None):
                    text = form.clean(record.text)
                    if not (self.texts and form.shingle and _is_short(form.shingle, text)):
                        continue
                    if (found := self.texts.add(text)) is None:
                        counters.add(WORDLESS, 1)
                        shown = record.text.encode("utf-8", "replace")
                        bad = BadLine(record.line - block.line, shown, NO_WORDS)
                        reject(block, bad, self.settings, self.wordless)
                    else:
                        self.short.setdefault(found, []).append(record)
            if not counters.counts.get("records") and not bad_lines(counters.counts):
                raise UsageError(f"--test {_escaped(name)}: no record in this file")
            try:
                judged(counters.counts, self.settings.max_bad)
            except StageError as error:
                raise StageError(f"--test {_escaped(name)}: {error}") from None

    def leaks(self, wanted: dict[bytes, set[bytes]], gone: IO[bytes]) -> Iterator[Leak]:
        """Yield the leaks to list; write a decision to `gone` for each training record with a leak.

        wanted: the pairs of ids to verify once more, since ids may be repeated.  Test files are
        read before training files.
        """
        tests: dict[bytes, list[FoundRecord]] = {}
        ids = set().union(*wanted.values())
        again, counters = Counters(NAME, "", "", QUIET), self.counters[TRAINING]
        for block in self.settings.read(numbered(self.files, self.tests)):
            if block.first < NEW:
                for record, _ in self._records(block, again, ids):
                    tests.setdefault(record.id, []).append(record)
                continue
            for record, whole in self._records(block, counters, wanted.keys()):
                partner_ids = sorted(wanted.get(record.id, ()))
                partners = [test for id_ in partner_ids for test in tests.get(id_, ())]
                yield from self._counted(list(self._leaks_of(record, partners, whole)), gone)
        if not counters.counts.get("records"):
            first, *others = map(printable, self.files)
            more = f" and {len(others):,} other files" * bool(others)
            raise UsageError(f"{first}{more}: no record; name files of training records")

    def _records(
        self, block: Block, counters: Counters, ids: Collection[bytes] | None
    ) -> Iterator[tuple[FoundRecord, set[int]]]:
        """Count the records of a block; yield those with wanted ids or a short test text in them.

        ids: None for all records, if short texts are looked for
        """
        rows = {}
        for batch in parsed([block], self.settings, counters, left_ids=self._hash):
            self._hash([] if block.first < NEW else batch.ids)
            named = zip(batch.places.tolist(), batch.ids)
            rows = {p: batch.sets.row(i) for i, (p, id_) in enumerate(named) if id_ in (ids or ())}
        form, texts = self.settings.form, []
        if not block.flaw and (rows or self.texts):
            texts = list(form.texts(block.data, as_they_are=self.marks))
        whole = {}
        if self.texts and ids is not None and block.first >= NEW:
            whole = self.texts.within([form.clean(record.content) for record in texts])
        for i, (number, id_, text, *_) in enumerate(texts):
            place = block.first + number
            if place in rows or i in whole or ids is None:
                name = re.sub(": [a-z]+ $", "", block.place)
                tokens = frozenset(rows[place].tolist() if place in rows else ())
                given = id_ or block.row_id(number)
                record = FoundRecord(name, block.line + number, place, given, tokens, text)
                yield record, whole.get(i, set())

    def _leaks_of(
        self, train: FoundRecord, tests: Iterable[FoundRecord], whole: Iterable[int]
    ) -> Iterator[Leak]:
        """Yield the leaks of a training record; of a short text that is in many, only the first."""
        t, seen = self.settings.threshold, set()
        for test in tests:
            both = len(test.tokens & train.tokens)
            all_ = test.tokens if self.settings.measure.directed else test.tokens | train.tokens
            if (share := Fraction(both, len(all_))) >= Fraction(t.num, t.den):
                seen.add((test.file, test.line))
                yield Leak(test, train, share)
        for text in whole:
            self.times[text] += 1
            listed = self.times[text] <= self.listed
            for test in self.short[text] if listed else self.short[text][:1]:
                if (test.file, test.line) not in seen:
                    yield Leak(test, train, Fraction(1), whole=True, listed=listed)

    def _counted(self, leaks: Sequence[Leak], gone: IO[bytes]) -> Iterator[Leak]:
        for leak in leaks:
            self.leaked[leak.test.file].add(leak.test.line)
        for test, train, similarity, *_ in leaks[:1]:
            self.removed += 1
            decided = b"%016x" % train.place, train.id, test.id, fraction_text(similarity)
            gone.write(answer_lines.format_decided(*decided))
        return (leak for leak in leaks if leak.listed)

    def _hash(self, ids: Iterable[bytes]) -> None:
        if self.ids is not None:
            self.ids.extend(map(hash, ids))

    def count_shared_ids(self, removed: Sequence[bytes]) -> None:
        """Count the removed ids that kept training records have, too."""
        hashes = np.fromiter(map(hash, removed), np.int64)
        shared = set(shared_ids(hashes, [np.array(self.ids, np.int64)]).tolist())
        both = [id_ for id_ in removed if hash(id_) in shared]
        counters = self.counters[TRAINING]
        counters.shared_ids(len(both), sorted(set(both))[: counters.EXAMPLES])

    def missed(self, name: str) -> dict[str, int]:
        """Return {reason: number} of test records, or training lines, that were not compared."""
        counts = self.counters[name].counts
        reasons = {key[len(BAD) :]: n for key, n in counts.items() if key.startswith(BAD)}
        empty = reasons.pop(NO_SHINGLES, 0) + self._empty(name)
        return {**reasons, **({NO_WORDS: empty} if empty and name != TRAINING else {})}

    def _empty(self, name: str) -> int:
        """Return the number of test records without words, or of records without shingles."""
        what = WORDLESS if self.texts else "records without shingles"
        return self.counters[name].counts.get(what, 0)

    def unsearched(self) -> str:
        """Return how much was not compared, as a clause, or ""."""
        tests = sum(sum(self.missed(name).values()) for name in self.tests)
        lines = sum(self.missed(TRAINING).values())
        told = [f"{many(tests, 'test records')} could not be looked for"] * bool(tests)
        return " and ".join(told + [f"{many(lines, 'training lines')} not read"] * bool(lines))

    def summary(self) -> list[str]:
        """Return a line for each test file, one for the training data, and one for common texts."""
        lines = []
        for name in (*self.tests, TRAINING):
            counts = self.counters[name].counts
            records = counts.get("records", 0) - self._empty(name) * (name != TRAINING)
            leaked = len(self.leaked.get(name, ()))
            share = f" ({leaked / records:.2%})" if leaked else ""
            line = f"{_escaped(name)}: {leaked:,} of {records:,} records leaked{share}"
            if name == TRAINING:
                line = f"{self.removed:,} of {records:,} training records have a leak"
            reasons = [f"{n:,} {reason}" for reason, n in sorted(self.missed(name).items())]
            verb = "not read" if name == TRAINING else "not looked for"
            more = f"; {sum(self.missed(name).values()):,} {verb}: {', '.join(reasons)}"
            lines.append(line + more * bool(reasons))
            if not self.texts and name != TRAINING and (single := counts.get(SINGLE)):
                lines[-1] += f"; of {single:,} that are one sequence, only equal texts were found"
        if SHARED_IDS in (counts := self.counters[TRAINING].counts):
            lines.append(f"{many(counts[SHARED_IDS], SHARED_IDS)}  ({such_as(counts, 'clean')})")
        often = [text for text, times in self.times.most_common() if times > self.listed]
        for text in often[:SHOWN_TEXTS]:
            which = f"'{escaped(self.short[text][0].text.encode())}' is in {self.times[text]:,}"
            lines.append(f"{which} training records; {self.listed} of them are listed")
        return lines


def _escaped(name: str) -> str:
    return escaped(os.fsencode(name), MAX_PLACE)


def _is_short(shingler: shingling.Shingler, text: str) -> bool:
    """Return whether a text has fewer words or characters than two runs, or has no spot."""
    if shingler.unit == "spot":
        return not len(shingler(text))
    units = shingling.canonical if shingler.unit == "char" else shingling.canonical_words
    return len(units(text)) < 2 * shingler.width


def _command_line() -> argparse.Namespace:
    parser = table.parser(PROGRAM, DESCRIPTION, FLAGS, OWN, TEXTS)
    about = "also write each removed training record and its test record to FILE"
    removed = SHARED["--removed"]._replace(help=f"with --output clean: {about}", short=True)
    parser.add_shared("--jobs -o --removed", removed)
    parser.add(*OPTIONS)
    args = parser.parse_intermixed_args()
    args.test = list(dict.fromkeys(args.test))
    return args
