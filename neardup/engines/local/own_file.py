"""The run's own file, beside what -o names: what was asked of the run, and what it counted.

It is opened before the run, and has its name when the answer has.
"""

from __future__ import annotations

import argparse
import os
from typing import IO

from neardup.options.settings import Settings, measure_name
from neardup.options.table import as_arguments
from neardup.process.program import write_to
from neardup.process.run_file import RunFile
from neardup.process.summary import seconds_of, total
from neardup.process.verdict import LIKE
from neardup.process.version import VERSION


def write_run_file(
    own: IO[bytes],
    program: str,
    args: argparse.Namespace,
    settings: Settings,
    reports: list[dict],
) -> None:
    counts = total(report["counts"] for report in reports)
    told = RunFile(
        options=as_arguments(_with_absolute_names(args)),
        files=[file if file == "-" else os.path.abspath(file) for file in args.files],
        output=args.output,
        threshold=f"{settings.threshold.num}/{settings.threshold.den}",
        measure=measure_name(args),
        scheme=settings.keys_of["--scheme"],
        promise=settings.promise,
        counts={what: n for what, n in sorted(counts.items()) if not what.startswith(LIKE)},
        seconds={stage: round(spent, 3) for stage, spent in seconds_of(reports).items()},
        program=program,
        version=VERSION,
    )
    write_to(own, [told.format()])


def _with_absolute_names(args: argparse.Namespace) -> argparse.Namespace:
    """The same options, which are read from other folders, too."""
    against = args.against and [os.path.abspath(name) for name in args.against]
    counts = args.counts and os.path.abspath(args.counts)
    return argparse.Namespace(**{**vars(args), "against": against, "counts": counts})
