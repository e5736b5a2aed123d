"""`documents`: find similar text files in folders and archives; each file is a document.

folders ── files ── texts ── JSON lines, the path as id ── `neardup run`
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable

import numpy as np

from neardup.engines.local import answer_file, run
from neardup.engines.local.answer_file import Answer, file_answer
from neardup.engines.local.workers import Progress, working_folder
from neardup.lines.answer_lines import REMOVED
from neardup.options import table
from neardup.options.command_parser import SHARED, plain_names
from neardup.options.settings import Settings, settings_before_counts
from neardup.reading import folder_walk, mails
from neardup.reading.archives import archive_of
from neardup.reading.cache import ResultCache, Store, opened_cache
from neardup.reading.cleaning import beside_text
from neardup.reading.decoders import Failure
from neardup.reading.fingerprint_lines import FINGERPRINTS
from neardup.reading.folder_walk import Walk, in_package, path_id, path_of
from neardup.reading.shingling import Shingler, canonical
from neardup.reading.table_rows import LineTable, fields_table, json_row
from neardup.reading.tally import BODY_ALONE, FEW_WORDS, NO_PART, TEXT_ALONE, Rules, Tally
from neardup.reading.text_rows import DEFAULT_ID, DEFAULT_TEXT, REPEATS
from neardup.runtime import VERSION, summary
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError, not_one_of, one_of, write_to
from neardup.runtime.summary import MAX_BAD, QUIET, VERBOSE, in_words, many
from neardup.tools.documents import document_files, findings, units
from neardup.tools.documents.document_files import TOO_LONG, Document, NoDocument, is_archive
from neardup.tools.documents.findings import Check, Finding
from neardup.tools.documents.units import Unit
from neardup.verification import OF_FILES, OUTPUTS

PROGRAM = "python3 -m neardup documents"
NAME = "neardup documents"
LINES = "lines"
OTHERS = "--fingerprint --bits --input-files --counts --own-counts --output --mark-prefix --merge"
FIXED = {*OTHERS.split(), *table.READING} - {"--encoding"}
FLAGS = [flag for flag in table.OPTIONS if flag not in FIXED]
FIELDS = (DEFAULT_ID, "bytes", "date", DEFAULT_TEXT)
COLUMNS = dict(zip(FIELDS, (str, int, str, str)))
TABLES = {"kept": fields_table(id=str), LINES: LineTable(COLUMNS, json.loads, json_row)}
OF_UNITS = LineTable({**COLUMNS, units.DOCUMENT: str}, json.loads, json_row)
READ_TEXTS = Store("documents", "", 0x6E647064, 4 << 30)  # "ndpd"
STRICT, DETECT = "strict", "detect"  # values of --encoding
TEXTS = {
    "--scheme": table.help_without("--scheme", f", {FINGERPRINTS}"),
    "--measure": table.help_without("--measure", f"; hamming for {FINGERPRINTS}"),
    "--encoding": "encoding of files without a byte order mark, such as latin-1 or gb18030; "
    f"{STRICT}: files that are not UTF-8 cannot be read; {DETECT}: charset-normalizer finds theirs "
    "(default: they are read as Windows-1252)",
    "--distance": "with --scheme simhash: the maximum number of bits in which a pair may differ; "
    "above 15, set --max-bands to at least K + 1 (default: 3)",
    "--weights": table.help_without("--weights", "; own: read from the line, SHINGLE:WEIGHT"),
    "--shingle": table.help_without("--shingle", ".  With --input shingles: bag, if repeats count"),
    "--max-line": f"larger documents are not read; in mebibytes, 1 to {table.MAX_LINE_MIB} "
    f"(default: {table.DEFAULT_MAX_LINE})",
    "--max-bad": "the maximum share of documents that cannot be read, 0 to 1, such as 0.25 or 1/4; "
    f"with more, the exit code is 1; 0 means --strict (default: {in_words(MAX_BAD)})",
    "--strict": "stop at the first document that cannot be read",
    "--within": "find only pairs of documents with the same part of the path: "
    f"{folder_walk.PART_HELP}",
    "--across": "find only pairs of documents with different parts, as with --within",
}
NUL_HELP = (
    "with --output kept or removed: the answer is unescaped paths of files, each followed by a NUL "
    "byte, for xargs -0.  A removed document with attachments, pictures, links or repeats that the "
    "kept one lacks, or a mail with another sender, date or subject, is printed with kept, not "
    "with removed.  Of archives, kept prints those with members to keep, and removed prints none"
)
GUESSES: dict[str, document_files.Guess | None] = {STRICT: None, DETECT: document_files.detected}
NONE: mails.Hashes = frozenset()
REMOVALS = [OUTPUTS[name] for name in answer_file.PATHS]
SHORT_TEXT, SHORT_PAGE = 200, 2000  # characters, without and with --clean; longer ones have words
SHORT = {0: "without a word", 1: "of one shingle at most, found only if equal"}
RUN = Shingler.parse("word:3")
LAST_SECOND = 253402300799  # of the year 9999
DESCRIPTION = """Find similar text files: plain text, HTML, source code.

