"""mapper.py: record lines to keyed lines."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from neardup.engines.counting_first import cost_told
from neardup.engines.in_blocks import lines_in_blocks
from neardup.engines.scripts.script_files import blocks_to_read, with_files
from neardup.engines.shared_keys_file import read_shared_keys
from neardup.options.settings import Settings
from neardup.options.table import parser
from neardup.process.counters import Counters
from neardup.process.program import run, write_all
from neardup.reading.blocks import Block
from neardup.round_stages import map_shared
from neardup.stages import map_records

MAPPER = """Write each record once for each of its keys.

Reads record lines, an id and its shingles; the next stage is a sort by key:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""


def main() -> int:
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
        help="lines for these keys alone: what share_keys.py wrote, or a folder of such files",
    )
    args = asked.parse_args()
    settings = cost_told(Settings.of(args))
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
