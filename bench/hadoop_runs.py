"""Runs on Hadoop with /bench/videos.txt as input: our job, and an identity job to compare with."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from bench.workloads import ROOT
from cluster import daemons
from neardup.engines.hadoop.sizes import DEFAULT_MEMORY, MAPS, maps_for

SHUFFLED = "Reduce shuffle bytes"
DISK = "FILE: Number of bytes read", "FILE: Number of bytes written"
OWN_AND_CHILDREN = slice(11, 15)  # user and system time in /proc/PID/stat, behind the name
SPLITS = 2
INPUT = "/bench/videos.txt"


class ClusterRun(NamedTuple):
    seconds: float
    shuffled: int  # bytes
    cpu: float | None  # seconds; None where nobody counts those of all processes
    disk: int | None = None  # bytes that Hadoop's tasks read from their local disks, or wrote
    pairs: set[bytes] | None = None  # lines; None of a job that finds none
    done: bool = True  # False: ended when its time was over


def upload(file: Path) -> None:
    """Upload a file as /bench/videos.txt, in at most SPLITS blocks."""
    block = -(-file.stat().st_size // SPLITS // 4096) * 4096
    hadoop("fs", "-mkdir", "-p", "/bench")
    hadoop("fs", f"-Ddfs.blocksize={block}", "-put", "-f", str(file), INPUT)


def ours(rounds: int, output: str) -> ClusterRun:
    run = measured([*_run_hadoop(rounds), INPUT, output])
    pairs = set(hadoop("fs", "-cat", f"{output}/part-*").splitlines())
    return run._replace(pairs=pairs)


def identity(output: str) -> ClusterRun:
    """Run `cat` as mapper and reducer, with most Hadoop settings of our job.

    Two settings differ: keys are Streaming's default, and there are as many maps as it takes to
    sort what they read.
    """
    size = int(hadoop("fs", "-stat", "%b", INPUT))
    maps = f"{MAPS}={maps_for(size, DEFAULT_MEMORY)}"
    shown = subprocess.run(
        [*_run_hadoop(1), "-D", maps, "--show", INPUT, output],
        stdout=subprocess.PIPE,
        env=daemons.environment(),
        check=True,
        encoding="utf-8",
    ).stdout
    words = shlex.split(shown)
    settings = [
        word
        for flag, value in zip(words, words[1:])
        if flag == "-D" and not value.startswith(("stream.num", "mapreduce.partition"))
        for word in (flag, value)
    ]
    files = ["-input", INPUT, "-output", output]
    return measured([*words[:3], *settings, *files, "-mapper", "cat", "-reducer", "cat"])


def measured(command: list[str]) -> ClusterRun:
    """Run a job; return its seconds and counters; SystemExit with its stderr if it fails."""
    started, cpu = time.perf_counter(), cpu_seconds()
    done = subprocess.run(command, capture_output=True, env=daemons.environment(), encoding="utf-8")
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    if done.returncode:
        raise SystemExit(f"bench: {shlex.join(command)} failed\n{done.stderr}")
    shuffled, *disk = (
        sum(map(int, re.findall(rf"^\t\t{re.escape(name)}=(\d+)", done.stderr, re.M)))
        for name in (SHUFFLED, *DISK)
    )
    return ClusterRun(seconds, shuffled, cpu, sum(disk))


def cpu_seconds() -> float:
    """Return the CPU seconds of the node managers, their containers, and this process's commands.

    Hadoop's own counter looks every three seconds, and misses what has ended in between.
    """
    words = [
        Path(f"/proc/{daemons.pid(node)}/stat").read_text("ascii").rpartition(")")[2].split()
        for node in daemons.NODEMANAGERS
    ]
    ticks = sum(int(word) for each in words for word in each[OWN_AND_CHILDREN])
    mine = os.times()
    return ticks / os.sysconf("SC_CLK_TCK") + mine.children_user + mine.children_system


def hadoop(*arguments: str) -> bytes:
    command = [str(daemons.HOME / "bin" / "hadoop"), *arguments]
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=daemons.environment(),
        check=True,
    ).stdout


def _run_hadoop(rounds: int) -> list[str]:
    return [
        str(ROOT / "run_hadoop.sh"),
        *("--reducers=2", f"--rounds={rounds}", "--python", sys.executable),
    ]
