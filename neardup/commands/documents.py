"""`documents`: find similar documents, one per file, in folders and archives.

folders ── files ── texts ── JSON lines, the path as id ── `neardup run`
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from neardup.engines.local import run
from neardup.engines.local.answer_file import REMOVED_OPTION
from neardup.engines.local.workers import Progress, working_folder
from neardup.images.folder_walk import CLOSED_FOLDER, FoundFile, Patterns, Walk, path_id, path_of
from neardup.images.tally import listed, many
from neardup.lines.answer_lines import parse_removed
from neardup.options import table
from neardup.options.settings import Settings, settings_before_counts
from neardup.reading import document_files
from neardup.reading.document_files import NoDocument, Outcome, is_archive
from neardup.reading.text_rows import DEFAULT_ID, DEFAULT_TEXT
from neardup.runtime.program import StageError, UsageError, not_one_of, write_all, write_to
from neardup.runtime.summary import QUIET, SHOWN_BAD_LINES, VERBOSE, in_words
from neardup.verification import OUTPUTS

PROGRAM = "python3 -m neardup documents"
NAME = "neardup documents"
LINES, WITH_PATHS = "lines", ("kept", "removed")
FIXED = "--input --id --text --fingerprint --bits --input-files --counts --own-counts --output"
FLAGS = [flag for flag in table.OPTIONS if flag not in FIXED.split()]
READ_AT_ONCE = 1 << 20
DESCRIPTION = """Find similar documents, each of them a file: texts, pages, sources.

All files below each FOLDER are read, and the members of archives (.zip, .tar, .tar.gz …).  Hidden
files, binary and empty ones are skipped, and symbolic links are not followed.

    python3 -m neardup documents docs > pairs.tsv
    python3 -m neardup documents --include '*.html' --clean html --threshold 0.8 site
    python3 -m neardup documents --output removed -0 docs | xargs -0 rm --

A line has two paths and their similarity.  In paths, blanks, % and what is not UTF-8 are written as
% and two hex digits.  For `tune`, an index or a cluster, write the documents as JSON lines:

    python3 -m neardup documents --output lines docs > docs.jsonl
