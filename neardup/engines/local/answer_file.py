"""The answer of a run on this machine: files of -o and --removed, and the file about the run.

The run's own file holds the options and counts of the run.  It is opened before the run, and gets
its name after the answer.
"""

import argparse
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.compressed import kind_by_name, packing, plain_name
from neardup.reading.input_format import InputFormat
from neardup.runtime import VERSION, atomic_write, manifest, summary
from neardup.runtime.program import STANDARD_OUTPUT, STDOUT, UsageError, naming

ANSWER_OPTION: dict[str, Any] = dict(
    dest="answer",
    metavar="FILE",
    help="where the answer goes, once all of it is there, instead of standard output, packed if it "
    "ends with .gz, .bz2, .xz or .zst; beside it, .FILE.neardup.json says what was asked and "
    "counted.  With --output kept it may be FOLDER/, which gets a file for each FILE",
)
REPORT_OPTION: dict[str, Any] = dict(
    metavar="FILE", help="write a page of what was found, with texts side by side, as page.html"
)
REMOVED_OPTION: dict[str, Any] = dict(
    metavar="FILE", help="with --output kept: what --output removed prints, into this file"
)
STDOUT_NAME = "-"
OWN_FILE = "-o {}: the run's own file"


class Answer(NamedTuple):
    name: str = ""  # for messages; "" is standard output
    folder: str = ""  # for a file for each input, until all are whole; "" where there is one answer
    own: "IO[bytes] | None" = None  # for the run's own file; None where there is none

    @contextmanager
    def opened(self, name: str = "") -> Iterator[IO[bytes]]:
        """Context manager: open the answer, or its file for input `name`; compress by extension."""
        base = os.path.basename(name)
        target = os.path.join(self.folder, base) if base else STDOUT
        with (
            naming(os.path.join(self.name, base) if base else self.name or STANDARD_OUTPUT),
            open(target, "wb", closefd=bool(base)) as file,
            packing(file, name or self.name) as sink,
        ):
            yield sink

    def write(self, pieces: Iterable[bytes]) -> None:
        with self.opened() as sink:
            sink.writelines(pieces)


def check_answer(args: argparse.Namespace, form: InputFormat) -> None:
    """Raise UsageError for values of -o, --removed and --report that cannot work."""
    name = args.answer
    if args.removed == STDOUT_NAME:
        raise UsageError("--removed -: the kept lines go to standard output; name a file")
    if args.report == STDOUT_NAME:
        raise UsageError("--report -: the answer goes to standard output; name a file")
    both = [args.removed, args.report]
    if all(both) and len(set(map(os.path.realpath, both))) == 1:
        raise UsageError(f"--report {args.report}: --removed goes there; name another file")
    if name is None or name == STDOUT_NAME:
        return
    if name == "":
        raise UsageError("-o: expected the name of a file, got ''")
    if name.startswith("utput"):
        raise UsageError(f"-o{name}: type two dashes, -{'-o' + name}, or a blank after -o")
    own, answers = manifest.run_file_name(name), [name]
    if is_folder(name):
        answers = [os.path.join(name, os.path.basename(file)) for file in args.files]
    if own in answers:
        raise UsageError(f"-o {name}: the run's own file goes to {own}; name another one")
    for flag, other in (("--removed", args.removed), ("--report", args.report)):
        if other and os.path.realpath(other) in map(os.path.realpath, [own, *answers]):
            raise UsageError(f"-o {name}: {flag} goes there; name another file")
    kinds = {form.kind_of(file) for file in args.files}
    if args.output == "kept" and not is_folder(name):
        if kind_by_name(name) and len(kinds) == 1 and kinds != {kind_by_name(name)}:
            raise UsageError(
                f"-o {name}: kept records keep their form, which is {kinds.pop()}; end the name "
                "with that"
            )
        if kinds == {"parquet"} and plain_name(name) != name:
            raise UsageError(f"-o {name}: Parquet is compressed inside; name it {plain_name(name)}")
    elif args.output != "kept" and is_folder(name):
        raise UsageError(f"-o {name}: is the name of a folder; name a file in it")
    elif args.output != "kept" and kind_by_name(name) not in (None, "tsv"):
        raise UsageError(
            f"-o {name}: --output {args.output} writes lines with tabs; end the name with .tsv"
        )


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
                beside, option = manifest.run_file_name(name), OWN_FILE.format(name)
                own = stack.enter_context(atomic_write.whole_or_not(option, beside, inputs))
                manifest.check_run_file(beside)
            file = stack.enter_context(atomic_write.whole_or_not("-o", name, inputs))
            # stdout of this process, and of those that it starts, is the file until then.
            before = os.dup(STDOUT)
            stack.callback(os.close, before)
            stack.callback(os.dup2, before, STDOUT)
            os.dup2(file.fileno(), STDOUT)
            yield Answer(name, own=own)


@contextmanager
def answer_folder(
    name: str, files: Sequence[str], inputs: Sequence[str]
) -> Iterator[tuple[str, IO[bytes]]]:
    """Context manager: yield a new folder for the answers of several files, and the open run file.

    All of them are moved to folder `name` when they are whole.
    """
    names = [os.path.basename(file) for file in files]
    for file, short in zip(files, names):
        if file == STDOUT_NAME:
            raise UsageError(
                f"-o {name}: standard input has no name for a file in the folder; use -o FILE"
            )
        if names.count(short) > 1:
            raise UsageError(f"-o {name}: two files have the name {short}; run them one by one")
        atomic_write.check_new("-o", os.path.join(name, short), inputs)
    beside = manifest.run_file_name(name)
    atomic_write.check_new(OWN_FILE.format(name), beside, inputs)
    manifest.check_run_file(beside)
    there = os.path.isdir(name)
    os.makedirs(name, exist_ok=True)
    try:
        with atomic_write.half_folder("-o", name, Path(name)) as half:
            with open(half / manifest.IN_FOLDER, "wb") as own:
                yield str(half), own
            for short in [*names, manifest.IN_FOLDER]:
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
) -> manifest.RunFile:
    """Return the options and counts of a run that started at a time, in seconds since 1970."""
    counts = summary.total(report["counts"] for report in reports)
    # Names that can be read from other folders, too.
    against = tuple(os.path.abspath(name) for name in options.against)
    absolute = replace(
        options, against=against, counts=options.counts and os.path.abspath(options.counts)
    )
    return manifest.RunFile(
        options=absolute.arguments(),
        files=[file if file == "-" else os.path.abspath(file) for file in files],
        output=options.output,
        threshold=f"{settings.threshold.num}/{settings.threshold.den}",
        measure=settings.request.measure,
        scheme=settings.name,
        promise=settings.scheme.promise,
        counts={what: n for what, n in sorted(counts.items()) if not what.startswith(summary.LIKE)},
        seconds={stage: round(spent, 3) for stage, spent in summary.seconds_of(reports).items()},
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        took=round(time.time() - started, 3),
        program=program,
        version=VERSION,
    )
