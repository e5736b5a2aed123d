"""`videos`: made-up records in the shape of the real ones, as many as wanted."""

from __future__ import annotations

import argparse

from neardup.options.table import integer, read
from neardup.runtime.arguments import bare_parser
from neardup.runtime.errors import UsageError
from neardup.runtime.program import run, write_all
from neardup.sets.synthetic_videos import lines

NAME = "neardup videos"
MOST_RECORDS = 10**9 - 1  # their ids have nine digits
LONGEST = 5_000_000
DESCRIPTION = """Make up records in the shape of the real ones, one record a line, to try things on.

A record has 50 to 256 different shingles.  A tenth of them have one to three near-copies, of which
a fifth are equal to them, and another fifth are at 0.9 exactly.  The same options give the same
bytes on any machine, and take the same memory for any number of records.

    python3 -m neardup videos --records 100000 > videos.txt
    python3 -m neardup videos --records 2000 --cluster 30 > the-same-as-data-videos.txt
"""


def main() -> int:
    return run(NAME, _videos)


def _videos() -> None:
    args = _command_line()
    records = integer("--records", args.records, 0, MOST_RECORDS)
    seed = integer("--seed", args.seed, 0, 2**64 - 1)
    cluster = integer("--cluster", args.cluster, 0, MOST_RECORDS)
    hot = integer("--hot", args.hot, 0, MOST_RECORDS)
    long = integer("--long", args.long, 0, LONGEST)
    if cluster + hot > records:
        planted = f"--cluster {cluster} and --hot {hot}"
        raise UsageError(f"{planted} are more than --records {records}; ask for as many records")
    write_all(lines(records, seed, read("--copies", _share, args.copies), cluster, hot, long))


def _command_line() -> argparse.Namespace:
    parser = bare_parser(f"python3 -m {NAME}", DESCRIPTION)
    for flag, metavar, default, help_ in (
        ("--records", "N", "2000", "how many lines"),
        ("--seed", "N", "1", "another seed, other records; 0 to 2^64-1"),
        ("--copies", "SHARE", "0.1", "of the originals, how many have near-copies; 0 to 1"),
        ("--cluster", "SIZE", "0", "of the records, so many are near-copies of one"),
        ("--hot", "SIZE", "0", "of the records, so many are copies of another one"),
        ("--long", "SIZE", "0", "one more record, of so many shingles, at most 5,000,000"),
    ):
        parser.add_argument(
            flag, metavar=metavar, default=default, help=f"{help_} (default: {default})"
        )
    return parser.parse_args()


def _share(text: str) -> float:
    """
    >>> _share("0.25")
    0.25
    """
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not 0 <= value <= 1:
        raise ValueError(f"{text} is no share, from 0 to 1")
    return value
