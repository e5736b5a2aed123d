"""Output files of a local run: -o, --removed, and the run file with options and counts.

The run file holds the options and counts of the run.  It is opened before the run starts, and
gets its name after the answer has got its own.
"""

import argparse
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Any, Callable, NamedTuple

from neardup.lines.answer_lines import PAIRS, answer_table
from neardup.options.settings import Settings
from neardup.options.table import EXACT, Options
from neardup.reading.compressed import kind_by_name, packing
from neardup.reading.folder_walk import path_of
from neardup.reading.input_format import InputFormat
from neardup.reading.table_files import TABLES
from neardup.reading.table_rows import FORMATS, LineTable, check_row_file, write_rows
from neardup.runtime import VERSION, atomic_write, counters, summary
from neardup.runtime.program import (
    STANDARD_OUTPUT,
    STDOUT,
    UsageError,
    check_file_name,
    naming,
    opened_output,
)
from neardup.verification import MARKED

RUN_HELP = (
    "write the answer to FILE when it is complete; compressed if its name ends with .gz, "
    ".bz2, .xz or .zst; JSON lines, CSV, Parquet or Arrow if it ends with .jsonl, .csv, .parquet "
    "or .arrow; beside it, .FILE.neardup.json has the options and counts of the run.  With "
    "--output kept or marked, FILE may be FOLDER/, which gets a file for each input file"
)
PAGE = "neardup.tools.report.report"  # writes --report; above the engines, and slow to import
OUTPUT_FILES = {"--removed": "removed", "--common": "common", "--report": "report"}
OUTPUT_FILES.update({"--accept": "accept", "-o": "answer"})
PATHS = ("kept", "removed")  # outputs that -0 applies to
STDOUT_NAME = "-"
OWN_FILE = "-o {}: the file of the run's options"


class Answer(NamedTuple):
    name: str = ""  # for messages, and for the format; "" is standard output
    folder: str = ""  # temporary, with a file for each input; "" if there is one answer
    own: "IO[bytes] | None" = None  # the open file for options and counts, or None
    table: LineTable = PAIRS  # the columns of its lines
    descriptor: int = STDOUT  # of the open answer
    rows: str = ""  # the format of kept rows, one of FORMATS, if it differs from the input's
    null: bool = False  # write only the path of each line's first id, followed by a NUL byte

    @contextmanager
    def opened(self, name: str = "") -> Iterator[IO[bytes]]:
        """Context manager: open the answer, or that for input `name`; compress by extension."""
        with self.file(os.path.basename(name)) as file, packing(file, name or self.name) as sink:
            yield sink

    @contextmanager
    def file(self, base: str = "") -> Iterator[IO[bytes]]:
        if base:
            path = os.path.join(self.folder, base)
            with naming(os.path.join(self.name, base)), open(path, "wb") as file:
                yield file
        else:
            with opened_output(self.descriptor, self.name or STANDARD_OUTPUT) as file:
                yield file

    def write(self, lines: Iterable[bytes]) -> None:
        """Write pieces of whole lines as the answer, in the format that the file's name implies."""
        if self.null:
            ids = (re.split(rb"[\t\n]", line, maxsplit=1)[0] for line in lines if line)
            lines = (path_of(id_.decode()) + b"\0" for id_ in ids)
        form = kind_by_name(self.name)
        with self.opened() as sink:
            if form in FORMATS and not self.null:
                rows = map(self.table.row_of, chain.from_iterable(map(BytesIO, lines)))
                write_rows(sink, self.name, form, rows, self.table.columns)
            else:
                sink.writelines(lines)


