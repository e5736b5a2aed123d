"""Measure the memory per record of the process that decides which records are removed.

    python3 -m bench.decision_memory

Edges of so many records, in families of three of which the third is like the second only, are
decided in a process of their own, for two numbers of records: the bytes are the difference of the
peaks by the difference of the records.  Seconds are those of the larger one, start included.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

from bench.measure import DONE, measured_apart
from bench.workloads import FOLDER
from neardup.lines.answer_lines import format_edge, format_presence
from neardup.options import table
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.blocks import NEW, blocks_of
from neardup.runtime.counters import Counters
from neardup.stages.pairs import decide_edges

ASKED = (
    ["--output", "removed", "--rule", "direct"],
    ["--output", "removed", "--rule", "cluster"],
    ["--output", "clusters"],
)
FAMILY = 3
LIMIT = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.decision_memory", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--records", nargs=2, type=int, default=[300_000, 1_500_000])
    parser.add_argument("--decide", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.decide:
        decide(args.decide)
        return
    print("| options | records in pairs | seconds | peak MiB | bytes for a record |")
    print("|---|---:|---:|---:|---:|")
    FOLDER.mkdir(exist_ok=True)
    for asked in ASKED:
        seconds, peaks = zip(*(measured(records, asked) for records in args.records))
        held = (peaks[1] - peaks[0]) * 2**20 / (args.records[1] - args.records[0])
        cells = f"{args.records[1]:,} | {seconds[1]:.1f} | {peaks[1]:.0f} | {held:.0f}"
        print(f"| `{' '.join(asked)}` | {cells} |", flush=True)


def measured(records: int, asked: list[str]) -> tuple[float, float]:
    """Return the seconds and the peak memory (MiB) of a decision on `records` records."""
    file = FOLDER / "edges.txt"
    with open(file, "wb") as lines:
        lines.writelines(edge_lines(records, smallest="clusters" in asked))
    command = [sys.executable, "-m", "bench.decision_memory", "--decide", *asked, str(file)]
    run = measured_apart(command, os.devnull, LIMIT)
    file.unlink()
    if run.status != DONE:
        raise SystemExit(f"bench.decision_memory: {run.status}: {run.said}")
    return run.seconds, run.mebibytes


def edge_lines(records: int, smallest: bool = False) -> Iterator[bytes]:
    r"""Yield lines of records and edges, sorted by id if `smallest`, else by place in the input.

    >>> b"".join(edge_lines(2)).splitlines()[0]
    b'18000000000000000VIDEO_000000000\t.'
    """
    before = b""
    for i in range(records):
        place, id_ = b"%016x" % (NEW + i), b"VIDEO_%09d" % i
        record = b"1%b\1%b" % (id_, place) if smallest else b"1%b%b" % (place, id_)
        yield format_presence(record)
        if i % FAMILY:
            yield format_edge(record, before, b"0.912345000000000000")
        before = record


def decide(arguments: list[str]) -> None:
    *asked, file = arguments
    settings = Settings.of(Options.of(table.parser("bench", "").parse_args(asked)))
    with open(file, "rb") as lines:
        sys.stdout.buffer.writelines(decide_edges(blocks_of(lines), settings, Counters("decide")))


if __name__ == "__main__":
    main()
