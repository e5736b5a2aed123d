"""The contestants: the command of each, what it prints, and the kinds of workloads it runs on.

Ours run with their default options, which at threshold 0.9 are 15 bands of 7.  A peer with a
banding of its own (`bench.peers.NAME` says which) runs twice: with ours, for the same recall, and
with its own.  Peers run in the interpreter that has them, the others where this module runs.

The kinds are those of `bench.workloads`.  Not everybody takes every kind:

    large     text-dedup, Spark, SetSimilaritySearch, the course's solution and mrjob take minutes
              or gigabytes for 100,000 records already
    growth    only those that are as fast as ours
    links     no peer prints them
    decisions ours, an output each
    text      run_local.sh, which is compared with itself
    start     run_local.sh, beside the start of Python and numpy alone
    once      run_local.sh
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from shlex import join, quote
from typing import Callable, NamedTuple

from bench.workloads import FOLDER, ROOT, Workload

OURS, LIBRARY = "run_local.sh", "neardup.pairs"
DEFAULT = "(its default)"  # ends the name of a peer with its own banding
FAST = ("all", "large", "growth")
DECISIONS = ("kept", "removed", "clusters")
Command = Callable[[Workload, str], list[str]]  # of a workload and the peers' interpreter


class Contestant(NamedTuple):
    name: str  # unique
    tool: str
    banding: str
    prints: str  # pairs | flags | links | kept | removed | clusters | nothing
    kinds: tuple[str, ...]
    command: Command
    module: str = ""  # what the peers' interpreter must have
    program: str = ""  # what the PATH must have


def run_local(workload: Workload, _: str) -> list[str]:
    return ["./run_local.sh", "-v", *workload.options, workload.file]


def asked_for(*options: str) -> Command:
    def command(workload: Workload, _: str) -> list[str]:
        return ["./run_local.sh", "-v", *options, workload.file]

    return command


def without_kernels(workload: Workload, python: str) -> list[str]:
    return ["env", "NEARDUP_KERNELS=numpy", *run_local(workload, python)]


def import_numpy(_: Workload, __: str) -> list[str]:
    return [sys.executable, "-c", "import numpy"]


def limit(join: str) -> Command:
    """One thread of C that has the loops of the package and nothing around them."""

    def command(workload: Workload, _: str) -> list[str]:
        program, source = FOLDER / "limits", ROOT / "bench" / "limits.c"
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            subprocess.run(["cc", "-O3", "-o", program, source], check=True)
        return [str(program), join, workload.file, "9", "10"]

    return command


def shell(script: str) -> list[str]:
    return ["bash", "-o", "pipefail", "-c", script]


def floor(workload: Workload, _: str) -> list[str]:
    return shell(f"cat {quote(workload.file)} | LC_ALL=C sort | cat")


def pipe(workload: Workload, _: str) -> list[str]:
    options = join(workload.options)
    mapper, reducer = f"./mapper.py -v {options}", f"./reducer.py {options}"
    return shell(f"cat {quote(workload.file)} | {mapper} | LC_ALL=C sort | {reducer}")


def mrjob(runner: str) -> Command:
    def command(workload: Workload, _: str) -> list[str]:
        options = ["--no-conf", "-r", runner, *workload.options]
        return [sys.executable, "job.py", *options, workload.file]

    return command


def peer(name: str, *arguments: str) -> Command:
    def command(workload: Workload, python: str) -> list[str]:
        threads = ["--threads", str(cores())]
        return [python, "-m", f"bench.peers.{name}", workload.file, *arguments, *threads]

    return command


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def both(
    name: str,
    module: str,
    prints: str,
    own: str,
    kinds: tuple[str, ...],
    same: str = "15×7",
    arguments: Iterable[str] = ("--bands", "15", "--rows", "7"),
    program: str = "",
) -> list[Contestant]:
    """Return two contestants for a peer: with the banding for our recall, and with its default.

    Except for FAST peers, the default runs on workloads of the kind "all" only.
    """
    few = ("all", "large") if kinds == FAST else ("all",)
    ours, default = peer(name, *arguments), peer(name)
    own = f"{own} {DEFAULT}"
    return [
        Contestant(f"{name} {same}", name, same, prints, kinds, ours, module, program),
        Contestant(f"{name} {DEFAULT}", name, own, prints, few, default, module, program),
    ]


CONTESTANTS = [
    Contestant(
        "floor", "floor: `cat`, `sort`, `cat`", "–", "nothing", (*FAST, "links", "quick"), floor
    ),
    Contestant(
        OURS,
        OURS,
        "15×7",
        "pairs",
        (*FAST, "links", "decisions", "text", "start", "once", "curve", "quick"),
        run_local,
    ),
    Contestant(
        "plain pipe",
        "plain pipe: `mapper.py`, `sort`, `reducer.py`",
        "15×7",
        "pairs",
        ("all", "large", "links", "quick"),
        pipe,
    ),
    Contestant(
        f"{OURS} --exact", f"{OURS} --exact", "exact", "pairs", ("all",), asked_for("--exact")
    ),
    Contestant(
        f"{OURS}, numpy alone",
        f"{OURS} with NEARDUP_KERNELS=numpy",
        "15×7",
        "pairs",
        ("all", "large"),
        without_kernels,
    ),
    Contestant(
        f"{OURS} --memory 0",
        f"{OURS} --memory 0",
        "15×7",
        "pairs",
        FAST,
        asked_for("--memory", "0"),
    ),
    *(
        Contestant(
            f"limit, {join}",
            "limit: one thread of C",
            banding,
            "pairs",
            kinds,
            limit(join),
            "",
            "cc",
        )
        for join, banding, kinds in (("minhash", "15×7", FAST), ("exact", "exact", ("all",)))
    ),
    Contestant(LIBRARY, LIBRARY, "15×7", "pairs", ("all",), peer("library")),
    Contestant("import", "floor: `import numpy`", "–", "nothing", ("start",), import_numpy),
    *(
        Contestant(name, name, "15×7", "pairs", ("all", "quick"), mrjob(name.split()[-1]))
        for name in ("job.py -r inline", "job.py -r local")
    ),
    *(
        Contestant(
            f"--output {output}",
            f"{OURS} --output {output}",
            "15×7",
            output,
            ("decisions",),
            asked_for("--output", output),
        )
        for output in DECISIONS
    ),
    *both("rensa", "rensa", "flags", "8×16", FAST),
    *both("rensa_pairs", "rensa", "pairs", "8×16", FAST),
    *both("gaoya", "gaoya", "pairs", "20×5", FAST),
    *both("fastsketchlsh", "FastSketchLSH", "pairs", "16×8", FAST),
    *both("datasketch", "datasketch", "pairs", "5×25", ("all", "large")),
    *both("datatrove", "datatrove", "pairs", "14×8", ("all", "large")),
    *both("textdedup", "text_dedup", "flags", "9×27", ("all",)),
    *both("spark", "pyspark", "pairs", "1 table", ("all",), "4 tables", ("--tables", "4"), "java"),
    *both("duckdb", "duckdb", "pairs", "exact", ("all",)),
    *both("polars", "polars", "pairs", "exact", ("all",)),
    *both(
        "sketchsort",
        "sketchsort",
        "pairs",
        "miss 0.0001",
        ("all",),
        "miss 0.0001, rounded",
        ("--rounding", "1"),
    ),
    Contestant(
        "near_dupes", "near_dupes", "11×11", "pairs", ("all",), peer("near_dupes"), "near_dupes"
    ),
    *both("course", "numpy", "pairs", "10×10", ("all",)),
    Contestant(
        "setsimilaritysearch",
        "setsimilaritysearch",
        "–",
        "pairs",
        ("all",),
        peer("setsimilaritysearch"),
        "SetSimilaritySearch",
    ),
]


def missing(python: str, contestants: Iterable[Contestant]) -> dict[str, str]:
    """Return {contestant: the module or program that it needs and that is not installed}."""
    contestants = list(contestants)
    modules = sorted({one.module for one in contestants} - {""})
    code = "import sys, importlib.util as u\nfor m in sys.argv[1:]: u.find_spec(m) or print(m)"
    asked = subprocess.run([python, "-c", code, *modules], stdout=subprocess.PIPE, check=True)
    absent = asked.stdout.decode().split()
    return {
        one.name: one.module if one.module in absent else one.program
        for one in contestants
        if one.module in absent or (one.program and not shutil.which(one.program))
    }