All files below each FOLDER are read, the members of archives (.zip, .tar, .tar.gz …), mails (mbox,
Maildir, .eml), and PDF, Word, OpenDocument and EPUB files.  Hidden, binary and empty files are
skipped, and symbolic links are not followed.

    python3 -m neardup documents docs > pairs.tsv
    python3 -m neardup documents --include '*.html' --clean html --threshold 0.8 site
    python3 -m neardup documents --output removed -0 docs | xargs -0 rm --

A line has two paths and their similarity.  Blanks, % and bytes that are not UTF-8 are written as
%XX.  Members of archives are written ARCHIVE!MEMBER, which is never the path of a file.  For
`tune`, an index or a cluster, write the documents as JSON lines:

    python3 -m neardup documents --output lines docs > docs.jsonl
"""


def main() -> None:
    args = _command_line()
    options, guess = with_guess(table.Options.of(args))
    parts = options.within, options.across
    within, across = map(
        folder_walk.part_of_path, ("--within", "--across"), parts, [args.files] * 2
    )
    if options.against and "root" in parts:
        raise UsageError("--against: old documents have no root; type folder or path:REGEX instead")
    options = replace(options, within=within, across=across)
    options = units.options_of_units(args, options, LINES)
    checked = replace(options, input="jsonl", output="pairs" if args.lines else args.output)
    settings = settings_before_counts(checked)
    for field in settings.form.fields.ranked if settings.form.fields else ():
        if field not in FIELDS:  # which no document has
            raise UsageError(f"--keep: {not_one_of(field, FIELDS)}")
    answer_file.check_outputs(args, args.output)
    noun, command = args.unit or "document", "documents" + f" --unit {args.unit}" * bool(args.unit)
    check = Check(args, command, f"near-duplicate-{noun}", f"Two {noun}s are similar.")
    if check.asked and options.against:
        raise UsageError("--against has no findings; leave it out, and name the old folder, too")
    if args.lines and args.report:
        raise UsageError(f"--report cannot be used with --output {LINES}; leave --report out")
    if args.lines and settings.form.values:
        flag = settings.form.values.flag
        raise UsageError(f"{flag} cannot be used with --output {LINES}; leave {flag} out")
    if not args.lines:
        asked = run.command_line(NAME, PROGRAM, [*_words(args, options), "-"])
        run.check_outputs(asked, checked, settings.form)
    table_of_lines = OF_UNITS if args.lines and args.unit else TABLES.get(args.output)
    columns = table_of_lines or answer_file.table_of(checked, settings)
    with working_folder() as folder, ExitStack() as stack:
        files = DocumentFiles(NAME, args, settings)
        walk, tally = files.walk, files.tally
        where = "-o", args.answer, args.against or [], columns
        answer = stack.enter_context(file_answer(*where, null=args.null))
        args.no_cache = args.cache is None  # without --cache, one that caches nothing
        reader = version("pypdf") if find_spec("pypdf") else ""
        made_by = repr((VERSION, reader, settings.max_line, args.encoding))
        cache = stack.enter_context(closing(opened_cache(args, READ_TEXTS, made_by)))
        lines = folder / "documents"
        unread: dict[str, mails.Hashes] | None = None if args.lines else {}
        cut = partial(units.units_of, args, tally) if args.unit else None
        files.write(lines, guess, args.headers or (), unread, cut, cache)
        id_of = partial(_id_of, field=units.DOCUMENT) if args.unit else _id_of
        old = run.others(options.against, walk, id_of, folder, args.output in answer_file.PATHS)
        options = replace(options, against=tuple(old))
        pairs = stack.enter_context((folder / "pairs").open("w+b"))
        target = Answer(descriptor=pairs.fileno()) if check.asked else answer
        if lines.stat().st_size:
            find(lines, args, options, walk, target, unread or {})
        tally.report(cache.note)
        if not lines.stat().st_size:
            raise StageError(
                f"found no {noun} to compare; --min-words 1 compares short ones, too, and -v names "
                "what is left out"
            )
        pairs.seek(0)
        found = list(findings_of(pairs, lines, bool(args.unit))) if check.asked else []
        code = check.finish(found, answer, []) if check.asked else 0
    check_failures(tally, settings)
    if code:
        sys.exit(code)


def with_guess(options: table.Options) -> tuple[table.Options, document_files.Guess | None]:
    """Return the options without the values of --encoding that are guesses, and the guess."""
    guess = GUESSES.get(options.encoding or "", document_files.windows_1252)
    if options.encoding in GUESSES:
        options = replace(options, encoding=None)
        if guess and not find_spec("charset_normalizer"):
            raise UsageError(f"--encoding {DETECT} needs a package: pip install charset-normalizer")
    return options, guess


def findings_of(pairs: Iterable[bytes], lines: Path, of_units: bool) -> Iterator[Finding]:
    """Yield a finding for each pair of documents, or of units; `lines`: the lines of all."""
    ids = [(line, *line.strip().split(b"\t")[:3]) for line in pairs]
    wanted, keys = {id_ for _, a, b, _ in ids for id_ in (a, b)}, dict[bytes, bytes]()
    with lines.open("rb") as source:
        for line in source:
            if (id_ := _id_of(line).encode()) in wanted:
                keys[id_] = findings.key_of(json.loads(line)[DEFAULT_TEXT].encode())
    for line, a, b, share in ids:
        message = f"{b.decode()} is similar to {a.decode()} (similarity {share.decode()})"
        ids_ = (id_.decode() for id_ in (b, a))
        places = [units.first_line(id_) if of_units else (path_of(id_), 1) for id_ in ids_]
        key = findings.key_of(*sorted((keys[a], keys[b])))
        yield Finding(line, key, (a, b), places, message)


def find(
    lines: Path,
    args: argparse.Namespace,
    options: table.Options,
    walk: Walk,
    answer: Answer,
    unread: Mapping[str, mails.Hashes],
) -> None:
    """Write the answer for `lines`, a file of JSON lines whose ids are the paths of documents.

    unread: hashes of their attachments, pictures and links; with -0, documents with some that the
    kept one lacks are not removed, but kept.
    """
    if args.lines:
        with lines.open("rb") as source:
            answer.write(source)
        return
    paths, kept = args.output == "kept" or args.null, args.output == "kept"
    if not args.unit:
        summary.RENAMED[summary.REPEATING] = ""  # these are named with FEW_WORDS
    loud = {QUIET: ["-q"], VERBOSE: ["-v"]}.get(args.verbosity, ["-q"] if paths else [])
    words, found = [*_words(args, options), *loud], AnswerLines(walk, kept, args.null, unread)
    more: Iterable[bytes] = ()
    with ExitStack() as stack:
        sink, removed = None, lines.with_name("removed")
        if kept and (unread or options.against):
            if args.removed:
                opened = file_answer("--removed", args.removed, [], REMOVED)
                sink = stack.enter_context(opened)
            words = [word for word in words if not word.startswith("--removed=")]
            words, more = [*words, f"--removed={removed}"], found.kept_too(removed)
        how = lines, answer, args.files, found.of_line
        count = run.answer_for(NAME, PROGRAM, words, *how, more=more)
        if sink:
            with removed.open("rb") as source:
                sink.write(source)
    if paths and args.verbosity > QUIET:
        print(f"{many(count, 'documents')} {args.output}{found.notes()}", file=sys.stderr)


class AnswerLines:
    """Turns lines of a run into those of the answer, and counts what -0 prints otherwise."""

    def __init__(self, walk: Walk, kept: bool, null: bool, unread: Mapping[str, mails.Hashes]):
        self.walk, self.kept, self.null, self.unread = walk, kept, null, unread
        self.members = self.partly = 0
        self.archives: set[bytes] = set()

    def of_line(self, line: bytes) -> bytes:
        line = f"{_id_of(line)}\n".encode() if self.kept else line
        if not self.null:
            return line
        path = path_of(line.split()[0].decode())
        if self.walk.knows(path):
            return b"" if not self.kept and self._lacks(line) else line
        self.members += 1
        return self._in_archive(path)

    def kept_too(self, removed: Path) -> Iterator[bytes]:
        """Yield removed documents with attachments … or repeats that the kept one lacks."""
        with removed.open("rb") as source:
            for line in filter(self._lacks, source):
                path = path_of(line.split()[0].decode())
                if self.null:
                    yield line if self.walk.knows(path) else self._in_archive(path)

    def _lacks(self, line: bytes) -> bool:
        """Count a line, of a removed id and the kept one, if the kept document has less.

        A file of a program or a library is not removed, nor is another one for its sake.
        """
        gone, by = line.decode().split()[:2]
        less = not self.unread.get(gone, NONE) <= self.unread.get(by, NONE) or in_package(by)
        self.partly += less
        return less

    def _in_archive(self, path: bytes) -> bytes:
        """Return the line for a document in an archive: the archive, at its first kept member."""
        archive = archive_of(path)
        if not self.kept or archive in self.archives:
            return b""
        self.archives.add(archive)
        return path_id(archive).encode() + b"\n"

    def notes(self) -> str:
        said = ""
        if self.members:
            said += f"; {self.members:,} of them in archives: -0 prints "
            said += f"{many(len(self.archives), 'archives')} instead" if self.kept else "only files"
        if self.partly:
            said += f"; {self.partly:,} {'removed' if self.kept else 'of them'} with attachments, "
            said += "pictures, links, repeats or headers that the kept one lacks, or in packages: "
            said += "-0 prints them, too" if self.kept else "-0 leaves them out"
        return said


def _words(args: argparse.Namespace, options: table.Options) -> list[str]:
    """Return the options of a run that finds the pairs among the documents' lines."""
    # The lines are UTF-8.
    words = ["--input=jsonl", *replace(options, encoding=None).given_arguments()]
    given = {"--sort-memory": args.sort_memory, "--jobs": args.jobs}
    given |= {"--removed": args.removed, "--report": args.report}
    return words + [f"{flag}={value}" for flag, value in given.items() if value is not None]


