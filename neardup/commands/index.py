"""`index`: store the keys and shingles of old records, so that runs need not read their files."""

import sys

from neardup.engines.local.index_build import build
from neardup.evaluation.exact_answers import add_files
from neardup.options import command_parser, table
from neardup.runtime.program import UsageError, cores
from neardup.stored.index_manifest import OF_RUNS

SHORT = {
    **command_parser.SHORT,
    "--to": "the index: a new folder, or with --add an index",
    "--add": "add to an index that was made with the same options",
}
DESCRIPTION = """Make an index of old records, against which later runs compare new records.

It holds the keys and shingles of the old records and replaces their files.  A run reads only the
parts that new records need, and takes its options from the index:

    python3 -m neardup index old.txt --to old.index
    ./run_local.sh --against old.index new.txt > pairs.tsv
    python3 -m neardup index new.txt --to old.index --add
"""


def main() -> None:
    flags = [flag for flag in table.OPTIONS if flag not in OF_RUNS]
    parser = table.parser("python3 -m neardup index", DESCRIPTION, flags, SHORT)
    add_files(parser)
    parser.add_argument("--to", metavar="FOLDER", required=True, help=SHORT["--to"])
    parser.add_argument("--add", action="store_true", help=SHORT["--add"])
    parser.add_argument(
        "--jobs",
        metavar="N",
        default=str(cores()),
        help="number of processes; fewer if the input is small (default: one per core)",
    )
    parser.add_verbosity()
    args = parser.parse_intermixed_args(command_parser.plain_names(sys.argv[1:]))
    if args.to == "":
        raise UsageError("--to: expected the name of a folder, got ''")
    build(args)
