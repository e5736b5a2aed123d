"""Measure the cost of making, opening and querying an index, and of adding records to an empty one.

    python3 -m bench.index_queries
    python3 -m bench.index_queries --old 100000

prints a Markdown table.  Made-up videos, of which every 101st is a query, so that a tenth of the
queries have something similar in the index.  Each row is a process of its own; *CPU* is that of
what the row says, without the start of Python, and *memory* the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from bench.compare_increments import INDEX, remove_index, split
from bench.measure import DONE, ROOT, measured_apart
from bench.workloads import FOLDER
from neardup import Index

ADDED = FOLDER / "added.index"
OUTPUT = FOLDER / "similar.tsv"
LIMIT = 600.0
Records = list[tuple[str, list[int]]]


def records_of(path: Path, most: int | None = None) -> Records:
    """Return (id, shingles) of the first `most` records of a file, or of all records."""
    with open(path, encoding="utf-8") as file:
        lines = (line.split() for line in islice(file, most))
        return [(id_, [int(shingle) for shingle in rest]) for id_, *rest in lines]


def opened(new: Path) -> int:
    return len(Index.open(INDEX))


def at_once(new: Path) -> int:
    return len(Index.open(INDEX).query(records_of(new)))


def one_by_one(new: Path) -> int:
    index = Index.open(INDEX)
    return sum(len(index.query([record])) for record in records_of(new))


def added_at_once(new: Path) -> int:
    return added([records_of(new)])


def added_by_hundreds(new: Path) -> int:
    records = records_of(new)
    return added(records[first : first + 100] for first in range(0, len(records), 100))


def added_one_by_one(new: Path) -> int:
    return added([record] for record in records_of(new, 100))


def added(parts: Iterable[Records]) -> int:
    index = Index.create(ADDED, records="sets")
    return sum(index.add(part) for part in parts)


STEPS: dict[str, Callable[[Path], int]] = {
    "open": opened,
    "query, all in one call": at_once,
    "query, one a call": one_by_one,
    "add to an empty index, all in one call": added_at_once,
    "add, 100 a call": added_by_hundreds,
    "add 100, one a call": added_one_by_one,
}


def measure(step: str, new: Path) -> None:
    """Print the result and cost of a step as JSON; the time to read the records is subtracted."""
    _ = Index.open  # imports what it needs
    before = time.process_time(), time.perf_counter()
    if step != "open":
        records_of(new, 100 if step == "add 100, one a call" else None)
    reading = time.process_time() - before[0], time.perf_counter() - before[1]
    before = time.process_time(), time.perf_counter()
    answer = STEPS[step](new)
    spent = time.process_time() - before[0], time.perf_counter() - before[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([answer, *(a - b for a, b in zip(spent, reading)), peak]))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.index_queries", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--old", type=int, default=1_000_000)
    parser.add_argument("--new", type=int, default=10_000)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        measure(args.step, args.file)
        return 0
    old, new = split(args.old, args.new)
    print("| | answer | CPU s | s | memory, MiB |\n|---|---:|---:|---:|---:|")
    remove_index()
    command = [sys.executable, "-m", "neardup", "index", str(old), "--to", str(INDEX)]
    show("`neardup index`", command)
    one = new.with_suffix(".one.txt")
    one.write_bytes(new.read_bytes().split(b"\n")[0] + b"\n")
    for name, file in (("one record", one), (f"{args.new:,} records", new)):
        command = [sys.executable, "-m", "neardup", "find", str(INDEX), str(file)]
        show(f"`neardup find`, {name}", command)
    for step in STEPS:
        shutil.rmtree(ADDED, ignore_errors=True)
        command = [sys.executable, "-m", "bench.index_queries", "--step", step, "--file", str(new)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        answer, cpu, seconds, peak = json.loads(done.stdout)
        print(f"| {step} | {answer:,} | {cpu:.2f} | {seconds:.2f} | {peak:.0f} |", flush=True)
    return 0


def show(name: str, command: list[str]) -> None:
    run = measured_apart(command, str(OUTPUT), LIMIT)
    if run.status != DONE:
        print(f"| {name} | {run.status}: {run.said} | | | |")
        return
    lines = len(OUTPUT.read_bytes().splitlines())
    print(f"| {name} | {lines:,} | {run.cpu:.2f} | {run.seconds:.2f} | {run.mebibytes:.0f} |")


if __name__ == "__main__":
    sys.exit(main())
