"""Measure the memory per record of the process that decides which records are removed.

    python3 -m bench.decision_memory

Edges of so many records, in families of three of which the third is like the second only, are
decided by `step.py decide`, for two numbers of records: the bytes are the difference of the peaks
by the difference of the records.  Seconds are those of the larger one, start included.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterator

from bench.measure import DONE, measured_apart
from bench.workloads import FOLDER
from neardup.lines.answer_lines import format_edge, format_presence
from neardup.reading.blocks import NEW

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
    args = parser.parse_args()
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
    decide = shlex.join([sys.executable, "step.py", "decide", *asked])
    command = ["sh", "-c", f"exec {decide} < {shlex.quote(str(file))}"]
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


if __name__ == "__main__":
    main()
