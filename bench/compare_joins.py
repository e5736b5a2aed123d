"""Time the in-memory joins of neardup and of SetSimilaritySearch on package descriptions.

    python3 -m bench.compare_joins --rounds 3

Seconds are those of the call alone, from sets that are in memory; medians.  The last column is what
each filter leaves, from all pairs to those at the threshold.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np

from bench.workloads import WORKLOADS, prepare
from neardup.joins import JOINS
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Threshold

PEER = "SetSimilaritySearch"
LEFT_OUT = ("nested_loop",)  # hours


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.compare_joins", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--threshold", type=Threshold.parse, default="0.9")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rows = package_words(args.records)
    print("| join | seconds | pairs | candidates |\n|---|---|---|---|")
    for name, join in JOINS.items():
        if name not in LEFT_OUT:
            seconds, joined = timed(partial(join, rows, args.threshold), args.rounds)
            left = ", ".join(f"{count:,} {step}" for step, count in joined.candidates.items())
            print(f"| `{name}` | {seconds:.2f} | {len(joined.left):,} | {left} |", flush=True)
    sets = [rows.row(i).tolist() for i in range(len(rows))]
    if not find_spec(PEER):
        print(f"{PEER} is not installed: make bench installs it")
        return
    all_pairs = import_module(PEER).all_pairs
    t = float(args.threshold)
    seconds, pairs = timed(lambda: list(all_pairs(sets, "jaccard", t)), args.rounds)
    print(f"| {PEER} | {seconds:.2f} | {len(pairs):,} | |")


def package_words(records: int) -> Ragged:
    """Return the word sets of the first `records` packages of the Debian archive."""
    workload = next(each for each in WORKLOADS if each.name == "W2")
    prepare(workload)
    batch, _ = parse_shingle_lines(workload.path.read_bytes())
    return batch.sets.take(np.arange(min(records, len(batch.ids))))


def timed(call: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """Call a function `rounds` times; return the median seconds and the last result."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - started)
    return median(seconds), result


if __name__ == "__main__":
    main()
