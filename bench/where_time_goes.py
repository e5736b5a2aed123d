"""Measure the time that the workers of run_local.sh spend in each source file.

    python3 -m bench.where_time_goes .bench/sources.txt
    python3 -m bench.where_time_goes --exact .bench/packages.txt

takes what run_local.sh takes, and prints a table instead of the answer: seconds of all workers
together, on a machine that has nothing else to do.  What a function calls of Python, numpy, the
kernels and neardup.sets, which are the same everywhere, is counted as its own.  The start of the
program is not in it, and `sort` where there is one; loops in Python look dearer than they are.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import sys
import tempfile
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any, Callable

from bench.measure import ROOT
from neardup.engines.local import run
from neardup.engines.local.workers import Workers

PACKAGE = f"{ROOT}/neardup/"
TOOLS = (f"{PACKAGE}sets/", f"{PACKAGE}runtime/kernels.py")  # only their callers say what for
SHOWN = 14  # files
DEEPEST = 20  # calls from one of our functions to numpy's; those below are "other"
Function = tuple[str, int, str]  # file, line, name
Stats = dict[Function, tuple[Any, ...]]


def profiled(folder: str, task: Callable[[], None]) -> None:
    """Run a task in a worker, and write the worker's profile to the folder."""
    profile = cProfile.Profile()
    try:
        profile.runcall(task)
    finally:
        profile.dump_stats(f"{folder}/{os.getpid()}")


def watch(folder: str) -> None:
    """Make each worker write its profile to the folder."""
    start = Workers.start

    def started(self: Workers, name: str, task: Callable[[], None]) -> None:
        start(self, name, partial(profiled, folder, task))

    Workers.start = started  # type: ignore[method-assign]


def own_times(stats: Stats) -> dict[str, float]:
    """Return {file: seconds in it and in TOOLS and libraries it calls}; other code is "other"."""
    times: dict[str, float] = defaultdict(float)

    def charge(function: Function, seconds: float, depth: int = 0) -> None:
        file = function[0]
        callers = stats[function][4] if function in stats else {}
        if file.startswith(PACKAGE) and not file.startswith(TOOLS):
            times[os.path.relpath(file, PACKAGE)] += seconds
        elif depth == DEEPEST or not callers:
            times["other"] += seconds
        else:
            whole = sum(of[2] for of in callers.values())
            for caller, of in callers.items():
                share = of[2] / whole if whole else 1 / len(callers)
                charge(caller, seconds * share, depth + 1)

    for function, (_, _, seconds, _, _) in stats.items():
        if seconds:
            charge(function, seconds)
    return times


def table(times: dict[str, float]) -> str:
    whole = sum(times.values()) or 1
    lines = ["| seconds | share | for |", "| --- | --- | --- |"]
    for name, seconds in sorted(times.items(), key=lambda item: -item[1])[:SHOWN]:
        lines.append(f"| {seconds:.2f} | {seconds / whole:.0%} | {name} |")
    lines.append(f"| {whole:.2f} | | all |")
    return "\n".join(lines)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="bench.") as folder:
        watch(folder)
        answer = os.dup(1)
        if not {"-h", "--help"}.intersection(sys.argv):
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), 1)
        code = run.command()
        os.dup2(answer, 1)
        profiles = sorted(map(str, Path(folder).iterdir()))
        if code or not profiles:
            return code or 1
        stats: Stats = pstats.Stats(*profiles).stats  # type: ignore[attr-defined]
    print(table(own_times(stats)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
