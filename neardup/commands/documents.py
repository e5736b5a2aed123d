"""`documents`: find similar documents, one per file, in folders and archives.

folders ── files ── texts ── JSON lines, the path as id ── `neardup run`
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from neardup.engines.local import run
from neardup.engines.local.answer_file import REMOVED_OPTION, REPORT_OPTION
from neardup.engines.local.workers import Progress, working_folder
from neardup.images.folder_walk import CLOSED_FOLDER, FoundFile, Patterns, Walk, path_id, path_of
from neardup.images.results import Failure
from neardup.images.tally import Rules, Tally, many
from neardup.lines.answer_lines import parse_removed
from neardup.options import table
from neardup.options.settings import Settings, settings_before_counts
from neardup.reading import document_files
from neardup.reading.document_files import TOO_LONG, Document, NoDocument, is_archive
from neardup.reading.text_rows import DEFAULT_ID, DEFAULT_TEXT
from neardup.runtime.program import StageError, UsageError, not_one_of, write_all, write_to
from neardup.runtime.summary import QUIET, VERBOSE, in_words
from neardup.verification import OUTPUTS

PROGRAM = "python3 -m neardup documents"
NAME = "neardup documents"
LINES, WITH_PATHS = "lines", ("kept", "removed")
FIXED = [
    "--input",
    "--delimiter",
    "--id",
    "--text",
    "--fingerprint",
    "--bits",
    "--input-files",
    "--counts",
    "--own-counts",
    "--output",
]
FLAGS = [flag for flag in table.OPTIONS if flag not in FIXED]
FIELDS = (DEFAULT_ID, "bytes", "date", DEFAULT_TEXT)
READ_AT_ONCE = 1 << 20
LAST_SECOND = 253402300799  # of the year 9999
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
    check_keep(settings)
    walk = Walk(Patterns.of(args.include, args.exclude), is_archive)
    rules = Rules(NAME, "document", settings.strict, args.verbosity)
    with working_folder() as folder:
        progress = Progress(NAME, ["documents"], 1)
        tally = Tally(rules, progress.clear)
        files = list(walk.files(args.files))
        for path, why in walk.closed:
            tally.fail(path_id(path), Failure(CLOSED_FOLDER, why))
        lines = folder / "documents"
        with progress.shown(args.verbosity), lines.open("wb") as sink:
            progress.stage("documents", len(files))
            counted = progress.counted(0, files, lambda _: 1)
            write_to(sink, json_lines(counted, settings, walk, tally))
        if tally.results:
            find(lines, args, replace(options, encoding=None))  # the lines are UTF-8
    tally.report(walk.skipped, "")
    check_failures(tally, settings)


def find(lines: Path, args: argparse.Namespace, options: table.Options) -> None:
    """Print the answer for documents, given as JSON lines with paths as ids."""
    if args.lines:
        with lines.open("rb") as source:
            write_all(iter(lambda: source.read(READ_AT_ONCE), b""))
        return
    words = ["--input=jsonl", *options.given_arguments(), f"--sort-memory={args.sort_memory}"]
    words += [f"--jobs={args.jobs}"] if args.jobs else []
    words += [f"--removed={args.removed}"] if args.removed is not None else []
    words += [f"--report={args.report}"] if args.report is not None else []
    loud = {QUIET: ["-q"], VERBOSE: ["-v"]}.get(args.verbosity, [])
    if args.output not in WITH_PATHS or (args.output == "removed" and not args.null):
        run.main(NAME, PROGRAM, [*words, *loud, str(lines)])
        return
    answer = lines.with_name("answer")
    run.main(NAME, PROGRAM, [*words, *(loud or ["-q"]), "-o", str(answer), str(lines)])
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


def json_lines(
    files: Iterable[FoundFile], settings: Settings, walk: Walk, tally: Tally
) -> Iterator[bytes]:
    """Yield the documents in files as JSON lines, and count all outcomes."""
    how = settings.max_line, walk.patterns.allow, settings.form.dialect
    for file in files:
        for outcome in document_files.documents(file, *how):
            tally.files += 1
            if isinstance(outcome, Document):
                line = json_line(outcome)
                if len(line) <= settings.max_line:
                    tally.results += 1
                    yield line
                    continue
                outcome = NoDocument(outcome.path, TOO_LONG, "as a JSON line")
            if outcome.skipped:
                tally.others[outcome.reason] += 1
            else:
                tally.fail(path_id(outcome.path), Failure(outcome.reason, outcome.detail))


def json_line(document: Document) -> bytes:
    r"""Return a document as a JSON line, with the bytes and the date of its file, for --keep.

    >>> json_line(Document(b"a b", "to\nbe", 5, 86400.5))
    b'{"id":"a%20b","bytes":5,"date":"1970-01-02T00:00:00Z","text":"to\\nbe"}\n'
    """
    seconds = min(max(document.changed, 0), LAST_SECOND)
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    row = dict(zip(FIELDS, (path_id(document.path), document.bytes, date, document.text)))
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def check_keep(settings: Settings) -> None:
    """Raise UsageError for a field of --keep that no document has."""
    for field in settings.form.fields.ranked if settings.form.fields else ():
        if field not in FIELDS:
            raise UsageError(f"--keep: {not_one_of(field, FIELDS)}")


def check_failures(tally: Tally, settings: Settings) -> None:
    """Raise StageError if more files could not be read than --max-bad allows."""
    every = tally.failed + tally.results
    if tally.failed > settings.max_bad * every:
        raise StageError(
            f"{tally.failed:,} of {every:,} files could not be read; --max-bad "
            f"{in_words(settings.max_bad)} allows fewer, and --max-bad 1 all"
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
    parser.add_argument("--report", **REPORT_OPTION)
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
