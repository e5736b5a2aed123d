"""Time, memory, recall and precision of run_local.sh on made-up records: `make bench`.

Each workload is generated once into .bench/, its exact answer (`bench.exact`) with it.  Rounds go
through the workloads in turn, and the table has the medians: compare figures of one table only.

    floor       the cheapest possible program: cat | sort | cat of the same file
    growth      seconds over those of the workload above that it is compared with
    memory      of the largest process, its children included
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".bench"


class Workload(NamedTuple):
    name: str
    records: int
    generator: list[str]
    options: list[str]
    compared_with: str = ""


WORKLOADS = (
    Workload("20,000, links", 20_000, [], ["--output", "links"]),
    Workload("and 5,000 copies", 25_000, ["--hot", "5000"], ["--output", "links"], "20,000, links"),
    Workload("100,000", 100_000, [], []),
    Workload("1,000,000", 1_000_000, [], [], "100,000"),
)


class Run(NamedTuple):
    seconds: float
    mebibytes: float


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.run", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=1_000_000, help="leave larger workloads out")
    args = parser.parse_args()
    workloads = [workload for workload in WORKLOADS if workload.records <= args.most]
    for workload in workloads:
        prepare(workload)
    floors: dict[str, list[Run]] = {workload.name: [] for workload in workloads}
    runs: dict[str, list[Run]] = {workload.name: [] for workload in workloads}
    for _ in range(args.rounds):
        for workload in workloads:
            floors[workload.name].append(measured(floor_command(workload), os.devnull))
            runs[workload.name].append(measured(our_command(workload), answer(workload)))
    print(f"{'records':20} {'floor s':>8} {'seconds':>8} {'growth':>7} {'MiB':>5}", end=" ")
    print(f"{'pairs':>8} {'recall':>9} {'precision':>10}")
    seconds = {name: median(run.seconds for run in of) for name, of in runs.items()}
    for workload in workloads:
        name = workload.name
        floor = median(run.seconds for run in floors[name])
        growth = seconds[name] / seconds[workload.compared_with] if workload.compared_with else 1
        memory = max(run.mebibytes for run in runs[name])
        print(f"{name:20} {floor:8.2f} {seconds[name]:8.2f} {growth:7.2f} {memory:5.0f}", end=" ")
        found, recall, precision = quality(workload)
        print(f"{found:8,} {recall:>9} {precision:>10}")


def records(workload: Workload) -> Path:
    return FOLDER / f"videos.{workload.records}.txt"


def truth(workload: Workload) -> Path:
    return FOLDER / f"videos.{workload.records}.pairs.tsv"


def answer(workload: Workload) -> str:
    return str(FOLDER / f"answer.{workload.records}.tsv")


def prepare(workload: Workload) -> None:
    """Generate the records and the exact answer, unless they are there."""
    FOLDER.mkdir(exist_ok=True)
    size = ["--records", str(workload.records), *workload.generator]
    _write(records(workload), ["bench.videos", *size])
    if "links" not in workload.options:
        _write(truth(workload), ["bench.exact", str(records(workload))])


def _write(path: Path, module: list[str]) -> None:
    if not path.exists():
        print(f"making {path.name} …", file=sys.stderr)
        unfinished = path.with_suffix(".unfinished")
        with open(unfinished, "wb") as file:
            subprocess.run([sys.executable, "-m", *module], cwd=ROOT, stdout=file, check=True)
        unfinished.rename(path)


def floor_command(workload: Workload) -> list[str]:
    return ["sh", "-c", 'cat "$1" | LC_ALL=C sort | cat', "floor", str(records(workload))]


def our_command(workload: Workload) -> list[str]:
    return [str(ROOT / "run_local.sh"), *workload.options, str(records(workload))]


def measured(command: list[str], output: str) -> Run:
    """Run a command in a process of its own kind, so that the peak is that of its children."""
    started = time.perf_counter()
    with open(output, "wb") as out, open(os.devnull, "wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"bench: {' '.join(command)} failed with status {status}")
    return Run(time.perf_counter() - started, usage.ru_maxrss / 1024)


def quality(workload: Workload) -> tuple[int, str, str]:
    """(lines printed, recall, precision) against the exact answer, which links have none of."""
    found = set(Path(answer(workload)).read_bytes().splitlines())
    if "links" in workload.options:
        return len(found), "–", "–"
    true = set(truth(workload).read_bytes().splitlines())
    good = len(found & true)
    return len(found), f"{good / len(true):.6f}", f"{good / len(found):.6f}"


if __name__ == "__main__":
    main()
