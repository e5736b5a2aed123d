"""What was asked of a run: from the file that a run leaves beside its answer, or from options.

What neither of them says is not known, and the page says so.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from neardup.evaluation.run_options import options_of
from neardup.index.is_index import is_index
from neardup.options import table
from neardup.options.common import OUTPUT_OPTIONS
from neardup.options.settings import form_of, settings_before_counts
from neardup.options.table import OPTIONS
from neardup.process.errors import UsageError
from neardup.process.run_file import RunFile, run_file_name
from neardup.reading.line_form import LineForm

FLAGS = OPTIONS.keys() - OUTPUT_OPTIONS | {"--output", "--against"}
NAMING = {"--against", "--counts"}  # files, which may be called otherwise from here
ANSWERS = ("pairs", "links")
NAME = "neardup report"


@dataclass(frozen=True)
class Asked:
    """source: where this is known from; options: as they were given; form: of the lines of the
    records.  What is "", None or empty is not known."""

    source: str
    options: list[str]
    form: LineForm
    threshold: Fraction | None = None
    measure: str = ""
    scheme: str = ""
    promise: str = ""
    links: bool = False
    files: list[str] = field(default_factory=list)
    old_files: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    indexed: bool = False  # whether there were old records in an index

    def shown_options(self) -> list[str]:
        """Without those that say no more than the default."""
        return [each for each in self.options if each != _default(each.partition("=")[0])]


def file_of_run(pairs: str) -> Path | None:
    """The file that a run has left: in the folder that it wrote, or beside the file."""
    path = Path(run_file_name(pairs))
    return path if pairs != "-" and path.is_file() else None


def asked_of_options(args: argparse.Namespace) -> Asked:
    """From the command line: what was not given there is not known; UsageError."""
    _check_output(args.output, "--output")
    options = table.as_arguments(args)
    form = form_of(args)
    links = args.output == "links"
    if args.threshold is None:
        return Asked("", options, form, links=links)
    settings = settings_before_counts(args)
    return Asked(
        "the options given to this command",
        options,
        form,
        Fraction(settings.threshold.num, settings.threshold.den),
        args.measure or "",
        settings.keys_of["--scheme"] if args.scheme or args.exact else "",
        settings.promise,
        links,
    )


def asked_of_run(path: Path, args: argparse.Namespace) -> Asked:
    """From a run's own file; UsageError where the command line says something else, StageError for
    the file of another version."""
    run = RunFile.of(path)
    _check_output(run.output, f"{path}: --output")
    for option in table.as_arguments(args):
        flag = option.partition("=")[0]
        if flag not in NAMING and option not in run.options and option != _default(flag):
            raise UsageError(f"{option}: {path} says what was asked; leave {flag} out")
    given = options_of(run, path)
    given.files = run.files
    return Asked(
        path.name,
        run.options,
        form_of(given),
        Fraction(run.threshold),
        run.measure,
        run.scheme,
        run.promise,
        run.output == "links",
        run.files,
        [name for name in given.against or () if not is_index(name)],  # which has no texts
        run.counts,
        any(map(is_index, given.against or ())),
    )


def _default(flag: str) -> str:
    return f"{flag}={OPTIONS[flag].get('default')}"


def _check_output(output: str, flag: str) -> None:
    if output not in ANSWERS:
        raise UsageError(
            f"{flag}={output}: the report is of pairs; run with --output pairs, and name what "
            "--output removed, or --removed, has written by --removed FILE"
        )
