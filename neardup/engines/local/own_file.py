"""The run's own file, beside what -o names: what was asked of the run, and what it counted."""

from __future__ import annotations

import argparse
import os

from neardup.engines.local.answer_file import STDOUT_NAME
from neardup.engines.local.whole_file import whole_or_not
from neardup.options.settings import Settings, measure_name
from neardup.process.run_file import RunFile, run_file_name
from neardup.process.summary import seconds_of, total
from neardup.process.version import VERSION


def write_run_file(
    program: str, args: argparse.Namespace, settings: Settings, reports: list[dict]
) -> None:
    """Beside FILE, if that is there to stay."""
    name = args.answer
    if name is None or name == STDOUT_NAME:
        return
    if not (os.path.isfile(name) or os.path.isdir(name)):  # such as /dev/null
        return
    from neardup.options.table import as_arguments  # with all schemes

    told = RunFile(
        options=as_arguments(_with_absolute_names(args)),
        files=[file if file == "-" else os.path.abspath(file) for file in args.files],
        output=args.output,
        threshold=f"{settings.threshold.num}/{settings.threshold.den}",
        measure=measure_name(args),
        scheme=settings.keys_of["--scheme"],
        promise=settings.promise,
        counts=dict(sorted(total(report["counts"] for report in reports).items())),
        seconds={stage: round(spent, 3) for stage, spent in seconds_of(reports).items()},
        program=program,
        version=VERSION,
    )
    with whole_or_not("-o", run_file_name(name), []) as file:
        file.write(told.format())


def _with_absolute_names(args: argparse.Namespace) -> argparse.Namespace:
    """The same options, which are read from other folders, too."""
    against = args.against and [os.path.abspath(name) for name in args.against]
    counts = args.counts and os.path.abspath(args.counts)
    return argparse.Namespace(**{**vars(args), "against": against, "counts": counts})
