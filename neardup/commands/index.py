"""`index`: store the keys and shingles of old records, so that runs need not read their files."""

import sys

from neardup.engines.local.index_build import build
from neardup.engines.local.run import plain_names
from neardup.evaluation.exact_answers import add_files
from neardup.options import table
from neardup.runtime.program import cores
from neardup.stored.index_manifest import OF_RUNS

DESCRIPTION = """Make an index of old records, for runs that ask what is new.

It holds their keys and shingles, so that a run reads only those that new records share, and it
replaces the files that it was made of.  A run takes over its options:

    python3 -m neardup index old.txt --to old.index
    ./run_local.sh --against old.index new.txt > pairs.tsv
    python3 -m neardup index new.txt --to old.index --add
"""


def main() -> None:
    flags = [flag for flag in table.OPTIONS if flag not in OF_RUNS]
    parser = table.parser("python3 -m neardup index", DESCRIPTION, flags)
    add_files(parser)
    parser.add_argument("--to", metavar="FOLDER", required=True, help="the index: a new folder")
    parser.add_argument(
        "--add", action="store_true", help="extend the index, which was made with the same options"
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        default=str(cores()),
        help="processes, or fewer where the input is small (default: cores)",
    )
    parser.add_verbosity()
    build(parser.parse_intermixed_args(plain_names(sys.argv[1:])))
