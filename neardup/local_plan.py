"""`python3 -m neardup.local_plan PLAN ARGUMENT…`: take run_local.sh's command line apart.

The file PLAN gets, each followed by a NUL: how many mappers and reducers, a sort's memory, the
number of options for every stage, these options, and the input files.  Where the command line is
wrong, or asks for help, no file is written.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from neardup.interpreter import require

require("numpy", name="run_local.sh")

from neardup import options
from neardup.errors import UsageError
from neardup.options import Settings
from neardup.streaming import check_inputs, run

DESCRIPTION = """Find the similar pairs of records in files, on all cores of this machine.

A record is a line: an id and its shingles (integers), or with --input text an id, a tab and a
text.  Each pair is printed once, sorted: A TAB B TAB SIMILARITY.

    ./run_local.sh data/videos.txt > pairs.tsv
    ./run_local.sh --input text --threshold 0.8 corpus/*.txt.gz > pairs.tsv
"""


def main() -> None:
    plan, *arguments = sys.argv[1:]
    parser = options.parser("run_local.sh", DESCRIPTION)
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="plain, .gz or .bz2; - is standard input"
    )
    parser.add_argument(
        "--jobs", metavar="N", default=str(_cores()), help="mappers and reducers (default: cores)"
    )
    parser.add_argument(
        "--sort-memory",
        metavar="SIZE",
        default="256M",
        help="what each of N sorts may hold in memory, as 256M or 2G (default: 256M)",
    )
    args = parser.parse_intermixed_args(arguments)
    Settings.of(args)
    if not re.fullmatch(r"[1-9][0-9]{0,5}[KMGT]", args.sort_memory):
        raise UsageError(f"--sort-memory: {args.sort_memory!r} is not a size such as 256M")
    if not re.fullmatch(r"[1-9][0-9]{0,2}", args.jobs):
        raise UsageError(f"--jobs: {args.jobs!r} is not an integer from 1 to 999")
    if args.files.count("-") > 1:
        raise UsageError("-: standard input can be read only once")
    check_inputs(args.files)
    flags = options.as_arguments(args)
    fields = [args.jobs, args.sort_memory, str(len(flags)), *flags, *args.files]
    Path(plan).write_bytes(b"".join(os.fsencode(field) + b"\0" for field in fields))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(run("run_local.sh", main))
