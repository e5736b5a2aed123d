"""The file that -o names: the answer, and beside it the run's own file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import neardup
from neardup.engines.local.whole_file import check_new, whole_or_not
from neardup.options import table
from neardup.options.settings import Settings, measure_name
from neardup.process.errors import UsageError
from neardup.process.program import STDOUT
from neardup.process.run_file import RunFile, run_file_name
from neardup.process.summary import seconds_of, total

ANSWER_OPTION: dict[str, Any] = dict(
    dest="answer",
    metavar="FILE",
    help="where the answer goes, once all of it is there, instead of standard output; beside it, "
    "FILE.run.json says what was asked and counted",
)
STDOUT_NAME = "-"


def check_answer(args: argparse.Namespace) -> None:
    """UsageError where -o and --removed name what they cannot."""
    name = args.answer
    if name is None or name == STDOUT_NAME:
        return
    if name == "":
        raise UsageError("-o: expected the name of a file, got ''")
    if name.startswith("utput"):
        raise UsageError(f"-o{name}: two dashes, -{'-o' + name}, or a blank behind -o")
    if name.endswith("/"):
        raise UsageError(f"-o {name}: is the name of a folder; name a file in it")
    if args.removed and os.path.realpath(name) == os.path.realpath(args.removed):
        raise UsageError(f"-o {name}: --removed goes there; name another file")


@contextmanager
def answer_file(name: str | None, inputs: Sequence[str]) -> Iterator[str]:
    """Where stdout of this process, and of those that it starts in here, goes: FILE, if any.

    Its name is for messages; "" is stdout as it was.
    """
    if name is None or name == STDOUT_NAME:
        yield ""
        return
    with whole_or_not("-o", name, inputs) as file:
        check_new("-o", run_file_name(name), inputs)
        before = os.dup(STDOUT)
        try:
            os.dup2(file.fileno(), STDOUT)
            yield name
        finally:
            os.dup2(before, STDOUT)
            os.close(before)


def write_run_file(
    program: str, args: argparse.Namespace, settings: Settings, reports: list[dict]
) -> None:
    """Beside FILE, if that is there to stay."""
    name = args.answer
    if name is None or name == STDOUT_NAME or not os.path.isfile(name):
        return
    RunFile(
        options=table.as_arguments(args),
        files=[file if file == "-" else os.path.abspath(file) for file in args.files],
        output=args.output,
        threshold=f"{settings.threshold.num}/{settings.threshold.den}",
        measure=measure_name(args),
        scheme=settings.keys_of["--scheme"],
        promise=settings.promise,
        counts=total(report["counts"] for report in reports),
        seconds={stage: round(spent, 3) for stage, spent in seconds_of(reports).items()},
        program=program,
        version=neardup.__version__,
    ).write(name)