def check_outputs(args: argparse.Namespace, output: str, kept: str = "kept") -> None:
    """Raise UsageError for output files that cannot be written, or options that need others.

    output: the value of --output; kept: the one that --removed needs.
    """
    flags: dict[str, str] = {}
    for flag, name in ((flag, getattr(args, dest, None)) for flag, dest in OUTPUT_FILES.items()):
        if name is None or (flag == "-o" and name == STDOUT_NAME):
            continue
        check_file_name(flag, name)
        if name == STDOUT_NAME:
            raise UsageError(f"{flag} -: standard output is for the answer; name a file")
        real = os.path.realpath(name)
        if real in flags:
            raise UsageError(f"{flag} {name}: {flags[real]} is written there; name another file")
        flags[real] = flag
    if (args.answer or "").startswith("utput"):
        raise UsageError(f"-o{args.answer}: type two dashes, --o{args.answer}, or a blank after -o")
    if getattr(args, "removed", None):
        check_row_file("--removed", args.removed)
        if output not in (kept, MARKED):
            raise UsageError(f"--removed needs --output {kept}, but --output is {output}")
    if getattr(args, "null", False):
        if output not in PATHS:
            raise UsageError(
                f"-0 needs --output kept or removed, but --output is {output}, whose lines are "
                "not single paths; type --output removed -0"
            )
        if args.answer and kind_by_name(args.answer) in FORMATS:
            raise UsageError(
                f"-o {args.answer}: -0 writes paths, not {kind_by_name(args.answer)}; leave out "
                "-0, or this extension"
            )


def names_of_outputs(
    args: argparse.Namespace, noun: str, is_input: Callable[[bytes], bool]
) -> "dict[str, str | None]":
    """Return the output files by option; UsageError for one that is a file to compare, a `noun`."""
    names = {flag: getattr(args, dest, None) for flag, dest in OUTPUT_FILES.items()}
    for flag, name in names.items():
        if name and os.path.isfile(name) and is_input(os.fsencode(name)):
            raise UsageError(f"{flag} {name}: is a {noun}; name another file")
    return names


def check_answer(args: argparse.Namespace, form: InputFormat) -> None:
    """Raise UsageError if -o, --removed or --report is unusable, or if two name the same file."""
    name = args.answer
    check_outputs(args, args.output)
    if name is None or name == STDOUT_NAME:
        return
    own, answers = counters.run_file_name(name), [name]
    if is_folder(name):
        answers = [os.path.join(name, os.path.basename(file)) for file in args.files]
    if own in answers:
        raise UsageError(f"-o {name}: the run's options are written to {own}; name another file")
    for flag, other in (("--removed", args.removed), ("--report", args.report)):
        if other and os.path.realpath(other) in map(os.path.realpath, [own, *answers]):
            raise UsageError(f"-o {name}: {flag} is written there; name another file")
    if args.output in ("kept", MARKED):
        rows_format(args, form)
        if not is_folder(name) and kind_by_name(name) in TABLES:
            check_row_file("-o", name)
    elif is_folder(name):
        raise UsageError(f"-o {name}: is the name of a folder; name a file in it")
    else:
        check_row_file("-o", name)


def rows_format(args: argparse.Namespace, form: InputFormat) -> str:
    """Return the format that the name of -o implies for kept rows, or "" for the input's format.

    UsageError if the rows cannot be written in that format.
    """
    name, kinds = args.answer or STDOUT_NAME, sorted({form.kind_of(file) for file in args.files})
    kind = None if args.output not in ("kept", MARKED) or is_folder(name) else kind_by_name(name)
    if kind is None or kinds == [kind]:
        return ""
    if kind not in FORMATS or not form.fields:
        those = f"-o {name}: records of {' and '.join(kinds)} files"
        ends = " or ".join(f".{each}" for each in FORMATS) if form.fields else ".txt"
        raise UsageError(f"{those} cannot be written as {kind}; end the name with {ends}")
    if form.fields.numbered:
        raise UsageError(
            f"-o {name}: {kind} has names of columns, and a table without a header has none; end "
            f"the name with .{kinds[0]}"
        )
    return kind


def table_of(options: Options, settings: Settings) -> LineTable:
    """Return the columns of the answer, for writing it as a table."""
    estimated = options.verify != EXACT
    return answer_table(options.output, settings.against, settings.measure.directed, estimated)


@contextmanager
def file_answer(
    option: str, name: "str | None", inputs: Sequence[str], table: LineTable, **how: Any
) -> Iterator[Answer]:
    """Context manager: open the file that an option names; standard output if it names none.

    how: further fields of `Answer`.
    """
    if name is None or name == STDOUT_NAME:
        yield Answer(table=table, **how)
        return
    check_file_name(option, name)
    if name.endswith("/"):
        raise UsageError(f"{option} {name}: is the name of a folder; name a file in it")
    check_row_file(option, name)
    with atomic_write.whole_or_not(option, name, inputs) as file:
        yield Answer(name, table=table, descriptor=file.fileno(), **how)


