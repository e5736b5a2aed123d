"""What the job costs on a cluster, beside the cheapest possible job: `make hadoop-bench`.

The same made-up videos go, in turn, through an identity job (`cat` as mapper and as reducer) and
through run_hadoop.sh, with the same reducers and the same Hadoop settings.  The table has medians.

    seconds     of the whole command, the start of Hadoop's client included
    output      bytes that the mappers wrote
    shuffled    bytes that travelled: these, packed
    CPU         seconds of all tasks, JVM and Python, as Hadoop counts them
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.run import ROOT, Workload, prepare, records, truth
from hadoop import cluster

COUNTERS = ("Map output bytes", "Reduce shuffle bytes", "CPU time spent (ms)")
SPLITS = 2


class Run(NamedTuple):
    seconds: float
    counters: dict[str, int]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.hadoop", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    workload = Workload(f"{args.records:,}", args.records, [], [])
    prepare(workload)
    file = records(workload)
    upload(file)
    floor, ours = [], []
    for number in range(args.rounds):
        identity, command = commands(f"/bench/{os.getpid()}.{number}")
        floor.append(measured(identity))
        ours.append(measured(command))
    pairs = set(hadoop("fs", "-cat", f"{command[-1]}/part-*").splitlines())
    true = set(truth(workload).read_bytes().splitlines())
    print(table(file.stat().st_size, floor, ours))
    print(
        f"\n{args.records:,} videos, {args.rounds} rounds: {len(pairs):,} pairs, "
        f"recall {len(pairs & true) / len(true):.6f}, precision {len(pairs & true) / len(pairs):g}."
    )
    hadoop("fs", "-rm", "-r", "-skipTrash", "/bench")


def upload(file: Path) -> None:
    block = -(-file.stat().st_size // SPLITS // 4096) * 4096
    hadoop("fs", "-mkdir", "-p", "/bench")
    hadoop("fs", f"-Ddfs.blocksize={block}", "-put", "-f", str(file), "/bench/videos.txt")


def commands(output: str) -> tuple[list[str], list[str]]:
    """The identity job and ours; the one has the other's settings, as run_hadoop.sh shows them."""
    ours = [str(ROOT / "run_hadoop.sh"), "--reducers=2", "--python", sys.executable]
    shown = subprocess.run(
        [*ours, "--show", "/bench/videos.txt", f"{output}.pairs"],
        stdout=subprocess.PIPE,
        env=cluster.environment(),
        check=True,
        encoding="utf-8",
    ).stdout
    words = shlex.split(shown)
    settings = [
        word
        for i in range(len(words))
        if words[i] == "-D" and not words[i + 1].startswith(("stream.num", "mapreduce.partition"))
        for word in words[i : i + 2]
    ]
    streaming = ["-input", "/bench/videos.txt", "-output", f"{output}.same"]
    identity = [*words[:3], *settings, *streaming, "-mapper", "cat", "-reducer", "cat"]
    return identity, [*ours, "/bench/videos.txt", f"{output}.pairs"]


def measured(command: list[str]) -> Run:
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, env=cluster.environment(), encoding="utf-8")
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"bench: {shlex.join(command)} failed\n{done.stderr}")
    found = {
        name: re.search(rf"^\t\t{re.escape(name)}=(\d+)", done.stderr, re.M) for name in COUNTERS
    }
    return Run(seconds, {name: int(match[1]) for name, match in found.items() if match})


def hadoop(*arguments: str) -> bytes:
    command = [str(cluster.HOME / "bin" / "hadoop"), *arguments]
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=cluster.environment(),
        check=True,
    ).stdout


def table(size: int, floor: list[Run], ours: list[Run]) -> str:
    """In Markdown."""
    lines = [
        "| job | seconds | ratio | output / input | shuffled / input | CPU s |",
        "|---" * 6 + "|",
    ]
    base = median(run.seconds for run in floor)
    for name, runs in (("identity (`cat`, `cat`)", floor), ("`run_hadoop.sh`", ours)):
        seconds = median(run.seconds for run in runs)
        output, shuffled, cpu = (median(run.counters[name] for run in runs) for name in COUNTERS)
        lines.append(
            f"| {name} | {seconds:.1f} | {seconds / base:.2f} | {output / size:.2f} | "
            f"{shuffled / size:.2f} | {cpu / 1000:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
