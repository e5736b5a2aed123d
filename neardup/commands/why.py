"""`why`: why two records are a pair, or are not: what they share, and where they meet."""

from __future__ import annotations

import argparse
import os

import numpy as np

from neardup.evaluation.exact_options import check_files, gathered
from neardup.evaluation.explanation import WIDTH, explained
from neardup.options import table
from neardup.options.settings import Settings, counts_first, settings_before_counts
from neardup.options.table import OPTIONS, OUTPUT_OPTIONS
from neardup.process.counters import Counters
from neardup.process.errors import StageError, UsageError, shown
from neardup.process.program import run
from neardup.process.verdict import judged
from neardup.reading.blocks import read_files
from neardup.stages import parsed
from neardup.token_counts.in_memory import TokenCounter

NAME = "neardup why"
DESCRIPTION = """Explain two records: what they share, how similar they are, and whether they meet.

Takes the options of the job, so that it makes the same keys.  Where a scheme asks how rare tokens
are, all tokens of FILE are counted first, unless --counts has them.

    python3 -m neardup why --threshold 0.8 videos.txt VIDEO_1 VIDEO_3
"""


def main() -> int:
    return run(NAME, _why)


def _why() -> None:
    args = _command_line()
    ids = os.fsencode(args.a), os.fsencode(args.b)
    if ids[0] == ids[1]:
        raise UsageError(f"{shown(ids[0])} twice: an id is never paired with itself")
    counting = counts_first(args)
    settings = settings_before_counts(args)
    check_files(args.files)
    counter = TokenCounter()
    counters = Counters("why", progress="records")
    held = []
    for batch in parsed(read_files(args.files, settings.max_line), settings, counters):
        if counting:
            counter.add(batch.sets)
        mine = [i for i, id_ in enumerate(batch.ids) if id_ in ids]
        held.append(batch.take(np.array(mine, dtype=np.int64)))
    records = gathered(held)
    for id_ in ids:
        if id_ not in records.ids:
            judged(counters.told(), settings.max_bad)
            raise StageError(f"none of {counters.counts['records']:,} records is {shown(id_)}")
    if counting:
        settings = Settings.of(args, counter.counts())
    for name, text in explained(records, ids, settings, args.measure):
        print(f"{name:{WIDTH}}{text}")
    judged(counters.told(), settings.max_bad)


def _command_line() -> argparse.Namespace:
    parser = table.parser(f"python3 -m {NAME}", DESCRIPTION, OPTIONS.keys() - OUTPUT_OPTIONS)
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="plain, .gz or .bz2; - is standard input"
    )
    parser.add_argument("a", metavar="A", help="an id")
    parser.add_argument("b", metavar="B", help="another one")
    return parser.parse_intermixed_args()
