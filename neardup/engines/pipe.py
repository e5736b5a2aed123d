"""mapper.py, reducer.py and dedup_reducer.py: the mission's job as a pipe."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator

from neardup.engines.inputs import blocks_to_read, with_files
from neardup.options.settings import Settings
from neardup.options.table import Options, parser
from neardup.reading.blocks import Block, lines_of_stage
from neardup.runtime.arguments import bare_parser
from neardup.runtime.counters import Counters
from neardup.runtime.program import run, write_all
from neardup.stages.pairs import dedup_pairs, map_records
from neardup.stages.phases import lines_in_blocks, map_shared, read_shared_keys, reduce_either
from neardup.stages.token_counting import cost_told

MAPPER = """Write each record once for each of its keys.

Reads record lines, an id and its shingles; the next stage is a sort by key:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""


def mapper() -> int:
    return run("mapper.py", _map)


def _map() -> None:
    asked = with_files(parser("mapper.py", MAPPER))
    asked.add_argument(
        "--blocks",
        action="store_true",
        help="write blocks of lines, of which Hadoop moves a thousandth as many; reducer.py takes "
        "either",
    )
    asked.add_argument(
        "--shared-keys",
        metavar="FILE",
        help="lines for these keys alone: what step.py share wrote, or a folder of such files",
    )
    args = asked.parse_args()
    settings = cost_told(Settings.of(Options.of(args)))
    counters = Counters("mapper", progress="records")
    blocks = blocks_to_read(args, settings)
    if args.blocks or args.shared_keys is not None:
        write_all(_of_a_round(args, settings, counters, blocks))
    else:
        write_all(piece for _, piece in map_records(blocks, settings, counters))
    counters.report()


def _of_a_round(
    args: Namespace, settings: Settings, counters: Counters, blocks: Iterator[Block]
) -> Iterator[bytes]:
    # A plain pipe needs none of this.
    shared = None
    if args.shared_keys is not None:
        shared = read_shared_keys(args.shared_keys, settings)
    if args.blocks:
        return lines_in_blocks(blocks, settings, counters, shared)
    return (piece for _, piece in map_shared(blocks, settings, counters, shared))


REDUCER = """Verify the records that share a key and write the similar pairs.

Reads the sorted output of mapper.py, and takes the same options as it:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""


def reducer() -> int:
    return run("reducer.py", _reduce)


def _reduce() -> None:
    args = parser("reducer.py", REDUCER).parse_args()
    settings = Settings.of(Options.of(args))
    counters = Counters("reducer", progress="keyed lines")
    write_all(reduce_either(sys.stdin.buffer, settings, counters))
    counters.report()


DEDUP = """Write each pair once: for merging the pairs of several runs.

Reads sorted pairs; a pair that comes with several similarities keeps the highest:

    LC_ALL=C sort PAIRS… | ./dedup_reducer.py
"""


def dedup() -> int:
    return run("dedup_reducer.py", _dedup)


def _dedup() -> None:
    bare_parser("dedup_reducer.py", DEDUP).parse_args()
    counters = Counters("dedup")
    write_all(dedup_pairs(lines_of_stage(sys.stdin.buffer), counters))
    counters.report()
