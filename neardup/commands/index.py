"""`index`: store the keys and shingles of old records, so that runs need not read their files."""

import sys

from neardup.engines.local.index_build import build
from neardup.options import table
from neardup.options.command_parser import SHARED, flags, plain_names
from neardup.runtime.program import UsageError
from neardup.stored.index_manifest import OF_RUNS

ONE_PER_CORE = "number of processes; fewer if the input is small (default: one per core)"
OWN = flags(
    """
    files FILE…     plain or compressed; - is standard input
    --to FOLDER     the index: a new folder, or with --add an index  -h
    --add           add to an index that was made with the same options  -h
    """,
    to={"required": True},
)
DESCRIPTION = """Make an index of old records, against which later runs compare new records.

It holds the keys and shingles of the old records and replaces their files.  A run reads only the
parts that new records need, and takes its options from the index:

    python3 -m neardup index old.txt --to old.index
    ./run_local.sh --against old.index new.txt > pairs.tsv
    python3 -m neardup index new.txt --to old.index --add
"""


def main() -> None:
    flags = [flag for flag in table.OPTIONS if flag not in OF_RUNS]
    parser = table.parser("python3 -m neardup index", DESCRIPTION, flags, OWN)
    parser.add_shared("--jobs", SHARED["--jobs"]._replace(help=ONE_PER_CORE))
    args = parser.parse_intermixed_args(plain_names(sys.argv[1:]))
    if args.to == "":
        raise UsageError("--to: expected the name of a folder, got ''")
    build(args)
