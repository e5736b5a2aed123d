"""The documents of folders as rows, for commands that read rows: the path as id, and the text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from neardup.engines.local.workers import Progress
from neardup.files.folder_walk import Patterns, Walk, path_of
from neardup.files.tally import Rules, Tally
from neardup.options import table
from neardup.options.settings import Settings
from neardup.reading import mails
from neardup.reading.cleaning import Cleaning
from neardup.reading.row_files import json_row
from neardup.reading.text_rows import DEFAULT_TEXT
from neardup.runtime.program import UsageError, write_to
from neardup.tools.documents.document_files import is_archive
from neardup.tools.documents.documents import SHORT, found_files, json_lines, with_guess

OF_ROWS = set(table.READING) - {"--encoding"}


def write_documents(
    name: str, args: argparse.Namespace, options: table.Options, path: Path
) -> tuple[Settings, Tally]:
    """Write the documents of `args.files` to a file; return settings to read it, and the counts.

    With --clean html, the texts are those of the pages, without tags.  name: of the command
    """
    for flag in sorted(OF_ROWS):
        if options.value(flag) is not None:
            raise UsageError(f"{flag} is for files of records, not for folders; leave it out")
    options, guess = with_guess(options)
    options = replace(options, input="jsonl")
    settings = Settings.of(options)
    clean = ",".join(each for each in settings.form.clean.names if each != "html")
    progress = Progress(name, ["documents"], 1)
    tally = Tally(Rules(name, "document", settings.strict, args.verbosity), progress.clear)
    patterns = Patterns.of(args.include, args.exclude)
    walk = Walk(patterns, is_archive, shows=mails.is_maildir, skip=tally.leave_out)
    files = found_files(walk, args.files)
    walk.check_new("-o", args.answer)
    tally.fail_folders(walk.closed)
    with progress.shown(args.verbosity), path.open("wb") as sink:
        progress.stage("documents", len(files))
        counted = progress.counted(0, files, lambda _: 1)
        lines = json_lines(counted, settings, walk, tally, guess, (), None)
        write_to(sink, lines if clean == str(settings.form.clean) else texts_of_pages(lines, tally))
    return Settings.of(replace(options, encoding=None, clean=clean or None)), tally


def texts_of_pages(lines: Iterable[bytes], tally: Tally) -> Iterator[bytes]:
    """Yield JSON lines with the texts of pages; count those without text."""
    clean = Cleaning.parse("html")
    for line in lines:
        row = json.loads(line)
        row[DEFAULT_TEXT] = clean(row[DEFAULT_TEXT])
        if row[DEFAULT_TEXT].strip():
            yield json_row(row)
        else:
            tally.leave_out(SHORT[0], path_of(row["id"]))