def _id_of(line: bytes, field: str = DEFAULT_ID) -> str:
    """Return the id in a JSON line, or "" if there is none."""
    with suppress(ValueError, RecursionError):  # a bad line, which the run reports
        row = json.loads(line)
        return str(row.get(field, "")) if isinstance(row, dict) else ""
    return ""


class DocumentFiles:
    """The files in folders, those of a Maildir that were moved in the meantime, too; and counts."""

    def __init__(self, name: str, args: argparse.Namespace, settings: Settings):
        """Find `args.files`; StageError for an output file among them, or if one is closed."""
        self._settings, self._loud = settings, args.verbosity
        self._progress = Progress(name, ["documents"], 1)
        rules = Rules(name, "document", settings.strict, args.verbosity)
        self.tally = Tally(rules, self._progress.clear)
        patterns, skip = folder_walk.Patterns.of(args.include, args.exclude), self.tally.leave_out
        self.walk = walk = Walk(patterns, is_archive, shows=mails.is_maildir, skip=skip)
        self._files = list(walk.files(args.files))
        for path in filter(patterns.allow, mails.missed(file.path for file in self._files)):
            with suppress(StageError):  # it was removed since then
                self._files += walk.files([os.fsdecode(path)] * (not walk.knows(path)))
        for flag, dest in answer_file.OUTPUT_FILES.items():
            walk.check_new(flag, getattr(args, dest, None))
        self.tally.fail_folders(walk.closed)

    def write(self, path: Path, *how: Any, of: Callable[[bytes], bytes] = bytes) -> None:
        """Write a JSON line for each document to a file; how: as in `lines`; of: changes a line."""
        with self._progress.shown(self._loud), path.open("wb") as sink:
            self._progress.stage("documents", len(self._files))
            write_to(sink, map(of, self.lines(*how)))

    def lines(
        self,
        guess: document_files.Guess | None,
        headers: Sequence[str] = (),
        unread: dict[str, mails.Hashes] | None = None,
        cut: Callable[[Document], Iterable[Unit]] | None = None,
        cache: ResultCache | None = None,
    ) -> Iterator[bytes]:
        """Yield a JSON line for each document; count all outcomes.

        cut: returns the units of a document, each of which gets a line, instead of the document.
        unread: gets the hashes of what else is in a document; None if documents are not compared,
        so that short ones are not named.
        """
        settings, tally, allow = self._settings, self.tally, self.walk.patterns.allow
        mail_text = mails.MailText(headers, "html" in settings.form.clean.names)
        how = settings.max_line, allow, settings.form.dialect, guess, mail_text, cache
        for file in self._progress.counted(0, self._files, lambda _: 1):
            state = file.size, file.mtime_ns
            for outcome in document_files.documents(file.path, state, *how):
                tally.files += 1
                line = json_line(outcome) if isinstance(outcome, Document) else b""
                if len(line) > settings.max_line and not cut:
                    outcome = NoDocument(outcome.path, TOO_LONG, "as a JSON line")
                if isinstance(outcome, Document):
                    yield from self._of_document(outcome, line, headers, unread, cut)
                elif outcome.skipped:
                    tally.leave_out(outcome.reason, outcome.path)
                else:
                    tally.fail(path_id(outcome.path), Failure(outcome.reason, outcome.detail))

    def _of_document(
        self,
        document: Document,
        line: bytes,
        headers: Sequence[str],
        unread: dict[str, mails.Hashes] | None,
        cut: Callable[[Document], Iterable[Unit]] | None,
    ) -> Iterator[bytes]:
        """Count a document; yield its line, or those of its units."""
        settings, tally, id_ = self._settings, self.tally, path_id(document.path)
        if settings.output in REMOVALS and not (document.sent or document.unread):
            document = document._replace(unread=of_page(document.text, settings))
        tally.results += 1
        tally.cached += document.cached
        if document.encoding:
            tally.guess(document.encoding, document.path)
        if document.unread:
            tally.leave_out(TEXT_ALONE, document.path)
        if unread is not None:
            order = frozenset() if cut else order_of_repeats(document.text, settings)
            if order:
                tally.leave_out(FEW_WORDS, document.path)
            alone = frozenset([id_.encode()] * in_package(id_))  # which no other one has
            if more := document.unread | document.sent | order | alone:
                unread[id_] = more
        if document.sent and not headers and settings.output in REMOVALS:
            tally.leave_out(BODY_ALONE, document.path)
        values = settings.form.values
        if unread is not None and values and values.of_ids([id_.encode()]) == [None]:
            tally.leave_out(NO_PART, document.path)
        elif cut:
            for unit in cut(document):
                of_unit = json_line(document._replace(text=unit.text), unit.place)
                if len(of_unit) <= settings.max_line:
                    yield of_unit
                else:
                    tally.fail(id_ + unit.place, Failure(TOO_LONG, "as a JSON line"))
        elif unread is not None and (too_short := shortness(document.text, settings)):
            tally.leave_out(too_short, document.path)
        if not cut:
            yield line


