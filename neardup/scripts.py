"""What the command-line scripts do: options, one stage, a report.

Each function here is the `main` of one script and returns its exit code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

from neardup import options
from neardup.counters import Counters
from neardup.options import Settings
from neardup.records import LINE_TOO_LONG
from neardup.stages import dedup_pairs, map_records, reduce_buckets, reject
from neardup.streaming import Block, check_inputs, read_files, run, stdin_blocks, write_all

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
    parser.add_argument("--share", metavar="K/N", default="0/1", help=argparse.SUPPRESS)
    parser.add_argument("--partitions", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--write-to", metavar="PREFIX", help=argparse.SUPPRESS)
    args = parser.parse_args()
    settings = Settings.of(args)
    files = args.files or ["-"]
    check_inputs(files)
    counters = Counters("mapper", progress="records")
    mine, of = map(int, args.share.split("/"))
    blocks = read_files(files, settings.max_line, (mine, of))
    whole = _short_lines(blocks, settings, counters)
    lines = map_records(whole, settings, counters, args.partitions)
    if args.write_to:
        _write_partitions(lines, args.write_to, args.partitions)
    else:
        write_all(piece for _, piece in lines)
    counters.report()


def _short_lines(
    blocks: Iterable[Block], settings: Settings, counters: Counters
) -> Iterator[Block]:
    for block in blocks:
        if block.cut:
            reject(block.place, block.line, block.data, LINE_TOO_LONG, settings, counters)
        else:
            yield block


def _write_partitions(lines: Iterable[tuple[int, bytes]], prefix: str, count: int) -> None:
    """Partition p goes to the file PREFIX.p, as a Hadoop map task keeps one for each reducer."""
    with ExitStack() as stack:
        files = [stack.enter_context(open(f"{prefix}.{p}", "wb")) for p in range(count)]
        for partition, piece in lines:
            files[partition].write(piece)


def _reduce() -> None:
    args = options.parser("reducer.py", REDUCER).parse_args()
    settings = Settings.of(args)
    counters = Counters("reducer", progress="pairs")
    write_all(reduce_buckets(stdin_blocks(), settings, counters))
    counters.report()


def _dedup() -> None:
    options.bare_parser("dedup_reducer.py", DEDUP).parse_args()
    counters = Counters("dedup")
    write_all(dedup_pairs(sys.stdin.buffer, counters))
    counters.report()