"""


def main() -> None:
    args = _command_line()
    options = table.Options.of(args)
    checked = replace(options, input="jsonl", output="pairs" if args.lines else args.output)
    settings = settings_before_counts(checked)
    walk = Walk(Patterns.of(args.include, args.exclude), is_archive)
    with working_folder() as folder:
        progress = Progress(NAME, ["documents"], 1)
        tally = DocumentTally(args.verbosity, settings, walk, progress)
        files = list(walk.files(args.files))
        for path, why in walk.closed:
            tally.take(NoDocument(path, CLOSED_FOLDER, why))
        lines = folder / "documents"
        with progress.shown(args.verbosity), lines.open("wb") as sink:
            progress.stage("documents", len(files))
            write_to(sink, tally.lines(progress.counted(0, files, lambda _: 1)))
        if tally.documents:
            find(lines, args, options)
    tally.report()


def find(lines: Path, args: argparse.Namespace, options: table.Options) -> None:
    """Print what is asked for of JSON lines, which have paths as ids."""
    if args.lines:
        with lines.open("rb") as source:
            write_all(iter(lambda: source.read(READ_AT_ONCE), b""))
        return
    words = ["--input=jsonl", *options.given_arguments(), f"--sort-memory={args.sort_memory}"]
    words += [f"--jobs={args.jobs}"] if args.jobs else []
    words += [f"--removed={args.removed}"] if args.removed is not None else []
    loud = {QUIET: ["-q"], VERBOSE: ["-v"]}.get(args.verbosity, [])
    if args.output not in WITH_PATHS or (args.output == "removed" and not args.null):
        run.main(PROGRAM, PROGRAM, [*words, *loud, str(lines)])
        return
    answer = lines.with_name("answer")
    run.main(PROGRAM, PROGRAM, [*words, *(loud or ["-q"]), "-o", str(answer), str(lines)])
    of_line = _kept_path if args.output == "kept" else _removed_path
    with answer.open("rb") as found:
        paths = list(map(of_line, found))
    write_all(path + b"\0" if args.null else path_id(path).encode() + b"\n" for path in paths)
    if args.verbosity > QUIET:
        print(f"{many(len(paths), 'document')} {args.output}", file=sys.stderr)


def _kept_path(line: bytes) -> bytes:
    return path_of(json.loads(line)[DEFAULT_ID])


def _removed_path(line: bytes) -> bytes:
    return path_of(parse_removed(line)[0].decode())


class DocumentTally:
    """Counts what became of files, and prints the first failures."""

    def __init__(self, verbosity: int, settings: Settings, walk: Walk, progress: Progress):
        self._verbosity, self._settings, self._walk = verbosity, settings, walk
        self._progress, self._began = progress, time.monotonic()
        self.documents = 0
        self.failures: Counter[str] = Counter()

    def lines(self, files: Iterable[FoundFile]) -> Iterator[bytes]:
        """Yield the documents in files as JSON lines; StageError for a failure with --strict."""
        limit = self._settings.max_line
        for file in files:
            for outcome in document_files.documents(file, limit, self._walk.patterns.allow):
                yield self.take(outcome)

    def take(self, outcome: Outcome) -> bytes:
        """Count an outcome; return its JSON line, or b"" if it is not a document."""
        if isinstance(outcome, NoDocument):
            if outcome.skipped:
                self._walk.skip(outcome.reason)
            else:
                self._fail(outcome)
            return b""
        row = {DEFAULT_ID: path_id(outcome.path), DEFAULT_TEXT: outcome.text}
        line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
        if len(line) > self._settings.max_line:
            return self.take(NoDocument(outcome.path, document_files.TOO_LONG, "as a JSON line"))
        self.documents += 1
        return line

    def _fail(self, file: NoDocument) -> None:
        message = ": ".join(filter(None, [path_id(file.path), file.reason, file.detail]))
        if self._settings.strict:
            raise StageError(f"{message}; without --strict it is counted and left out")
        self.failures[file.reason] += 1
        few = sum(self.failures.values()) <= SHOWN_BAD_LINES and self._verbosity > QUIET
        if few or self._verbosity >= VERBOSE:
            self._progress.clear()
            print(f"{NAME}: {message}", file=sys.stderr)

    def report(self) -> None:
        """Print the counts; StageError if there was no document, or too few could be read."""
        failed = sum(self.failures.values())
        if self._verbosity > QUIET:
            skipped = Counter(self._walk.skipped)
            first = many(self.documents, "document")
            first += f"; skipped: {listed(skipped)}" * bool(skipped)
            seconds = f"{time.monotonic() - self._began:.1f} seconds"
            wrong = [f"{many(failed, 'file')} could not be read: {listed(self.failures)}"]
            print("\n".join([first, *(wrong * bool(failed)), seconds]), file=sys.stderr)
        if not self.documents:
            raise StageError("found no document that could be read; name a folder of text files")
        if failed > self._settings.max_bad * (failed + self.documents):
            raise StageError(
                f"{failed:,} of {failed + self.documents:,} documents could not be read; "
                f"--max-bad {in_words(self._settings.max_bad)} allows fewer, and --max-bad 1 all"
            )


def _command_line() -> argparse.Namespace:
    parser = table.parser(PROGRAM, DESCRIPTION, FLAGS)
    parser.add_argument(
        "files", nargs="+", metavar="FOLDER", help="or a file, or an archive; all below it is read"
    )
    kinds = (*OUTPUTS, LINES)
    about = f"{', '.join(kinds)}: as with `neardup run`, but kept with paths alone; {LINES}: the "
    about += "documents as JSON lines, for other commands (default: pairs)"
    parser.add_argument("--output", metavar="KIND", default="pairs", help=about)
    about = "with --output kept or removed: paths as they are, each with a NUL behind it, as "
    parser.add_argument("-0", dest="null", action="store_true", help=about + "xargs -0 reads them")
    add_patterns(parser)
    parser.add_argument("--removed", **REMOVED_OPTION)
    parser.add_argument("--jobs", metavar="N", help="number of processes (default: one per core)")
    about = "what each sort may hold in memory, as 256M or 2G (default: 256M)"
    parser.add_argument("--sort-memory", metavar="SIZE", default="256M", help=about)
    parser.add_verbosity()
    args = parser.parse_intermixed_args(run.plain_names(sys.argv[1:]))
    if args.output not in kinds:
        raise UsageError(f"--output: {not_one_of(args.output, kinds)}")
    if args.null and args.output not in WITH_PATHS:
        raise UsageError(f"-0 needs --output {' or '.join(WITH_PATHS)}")
    args.lines = args.output == LINES
    return args


def add_patterns(parser: argparse.ArgumentParser) -> None:
    """Add --include and --exclude, which choose files below folders."""
    about = "only files whose name matches, as '*.py', or whose path does if there is a / in it; "
    parser.add_argument(
        "--include", metavar="GLOB", action="append", default=[], help=about + "may be repeated"
    )
    about = "no files and no folders whose name, or path, matches; may be repeated"
    parser.add_argument("--exclude", metavar="GLOB", action="append", default=[], help=about)
