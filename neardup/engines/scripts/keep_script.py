"""keep_mapper.py: the lines that stay."""

from __future__ import annotations

from neardup.engines.kept_inputs import keep_of_files, kept_of_task
from neardup.engines.scripts.script_files import with_files
from neardup.options.common import MAX_LINE_MIB, integer
from neardup.options.settings import form_of
from neardup.options.table import parser
from neardup.process.program import run, write_all
from neardup.reading.blocks import check_inputs, in_task

KEEP = """Write the lines of an input without those of the records that go.

Takes what decide_reducer.py wrote with --output kept, and the files that mapper.py was given, in
the same order:

    ./mapper.py --output kept FILE… | LC_ALL=C sort | ./reducer.py --output kept \\
        | LC_ALL=C sort | ./decide_reducer.py --output kept > decided.tsv
    ./keep_mapper.py --decided decided.tsv FILE… > clean.txt
    cut -f 2- decided.tsv > removed.tsv
"""
KEEP_FLAGS = ("--input", "--id", "--text", "--max-line", "--input-files")


def main() -> int:
    return run("keep_mapper.py", _keep)


def _keep() -> None:
    asked = with_files(parser("keep_mapper.py", KEEP, KEEP_FLAGS))
    asked.add_argument(
        "--decided", metavar="FILE", required=True, help="what decide_reducer.py wrote"
    )
    args = asked.parse_args()
    check_inputs([args.decided])
    with open(args.decided, "rb") as decided:
        if in_task():
            write_all(kept_of_task(decided, args.input_files))
        else:
            longest = integer("--max-line", args.max_line, 1, MAX_LINE_MIB) << 20
            keep_of_files(form_of(args), decided, args.files or ["-"], longest)