def doubts_with_null(stays: int, doubtful: int, kept: bool) -> str:
    """Return what -0 does with `stays` of the doubtful removals, for a summary; "" for none.

    >>> doubts_with_null(1, 3, kept=False), doubts_with_null(3, 3, kept=True)
    (' (-0 leaves 1 of them out)', ' (-0 prints them, too)')
    """
    which = "them" if stays == doubtful else f"{stays:,} of them"
    does = f" (-0 prints {which}, too)" if kept else f" (-0 leaves {which} out)"
    return does * bool(stays)


def is_folder(name: str) -> bool:
    return name.endswith("/") or os.path.isdir(name)


@contextmanager
def answer_to(name: "str | None", files: Sequence[str], inputs: Sequence[str]) -> Iterator[Answer]:
    """Context manager: open the answer that -o names; UsageError if that name cannot be used."""
    if name is None or name == STDOUT_NAME:
        yield Answer()
    elif is_folder(name):
        with answer_folder(name, files, inputs) as (folder, own):
            yield Answer(name, folder, own)
    else:
        with ExitStack() as stack:
            atomic_write.check_new("-o", name, inputs)
            own = None
            if os.path.isfile(name) or not os.path.exists(name):  # unlike /dev/null
                beside, option = counters.run_file_name(name), OWN_FILE.format(name)
                own = stack.enter_context(atomic_write.whole_or_not(option, beside, inputs))
                counters.check_run_file(beside)
            file = stack.enter_context(atomic_write.whole_or_not("-o", name, inputs))
            # Until the block ends, stdout of this process and its children is the file.
            before = os.dup(STDOUT)
            stack.callback(os.close, before)
            stack.callback(os.dup2, before, STDOUT)
            os.dup2(file.fileno(), STDOUT)
            yield Answer(name, own=own)


@contextmanager
def answer_folder(
    name: str, files: Sequence[str], inputs: Sequence[str]
) -> Iterator[tuple[str, IO[bytes]]]:
    """Context manager: yield a temporary folder for one answer per input, and the run file.

    All files are moved to folder `name` once they are complete.
    """
    names = [os.path.basename(file) for file in files]
    for file, short in zip(files, names):
        if file == STDOUT_NAME:
            raise UsageError(
                f"-o {name}: standard input has no name for a file in the folder; use -o FILE"
            )
        if names.count(short) > 1:
            raise UsageError(f"-o {name}: two files have the name {short}; use separate runs")
        atomic_write.check_new("-o", os.path.join(name, short), inputs)
    beside = counters.run_file_name(name)
    atomic_write.check_new(OWN_FILE.format(name), beside, inputs)
    counters.check_run_file(beside)
    there = os.path.isdir(name)
    os.makedirs(name, exist_ok=True)
    try:
        with atomic_write.half_folder("-o", name, Path(name)) as half:
            with open(half / counters.IN_FOLDER, "wb") as own:
                yield str(half), own
            for short in [*names, counters.IN_FOLDER]:
                os.replace(half / short, os.path.join(name, short))
    finally:
        if not there:
            with suppress(OSError):  # unless it has files now
                os.rmdir(name)


def about_run(
    program: str,
    options: Options,
    files: Sequence[str],
    settings: Settings,
    reports: list[dict[str, Any]],
    started: float,
) -> counters.RunFile:
    """Return the content of the run file; `started` is in seconds since 1970."""
    counts = summary.total(report["counts"] for report in reports)
    # Absolute names are valid in other folders, too.
    against = tuple(os.path.abspath(name) for name in options.against)
    counted, out = (n and os.path.abspath(n) for n in (options.counts, options.not_pairs))
    absolute = replace(options, against=against, counts=counted, not_pairs=out)
    return counters.RunFile(
        options=absolute.arguments(),
        files=[file if file == "-" else os.path.abspath(file) for file in files],
        output=options.output,
        threshold=f"{settings.threshold.num}/{settings.threshold.den}",
        measure=settings.request.measure,
        scheme=settings.name,
        promise=settings.scheme.promise,
        counts={n: counts[n] for n in sorted(counts) if not n.startswith(summary.SEEMS)},
        seconds={stage: round(spent, 3) for stage, spent in summary.seconds_of(reports).items()},
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        took=round(time.time() - started, 3),
        program=program,
        version=VERSION,
    )
