"""`documents`: find similar text files in folders and archives; each file is a document.

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
from neardup.images.tally import Rules, Tally
from neardup.lines.answer_lines import parse_removed
from neardup.options import table
from neardup.options.command_parser import plain_names
from neardup.options.settings import Settings, settings_before_counts
from neardup.reading import document_files
from neardup.reading.document_files import TOO_LONG, Document, NoDocument, is_archive
from neardup.reading.fingerprint_lines import FINGERPRINTS
from neardup.reading.text_rows import DEFAULT_ID, DEFAULT_TEXT
from neardup.runtime.program import StageError, UsageError, not_one_of, write_all, write_to
from neardup.runtime.summary import MAX_BAD, QUIET, VERBOSE, in_words, many
from neardup.verification import OUTPUTS

PROGRAM = "python3 -m neardup documents"
NAME = "neardup documents"
LINES, WITH_PATHS = "lines", ("kept", "removed")
FIXED = [
    *filter("--encoding".__ne__, table.READING),
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
TEXTS = {
    "--scheme": table.help_without("--scheme", f", {FINGERPRINTS}"),
    "--measure": table.help_without("--measure", f"; hamming for {FINGERPRINTS}"),
    "--distance": "with --scheme simhash: the maximum number of bits in which a pair may differ; "
    "above 15, set --max-bands to at least K + 1 (default: 3)",
    "--weights": table.help_without("--weights", "; own: read from the line, SHINGLE:WEIGHT"),
    "--shingle": table.help_without("--shingle", ".  With --input shingles: bag, if repeats count"),
    "--max-line": f"larger documents are not read; in mebibytes, 1 to {table.MAX_LINE_MIB} "
    f"(default: {table.DEFAULT_MAX_LINE})",
    "--max-bad": "the maximum share of documents that cannot be read, 0 to 1, such as 0.25 or 1/4; "
    f"with more, the exit code is 1; 0 means --strict (default: {in_words(MAX_BAD)})",
    "--strict": "stop at the first document that cannot be read",
}
NUL_HELP = (
    "with --output kept or removed: unescaped paths of files, each followed by a NUL byte, for "
    "xargs -0; members of archives are left out"
)
LAST_SECOND = 253402300799  # of the year 9999
DESCRIPTION = """Find similar text files: plain text, HTML, source code.

All files below each FOLDER are read, and the members of archives (.zip, .tar, .tar.gz …).  Hidden,
binary and empty files are skipped, and symbolic links are not followed.

    python3 -m neardup documents docs > pairs.tsv
    python3 -m neardup documents --include '*.html' --clean html --threshold 0.8 site
    python3 -m neardup documents --output removed -0 docs | xargs -0 rm --

A line has two paths and their similarity.  Blanks, % and bytes that are not UTF-8 are written as
%XX.  Members of archives are written ARCHIVE!MEMBER, which is never the path of a file; -0 leaves
them out.  For `tune`, an index or a cluster, write the documents as JSON lines:

    python3 -m neardup documents --output lines docs > docs.jsonl
"""


def main() -> None:
    args = _command_line()
    options = table.Options.of(args)
    checked = replace(options, input="jsonl", output="pairs" if args.lines else args.output)
    settings = settings_before_counts(checked)
    check_keep(settings)
    outputs = {"--removed": args.removed, "--report": args.report}
    if args.lines:
        for flag in filter(outputs.get, outputs):
            raise UsageError(f"{flag} cannot be used with --output {LINES}; leave {flag} out")
    else:
        asked = run.command_line(NAME, PROGRAM, [*_words(args, options), "-"])
        run.check_outputs(asked, checked, settings.form)
    rules = Rules(NAME, "document", settings.strict, args.verbosity)
    with working_folder() as folder:
        progress = Progress(NAME, ["documents"], 1)
        tally = Tally(rules, progress.clear)
        walk = Walk(Patterns.of(args.include, args.exclude), is_archive, skip=tally.leave_out)
        files = list(walk.files(args.files))
        for flag, name in outputs.items():
            walk.check_new(flag, name)
        for path, why in walk.closed:
            tally.fail(path_id(path), Failure(CLOSED_FOLDER, why))
        lines = folder / "documents"
        with progress.shown(args.verbosity), lines.open("wb") as sink:
            progress.stage("documents", len(files))
            counted = progress.counted(0, files, lambda _: 1)
            write_to(sink, json_lines(counted, settings, walk, tally))
        if tally.results:
            find(lines, args, options, walk)
    tally.report("")
    check_failures(tally, settings)


def find(lines: Path, args: argparse.Namespace, options: table.Options, walk: Walk) -> None:
    """Print the answer for `lines`, a file of JSON lines whose ids are the paths of documents."""
    if args.lines:
        with lines.open("rb") as source:
            write_all(iter(lambda: source.read(READ_AT_ONCE), b""))
        return
    words = _words(args, options)
    loud = {QUIET: ["-q"], VERBOSE: ["-v"]}.get(args.verbosity, [])
    if args.output not in WITH_PATHS or (args.output == "removed" and not args.null):
        run.main(NAME, PROGRAM, [*words, *loud, str(lines)])
        return
    answer = lines.with_name("answer")
    run.main(NAME, PROGRAM, [*words, *(loud or ["-q"]), "-o", str(answer), str(lines)])
    of_line = _kept_path if args.output == "kept" else _removed_path
    with answer.open("rb") as found:
        paths = list(map(of_line, found))
    files = list(filter(walk.knows, paths)) if args.null else paths
    write_all(path + b"\0" if args.null else path_id(path).encode() + b"\n" for path in files)
    if args.verbosity > QUIET:
        said = f"{many(len(paths), 'documents')} {args.output}"
        if left := len(paths) - len(files):
            said += f"; {left:,} not printed: with -0, members of archives are left out"
        print(said, file=sys.stderr)


def _words(args: argparse.Namespace, options: table.Options) -> list[str]:
    """Return the options of a run that finds the pairs among the documents' lines."""
    # The lines are UTF-8.
    words = ["--input=jsonl", *replace(options, encoding=None).given_arguments()]
    given = {"--sort-memory": args.sort_memory, "--jobs": args.jobs}
    given.update({"--removed": args.removed, "--report": args.report})
    return words + [f"{flag}={value}" for flag, value in given.items() if value is not None]