def shortness(text: str, settings: Settings) -> str:
    """Return why a short text is compared with equal ones at most, or ""; long texts are not."""
    form, longest = settings.form, SHORT_PAGE if str(settings.form.clean) else SHORT_TEXT
    if not form.shingle or form.shingle.unit == "spot" or len(text) > longest:
        return ""
    return SHORT.get(len(form.shingle(form.clean(text))), "")


def of_page(text: str, settings: Settings) -> mails.Hashes:
    """Return hashes of the links, pictures and formulas of a page, with --clean html."""
    if "html" not in settings.form.clean.names or "<" not in text:
        return NONE
    found = (each.encode() for each in beside_text(text))
    return frozenset(blake2b(each, digest_size=8).digest() for each in found)


def order_of_repeats(text: str, settings: Settings) -> mails.Hashes:
    """Return a hash of all words in order, if the set of its runs of words says little of a text.

    That is, if most of these runs occur several times, as in a grid of 0 and 1.
    """
    words = text.split()
    if len(set(words)) * REPEATS > len(words):  # there are at least as many runs, but for two
        return NONE
    text = settings.form.clean(text)
    runs = RUN(text)
    if len(np.unique(runs)) * REPEATS > len(runs):
        return NONE
    return frozenset([blake2b(canonical(text).encode(), digest_size=8).digest()])


