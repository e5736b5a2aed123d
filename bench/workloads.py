"""The workloads of the benchmark: files, the commands that make them, and their exact answers.

A workload is made once and kept in .bench/, its exact answer beside it:

    .bench/videos.100000.txt          python3 -m neardup example --records 100000 --seed 1
    .bench/videos.100000.pairs.tsv    python3 -m bench.data.exact_answer .bench/videos.100000.txt

Its *kind* says who runs on it (`bench.contestants`):

    all       everybody
    large     those that survive a million records
    growth    those whose time against the number of records is drawn
    links     ours with `--output links`
    decisions what each output of ours costs, beside pairs, or beside links where those are too many
    text      run_local.sh: the same records as texts and as the sets of these
    start     so small that only starting counts
    once      takes many minutes and gigabytes: only where --workloads names it
    curve     run_local.sh: which pairs share a key at which similarity
    quick     ours, a few seconds each: `make bench-quick`
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".bench"
LINKS = ["--output", "links"]
TEXT = ["--input", "text"]


class Workload(NamedTuple):
    name: str  # in the tables
    kind: str
    file: str  # from the root of the project
    module: list[str]  # prints the file: ["neardup", "example", "--records", "100000"]
    answer: list[str]  # prints the exact answer; empty where there is none
    options: list[str] = []  # of ours

    @property
    def path(self) -> Path:
        return ROOT / self.file

    @property
    def truth(self) -> Path:
        """The path of the exact answer, with a line `A TAB B TAB SIMILARITY` for every pair."""
        return self.path.with_suffix(".pairs.tsv")

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.path.stat().st_size

    @property
    def links(self) -> bool:
        return LINKS[1] in self.options

    def records(self) -> int:
        with open(self.path, "rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


class CannotMakeError(Exception):
    """Raised if a workload cannot be made on this machine; the message is the reason."""


def videos(records: int, kind: str = "all", name: str = "", more: str = "") -> Workload:
    """Return a workload of synthetic videos; more: further options of `neardup example`.

    >>> videos(20_000, more="--copies 0.01").file
    '.bench/videos.20000.copies.0.01.txt'
    """
    tag = more.replace("--", "").replace(" ", ".")
    file = f".bench/{'.'.join(filter(None, ['videos', str(records), tag]))}.txt"
    module = ["neardup", "example", "--records", str(records), "--seed", "1", *more.split()]
    return Workload(name or f"{records:,}", kind, file, module, ["bench.data.exact_answer", file])


SPARSE = "--copies 0.01"
SKEW = "--cluster 5000 --hot 5000 --long 2000000"
COPIES = "--cluster 5000 --hot 10000"
PACKAGES, SOURCES, CURVE = (f".bench/{name}.txt" for name in ("packages", "sources", "curve"))
TEXTS, SETS = (f".bench/packages.{name}.txt" for name in ("texts", "sets"))
MADE_OF_PACKAGES = ["bench.data.packages"], ["bench.data.exact_answer", PACKAGES]

WORKLOADS = (
    videos(100_000, "all", "W1 100k"),
    videos(100_000, "all", "W1 sparse", SPARSE),
    Workload("W2", "all", PACKAGES, *MADE_OF_PACKAGES),
    Workload("W4", "all", SOURCES, ["bench.data.sources"], ["bench.data.exact_answer", SOURCES]),
    videos(100_000, "links", "W1 100k links")._replace(options=LINKS),
    # Its 25,000,000 pairs are not worked out; the skew of --quick has an exact answer.
    videos(110_000, "links", "W3", SKEW)._replace(options=LINKS, answer=[]),
    videos(100_000, "decisions", "W1 100k decisions"),
    Workload("W2 decisions", "decisions", PACKAGES, *MADE_OF_PACKAGES),
    Workload("W2 text", "text", TEXTS, [*MADE_OF_PACKAGES[0], "--texts"], [], TEXT),
    Workload("W2 text as sets", "text", SETS, [*MADE_OF_PACKAGES[0], "--sets"], []),
    videos(115_000, "decisions", "W3 decisions", COPIES)._replace(options=LINKS, answer=[]),
    videos(10_000, "growth", "W1 10k"),
    videos(30_000, "growth", "W1 30k"),
    videos(300_000, "growth", "W1 300k"),
    videos(1_000_000, "large", "W1 1M"),
    videos(10, "start", "ten lines"),
    videos(10_000_000, "once", "W1 10M")._replace(answer=[]),
    Workload(
        "S-curve",
        "curve",
        CURVE,
        ["bench.data.graded_pairs"],
        ["bench.data.graded_pairs", "--pairs"],
        ["--threshold", "0.2", "--bands", "15", "--rows", "7"],
    ),
)

QUICK_WORKLOADS = (
    Workload("data/videos.txt", "quick", "data/videos.txt", [], []),
    videos(20_000, "quick", "W1 20k"),
    videos(20_000, "quick", "W1 sparse 20k", SPARSE),
    videos(22_000, "quick", "W3 22k", "--hot 2000")._replace(options=LINKS),
    Workload("data/videos.txt decisions", "decisions", "data/videos.txt", [], []),
)


def prepare(workload: Workload) -> None:
    """Make the file and the exact answer, unless they exist; CannotMakeError if that fails."""
    prepare_file(workload)
    if workload.answer:
        _write(workload.truth, workload.answer)


def prepare_file(workload: Workload) -> None:
    FOLDER.mkdir(exist_ok=True)
    if workload.module:
        _write(workload.path, workload.module)


def _write(path: Path, module: list[str]) -> None:
    if path.exists():
        return
    print(f"making {path.name} …", file=sys.stderr, flush=True)
    unfinished = path.with_name(path.name + ".unfinished")
    with open(unfinished, "wb") as file:
        command = [sys.executable, "-m", *module]
        done = subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.PIPE)
    if done.returncode:
        unfinished.unlink()
        why = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise CannotMakeError(why or f"{' '.join(module)} failed")
    unfinished.rename(path)