def _kept_path(line: bytes) -> bytes:
    return path_of(json.loads(line)[DEFAULT_ID])


def _removed_path(line: bytes) -> bytes:
    return path_of(parse_removed(line)[0].decode())


def json_lines(
    files: Iterable[FoundFile], settings: Settings, walk: Walk, tally: Tally
) -> Iterator[bytes]:
    """Yield a JSON line for each document in the files; count all outcomes in `tally`."""
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
                tally.leave_out(outcome.reason, outcome.path)
            else:
                tally.fail(path_id(outcome.path), Failure(outcome.reason, outcome.detail))


def json_line(document: Document) -> bytes:
    r"""Return a document as a JSON line, with the size and date of its file, which --keep may use.

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
    """Raise StageError if the share of documents that could not be read is above --max-bad."""
    every = tally.failed + tally.results
    if tally.failed > settings.max_bad * every:
        raise StageError(
            f"{tally.failed:,} of {every:,} documents could not be read; --max-bad "
            f"{in_words(settings.max_bad)} allows fewer; --max-bad 1 allows any number"
        )


def _command_line() -> argparse.Namespace:
    parser = table.parser(PROGRAM, DESCRIPTION, FLAGS, texts=TEXTS)
    about = "a folder (read with its subfolders), a file or an archive"
    parser.add_argument("files", nargs="+", metavar="FOLDER", help=about)
    kinds = (*OUTPUTS, LINES)
    about = f"{', '.join(kinds)}: as with `neardup run`; kept: the paths of the kept documents; "
    about += f"{LINES}: the documents as JSON lines, for other commands (default: pairs)"
    parser.add_argument("--output", metavar="KIND", default="pairs", help=about)
    parser.add_argument("-0", dest="null", action="store_true", help=NUL_HELP)
    add_patterns(parser)
    parser.add_argument("--removed", **REMOVED_OPTION)
    parser.add_argument("--report", **REPORT_OPTION)
    parser.add_argument("--jobs", metavar="N", help="number of processes (default: one per core)")
    about = "maximum memory of each sort, such as 256M or 2G (default: 256M)"
    parser.add_argument("--sort-memory", metavar="SIZE", default="256M", help=about)
    parser.add_verbosity()
    args = parser.parse_intermixed_args(plain_names(sys.argv[1:]))
    if args.output not in kinds:
        raise UsageError(f"--output: {not_one_of(args.output, kinds)}")
    if args.scheme == FINGERPRINTS:
        raise UsageError(
            f"--scheme {FINGERPRINTS} compares fingerprints, not documents; leave it out"
        )
    if args.null and args.output not in WITH_PATHS:
        raise UsageError(f"-0 needs --output {' or '.join(WITH_PATHS)}")
    args.lines = args.output == LINES
    return args


def add_patterns(parser: argparse.ArgumentParser) -> None:
    """Add the options --include and --exclude, patterns that choose files below folders."""
    about = "read only files whose name (or path, if GLOB has a /) matches, such as '*.py'; "
    parser.add_argument(
        "--include", metavar="GLOB", action="append", default=[], help=about + "may be repeated"
    )
    about = "skip files and folders whose name (or path, if GLOB has a /) matches; may be repeated"
    parser.add_argument("--exclude", metavar="GLOB", action="append", default=[], help=about)
