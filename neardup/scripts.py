"""What the command-line scripts do: options, one stage, a report.

Each function here is the `main` of one script and returns its exit code.
"""

from __future__ import annotations

import sys

from neardup import options
from neardup.counters import Counters
from neardup.options import Settings
from neardup.stages import dedup_pairs, map_records, reduce_buckets
from neardup.streaming import blocks_of, check_inputs, read_files, run, write_all

MAPPER = """Min-hash each record and write it once for each of its keys.

Reads record lines, an id and its shingles; the next stage is a sort by key:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""
REDUCER = """Verify the records that share a key and write the similar pairs.

Reads the sorted output of mapper.py, and takes the same options as it:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""
DEDUP = """Write each pair once: for merging the pairs of several runs.

Reads sorted pairs; a pair that comes with several similarities keeps the highest:

    LC_ALL=C sort PAIRS… | ./dedup_reducer.py
"""


def mapper() -> int:
    return run("mapper.py", _map)


def reducer() -> int:
    return run("reducer.py", _reduce)


def dedup_reducer() -> int:
    return run("dedup_reducer.py", _dedup)


def _map() -> None:
    parser = options.parser("mapper.py", MAPPER)
    parser.add_argument("files", nargs="*", metavar="FILE", help="default: -, standard input")
    args = parser.parse_args()
    settings = Settings.of(args)
    files = args.files or ["-"]
    check_inputs(files)
    counters = Counters("mapper", progress="records")
    blocks = read_files(files, settings.max_line)
    write_all(piece for _, piece in map_records(blocks, settings, counters))
    counters.report()


def _reduce() -> None:
    args = options.parser("reducer.py", REDUCER).parse_args()
    settings = Settings.of(args)
    counters = Counters("reducer", progress="pairs")
    write_all(reduce_buckets(blocks_of(sys.stdin.buffer), settings, counters))
    counters.report()


def _dedup() -> None:
    options.bare_parser("dedup_reducer.py", DEDUP).parse_args()
    counters = Counters("dedup")
    write_all(dedup_pairs(sys.stdin.buffer, counters))
    counters.report()