def json_line(document: Document, place: str = "") -> bytes:
    r"""Return a document as a JSON line, with the size and date of its file, which --keep may use.

    >>> json_line(Document(b"a b", "to\nbe", 5, 86400.5))
    b'{"id":"a%20b","bytes":5,"date":"1970-01-02T00:00:00Z","text":"to\\nbe"}\n'
    """
    seconds = min(max(document.changed, 0), LAST_SECOND)
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    id_ = path_id(document.path)
    row = dict(zip(FIELDS, (id_ + place, document.bytes, date, document.text)))
    row.update({units.DOCUMENT: id_} if place else {})
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def header_names(text: str) -> list[str]:
    """Return the names in a list with commas; ValueError if one cannot be the name of a header."""
    if not re.fullmatch("[!-9;-~]+", text):
        raise ValueError(f"{text!r} is no list of headers; type names such as subject,from")
    return text.split(",")


def check_failures(tally: Tally, settings: Settings) -> None:
    """Raise StageError if the share of documents that could not be read is above --max-bad."""
    every = tally.failed + tally.results
    if tally.failed > settings.max_bad * every:
        raise StageError(
            f"{tally.failed:,} of {every:,} documents could not be read; --max-bad "
            f"{in_words(settings.max_bad)} allows fewer; --max-bad 1 allows any number"
        )


