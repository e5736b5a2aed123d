"""`python3 -m neardup.local_mapper PASS K/N PREFIX … FILE…`: mapper K of run_local.sh's N.

All N mappers read all files, and each works on every N-th block of lines.

    count   writes bare keys to PREFIX.0 …, for `neardup.sieve`
    send    writes keyed lines to PREFIX.0 … PREFIX.N-1, one file for each reducer
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack

import numpy as np

from neardup import options
from neardup.counters import Counters
from neardup.options import Settings
from neardup.sieve import PARTITIONS, Sieve, partitioned
from neardup.stages import keyed, map_records
from neardup.streaming import read_files, run


def main() -> None:
    parser = options.parser("neardup.local_mapper", __doc__)
    parser.add_argument("task", choices=["count", "send"])
    parser.add_argument("share", help="K/N")
    parser.add_argument("prefix")
    parser.add_argument("--sieve", help="the table that neardup.sieve wrote")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    settings = Settings.of(args)
    worker, of = map(int, args.share.split("/"))
    blocks = read_files(args.files, settings.max_line, (worker, of))
    counters = Counters(args.task, progress="records")
    if args.task == "count":
        pieces = (
            piece
            for _, keys in keyed(blocks, settings, counters)
            for piece in partitioned(keys.values)
        )
        _write(pieces, args.prefix, PARTITIONS)
    else:
        sieve = Sieve(np.fromfile(args.sieve, dtype=np.uint8))
        _write(map_records(blocks, settings, counters, of, sieve), args.prefix, of)
        counters.forget()  # the first pass has counted the same records
    counters.report()


def _write(pieces: Iterable[tuple[int, bytes]], prefix: str, count: int) -> None:
    """Piece by piece to the file of its partition."""
    with ExitStack() as stack:
        files = [stack.enter_context(open(f"{prefix}.{part}", "wb")) for part in range(count)]
        for part, piece in pieces:
            files[part].write(piece)


if __name__ == "__main__":
    sys.exit(run("run_local.sh", main))
