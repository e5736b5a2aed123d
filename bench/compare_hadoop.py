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

from bench.workloads import ROOT, prepare, videos
from cluster import daemons
from neardup.evaluation.precision_recall import ratio

COUNTERS = ("Map output bytes", "Reduce shuffle bytes", "CPU time spent (ms)")
SPLITS = 2


class Run(NamedTuple):
    seconds: float
    counters: dict[str, int]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.compare_hadoop", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    workload = videos(args.records)
    prepare(workload)
    file = workload.path
    upload(file)
    runs: dict[str, list[Run]] = {}
    for number in range(args.rounds):
        for name, command in commands(f"/bench/{os.getpid()}.{number}").items():
            runs.setdefault(name, []).append(measured(command))
    print(table(file.stat().st_size, runs))
    true = set(workload.truth.read_bytes().splitlines())
    print(f"\n{args.records:,} videos, {args.rounds} rounds.")
    for name, command in list(commands(f"/bench/{os.getpid()}.0").items())[1:]:
        found = set(hadoop("fs", "-cat", f"{command[-1]}/part-*").splitlines())
        good = len(found & true)
        print(f"{name}: recall {ratio(good, len(true))}, precision {ratio(good, len(found))}")
    hadoop("fs", "-rm", "-r", "-skipTrash", "/bench")


def upload(file: Path) -> None:
    block = -(-file.stat().st_size // SPLITS // 4096) * 4096
    hadoop("fs", "-mkdir", "-p", "/bench")
    hadoop("fs", f"-Ddfs.blocksize={block}", "-put", "-f", str(file), "/bench/videos.txt")


def commands(output: str) -> dict[str, list[str]]:
    """The contestants by name; each writes to a folder that starts with `output`."""
    ours = [str(ROOT / "run_hadoop.sh"), "--reducers=2", "--python", sys.executable]
    to_pairs = ["/bench/videos.txt", f"{output}.pairs"]
    return {
        "identity (`cat`, `cat`)": identity(
            [*ours, "--rounds=1", "--show", *to_pairs], f"{output}.same"
        ),
        "one round": [*ours, "--rounds=1", *to_pairs],
        "two rounds": [*ours, "--rounds=2", to_pairs[0], f"{output}.two"],
    }


def identity(ours: list[str], output: str) -> list[str]:
    """The cheapest job, with the settings of ours; only keys are what Streaming takes for them."""
    shown = subprocess.run(
        ours, stdout=subprocess.PIPE, env=daemons.environment(), check=True, encoding="utf-8"
    ).stdout
    words = shlex.split(shown)
    settings = [
        word
        for flag, value in zip(words, words[1:])
        if flag == "-D" and not value.startswith(("stream.num", "mapreduce.partition"))
        for word in (flag, value)
    ]
    files = ["-input", "/bench/videos.txt", "-output", output]
    return [*words[:3], *settings, *files, "-mapper", "cat", "-reducer", "cat"]


def measured(command: list[str]) -> Run:
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, env=daemons.environment(), encoding="utf-8")
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"bench: {shlex.join(command)} failed\n{done.stderr}")
    found = {
        name: re.findall(rf"^\t\t{re.escape(name)}=(\d+)", done.stderr, re.M) for name in COUNTERS
    }
    return Run(seconds, {name: sum(map(int, counts)) for name, counts in found.items()})


def hadoop(*arguments: str) -> bytes:
    command = [str(daemons.HOME / "bin" / "hadoop"), *arguments]
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=daemons.environment(),
        check=True,
    ).stdout


def table(size: int, runs: dict[str, list[Run]]) -> str:
    """In Markdown; the first contestant is the floor."""
    lines = [
        "| job | seconds | ratio | output / input | shuffled / input | CPU s |",
        "|---" * 6 + "|",
    ]
    seconds = {name: median(run.seconds for run in some) for name, some in runs.items()}
    floor = next(iter(seconds.values()))
    for name, some in runs.items():
        output, shuffled, cpu = (median(run.counters[key] for run in some) for key in COUNTERS)
        lines.append(
            f"| {name} | {seconds[name]:.1f} | {seconds[name] / floor:.2f} | {output / size:.2f} | "
            f"{shuffled / size:.2f} | {cpu / 1000:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