def _command_line() -> argparse.Namespace:
    kinds = (*OF_FILES, LINES)
    own = flags(
        f"""
        files FOLDER…   a folder (read with its subfolders), a file or an archive
        --output KIND   {", ".join(kinds)}: as with `neardup run`; kept: the paths of the kept
                        documents; {LINES}: the documents as JSON lines, for other commands [pairs]
                        -h: pairs, links, kept, removed or clusters (default: pairs)
        --cache FILE    keep the texts of PDF, Word, OpenDocument and EPUB files in FILE, so that
                        each is read once, also if the run is killed (default: none)
        --headers NAMES  headers of mails to compare besides their text, such as subject,from
                        (default: none)
        """,
        output=one_of(*kinds),
        headers=header_names,
    )
    parser = table.parser(PROGRAM, DESCRIPTION, FLAGS, own, TEXTS)
    names = "--include --exclude --jobs --sort-memory -o --removed --report -0"
    parser.add_shared(names, SHARED["-0"]._replace(help=NUL_HELP))
    parser.add(*units.OPTIONS, *findings.OPTIONS, findings.FAIL)
    args = parser.parse_intermixed_args(plain_names(sys.argv[1:]))
    if args.scheme == FINGERPRINTS:
        raise UsageError(
            f"--scheme {FINGERPRINTS} compares fingerprints, not documents; leave it out"
        )
    args.lines = args.output == LINES
    return args
