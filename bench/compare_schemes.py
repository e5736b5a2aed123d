"""Compare schemes by their cost and recall on two real data sets.

    python3 -m bench.compare_schemes --rounds 3

prints the tables of bench/results/schemes.md, one for each data set.
Each scheme runs by run_local.sh with its default options, and some with others; seconds are
medians.  *compared* are the pairs that bitmaps do not rule out; recall is that of the pairs with
Jaccard similarity 0.9.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import time
from statistics import median
from typing import NamedTuple

from bench.workloads import ROOT, WORKLOADS, Workload, prepare
from neardup.schemes import SCHEMES

# Beside each scheme with its default options.
MORE = (
    "minhash --weights tf",
    "minhash --weights idf",
    "supershingle --supershingles 72:12:2",
    "simhash --bits 128 --distance 6 --max-bands 64",
    "projection --measure agreement --threshold 0.97",
)
NAMES = {"W2": "words", "W4": "sources"}
HEAD = "| `--scheme` | keys a record | compared | recall | seconds |\n|---|---:|---:|---:|---:|"


class Run(NamedTuple):
    seconds: float
    counts: dict[str, int]
    pairs: set[bytes]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.compare_schemes", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    workloads = [each for each in WORKLOADS if each.name in NAMES]
    for workload in workloads:
        prepare(workload)
    for workload in workloads:
        print(f"{NAMES[workload.name]}:\n\n{HEAD}")
        for scheme in (*SCHEMES, *MORE):
            if scheme == MORE[0]:
                print(f"\n{HEAD.replace('`--scheme`', 'with other options')}")
            print(
                f"| `{scheme}` | {' | '.join(cells(workload, scheme, args.rounds))} |", flush=True
            )
        print()


def cells(workload: Workload, scheme: str, rounds: int) -> list[str]:
    """Return four table cells for a scheme: keys per record, compared pairs, recall and seconds."""
    runs = [run(workload, scheme) for _ in range(rounds)]
    true = pairs_in(workload.truth.read_bytes())
    counts, seconds = runs[0].counts, median(each.seconds for each in runs)
    keys = counts["keys"] / counts["records"]
    hundredths = 100 * len(runs[0].pairs & true) // len(true)  # rounded down: only all are 1
    recall = "1" if hundredths == 100 else f"0.{hundredths:02}"
    told = f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"
    return [f"{keys:.3g}", f"{counts['candidate pairs']:,}", recall, told]


def run(workload: Workload, scheme: str) -> Run:
    flags = ["-v", "--memory", "0", "--scheme", *scheme.split()]  # by keys, whatever the scheme
    command = [str(ROOT / "run_local.sh"), *flags, str(workload.path)]
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - started
    found = re.findall(r"^([a-z ]+?) {2,}([\d,]+)", done.stderr.decode(), re.MULTILINE)
    counts = {name: int(count.replace(",", "")) for name, count in found}
    return Run(seconds, counts, pairs_in(done.stdout))


def pairs_in(lines: bytes) -> set[bytes]:
    """Return the set of `A TAB B` in pair lines, without the similarity."""
    return {line.rpartition(b"\t")[0] for line in lines.splitlines()}


if __name__ == "__main__":
    main()
