"""Measure `neardup run` on more and more records, and reckon what larger inputs need.

    python3 -m bench.scale --folder /scratch --kills 10 100000 300000 1000000 3000000
    python3 -m bench.scale --folder /scratch --outputs "" --dask 10000000
    cluster/cluster.py run python3 -m bench.scale --folder /scratch --outputs "" --cluster 10000000
    python3 -m bench.scale --folder /scratch --paths paths.txt
    python3 -m bench.scale

Each command but the last one runs the job, and adds one line of JSON for each run to --results; all
then make the page and the plot of all lines (`report.scale_page`).  Records are sets of 20
shingles; a tenth of them are copies of an earlier one, half of these equal to it, half with one
shingle replaced (similarity 19/21), so that the number of pairs is known.

Runs are in files (`--memory 0`), since that is what large inputs need.  Three more runs of the
smallest size, with larger sets, more keys, and more copies, show what a byte, a key and a pair
cost.  With --kills the largest size of this command is run with `--work`, and killed so many times
(see `killed_runs`); with --dask on four workers, one of which is killed twice; with --cluster on
Hadoop and Spark, in two rounds.  With --paths the records are real lines,
`bench.data.archive_paths`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from bench import hadoop_runs, spark_runs
from bench.killed_runs import NEARDUP, Measured, done_again
from bench.machine import machine
from bench.measure import ROOT
from bench.report import scale_page

SHINGLES, UNIVERSE, BLOCK, COPIES, AUDIT = 20, 4_000_000, 100_000, 0.1, 1000
COUNTS = "keys", "pairs", "pairs used", "records removed", "bytes shuffled"
WORKERS, TOP = 4, 10
TEXT = ["--input=text", "--shingle=char:3", "--threshold=0.95", "--audit=200"]  # for paths
VARIED: dict[str, dict[str, Any]] = {
    "four times the shingles": {"shingles": 4 * SHINGLES},
    "three times the keys": {"flags": ["--bands=45", "--rows=7"]},
    "five times the copies": {"copies": 5 * COPIES},
}


def lines(records: int, shingles: int = SHINGLES, copies: float = COPIES) -> Iterator[bytes]:
    """Yield the lines of a file; copies are in the block after that of their originals.

    >>> first, *others = lines(20)
    >>> first[:3], len(first.split()), len(others)
    (b'r0 ', 21, 19)
    """
    draw = np.random.default_rng(records)
    block, number, before = max(1, min(BLOCK, records // 10)), 0, None
    text = b" ".join([b"%d"] * (shingles + 1))
    while number < records:
        size = min(block, records - number)
        sets = draw.integers(1, UNIVERSE, (size, shingles))
        if before is not None:
            some = before[: int(size * copies)]
            changed = np.arange(len(some)) % 2 == 1
            some[changed, draw.integers(0, shingles, len(some))[changed]] = 0
            sets[size - len(some) :] = some  # the originals are the first ones of a block
        before = sets.copy()
        for i in draw.permutation(size).tolist():
            yield b"r%b\n" % (text % (number, *sets[i].tolist()))
            number += 1


def planted(records: int, copies: float = COPIES) -> int:
    """Return the number of pairs in a file: one for each copy."""
    block = max(1, min(BLOCK, records // 10))
    return sum(int(min(block, records - n) * copies) for n in range(block, records, block))


def ran(folder: Path, records: int, what: str, **how: Any) -> Iterator[dict[str, Any]]:
    """Make a file, run the job on it for each output of `what`, and yield the figures."""
    flags, copies = how.pop("flags", []), how.get("copies", COPIES)
    with made(folder, records, **how) as data:
        for output in what.split():
            run = Measured([*command(data, output), *flags], data.with_suffix(".answer"))
            yield figures(run, data, records, copies, output)


def killed(folder: Path, records: int, kills: int) -> Iterator[dict[str, Any]]:
    """Make a file, run the job on it with --work, and again with kills; yield the figures."""
    work = folder / "scale.work"
    with made(folder, records) as data:
        go_on = [*command(data, "pairs")[:-1], f"--work={work}", "--keep-work", str(data)]
        once = Measured([word for word in go_on if word != "--keep-work"], folder / "once")
        yield figures(once, data, records, COPIES, "pairs")
        run = Measured(go_on, folder / "killed", kills, once.seconds / (kills + 1))
        yield {**figures(run, data, records, COPIES, "pairs"), "again": done_again(work)}
        shutil.rmtree(work)


def on_dask(folder: Path, records: int) -> Iterator[dict[str, Any]]:
    """Make a file, run the job on it on Dask, and again with a worker killed twice."""
    with made(folder, records) as data:
        words = [f"--workers={WORKERS}", f"--folder={folder}", str(data)]
        line, answer, between = [*NEARDUP, "dask", "-v", *words], folder / "dask", 0.0
        for kills in (0, 2):
            run = Measured(line, answer, kills, between, kill_newest)
            yield figures(run, data, records, COPIES, "pairs")
            between = run.seconds / 6  # so that the second one comes in time, too


def on_cluster(folder: Path, records: int) -> Iterator[dict[str, Any]]:
    """Make a file, and run the job on it on Hadoop and Spark, with an identity job to compare."""
    with made(folder, records) as data:
        hadoop_runs.upload(data)
        output = f"/bench/{os.getpid()}"
        jobs: dict[str, Callable[[], hadoop_runs.ClusterRun]] = {
            "Hadoop, identity": lambda: hadoop_runs.identity(f"{output}.same"),
            "Hadoop": lambda: hadoop_runs.ours(2, f"{output}.two"),
            "Spark": lambda: spark_runs.ours(data, 2),
        }
        for name, job in jobs.items():
            run = job()
            yield {
                "records": records,
                "output": name,
                "bytes": data.stat().st_size,
                "seconds": run.seconds,
                "cpu": run.cpu,
                "load": os.getloadavg()[1],
                "digest": "" if run.pairs is None else digest(run.pairs),
                "bytes shuffled": run.shuffled,
            }
        hadoop_runs.hadoop("fs", "-rm", "-r", "-skipTrash", "/bench")


def digest(pairs: set[bytes]) -> str:
    """Return the digest of `neardup run`'s answer, which is sorted.

    >>> digest({b"a", b"b"}) == hashlib.blake2b(b"a\\nb\\n", digest_size=8).hexdigest()
    True
    """
    text = b"".join(b"%b\n" % line for line in sorted(pairs))
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def kill_newest(session: int) -> float:
    """Kill the newest worker of Dask in a session: next time, the one that has replaced it."""
    workers = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            is_worker = b"spawn_main" in (entry / "cmdline").read_bytes()
            if is_worker and os.getsid(int(entry.name)) == session:
                workers.append(int(entry.name))
    os.kill(max(workers), signal.SIGKILL)
    return 0.0  # its seconds: Dask waits for it


def of_paths(folder: Path, paths: Path) -> Iterator[dict[str, Any]]:
    """Run the job on real lines; yield the figures, with the records that most are removed for."""
    removed = folder / "removed.tsv"
    words = ["--memory=0", *TEXT, "--output=kept", f"--removed={removed}", str(paths)]
    run = Measured([*NEARDUP, "run", "-v", *words], folder / "kept")
    found = figures(run, paths, number("records", run.summary) or 0, 0, "kept")
    yield {**found, "top": largest(removed, paths)}


def largest(removed: Path, paths: Path) -> list[list[Any]]:
    """Return [records removed, kept path, some removed path, another …] for the largest groups."""
    with removed.open("rb") as lines:
        sizes = Counter(line.split(b"\t")[1] for line in lines)
    top = {kept: [kept] for kept, _ in sizes.most_common(TOP)}
    seen = Counter[bytes]()
    with removed.open("rb") as lines:
        for id_, kept, _ in (line.split(b"\t") for line in lines):
            if kept in top:
                seen[kept] += 1
                if seen[kept] in (sizes[kept] // 3, 2 * sizes[kept] // 3):
                    top[kept].append(id_)
    asked, text = {id_ for ids in top.values() for id_ in ids}, dict[bytes, str]()
    with paths.open("rb") as lines:
        for id_, _, path in (line.rstrip().partition(b"\t") for line in lines):
            if id_ in asked:
                text[id_] = path.decode(errors="replace")
    return [[sizes[kept], *map(text.__getitem__, ids)] for kept, ids in top.items()]


@contextmanager
def made(folder: Path, records: int, **how: Any) -> Iterator[Path]:
    """Context manager: a file of records."""
    data = folder / f"{records}.txt"
    with data.open("wb") as sink:
        sink.writelines(lines(records, **how))
    yield data
    data.unlink()


def command(data: Path, output: str) -> list[str]:
    audit = f"--audit={AUDIT}"
    return [*NEARDUP, "run", "-v", "--memory=0", f"--output={output}", audit, str(data)]


def figures(run: Measured, data: Path, records: int, copies: float, output: str) -> dict[str, Any]:
    found = {name: number(name, run.summary) for name in COUNTS}
    return {
        "records": records,
        "output": output,
        "bytes": data.stat().st_size,
        "planted": planted(records, copies),
        "seconds": run.seconds,
        "cpu": run.cpu,
        "largest": run.largest,
        "all": run.peak,
        "own": run.own,
        "load": os.getloadavg()[1],
        "kills": run.kills,
        "digest": run.digest,
        "audit": next((line for line in run.summary if line.startswith("audit:")), ""),
        **{name: count for name, count in found.items() if count is not None},
    }


def number(name: str, summary: list[str]) -> int | None:
    """Return a count of a long summary.

    >>> number("keys", ["keys            1,234"])
    1234
    """
    found = [line[len(name) :].split() for line in summary if line.startswith(f"{name}  ")]
    return int(found[0][0].replace(",", "")) if found else None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("records", type=int, nargs="*")
    parser.add_argument("--folder", type=Path, default=Path("."))
    parser.add_argument("--results", type=Path, default=ROOT / "bench/results/scale.jsonl")
    parser.add_argument("--outputs", default="pairs kept")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--dask", action="store_true", help="run the largest size on Dask, too")
    parser.add_argument("--cluster", action="store_true", help="and on Hadoop and Spark")
    parser.add_argument("--paths", type=Path, help="run on real lines, too")
    parser.add_argument("--page", type=Path, default=ROOT / "bench/results/scale.md")
    parser.add_argument("--plot", type=Path, default=ROOT / "docs/scale.svg")
    parser.add_argument("--cores", type=int, default=16, help="of each machine that is reckoned")
    parser.add_argument("--euros", type=float, default=1, help="for such a machine and an hour")
    args = parser.parse_args()

    def keep(name: str, runs: Iterator[dict[str, Any]]) -> None:
        for found in runs:
            with args.results.open("a") as file:
                line = {"name": name, "machine": machine(), **found}
                file.write(f"{json.dumps(line)}\n")
            print(name, found, file=sys.stderr, flush=True)

    for records in args.records if args.outputs else ():
        keep("size", ran(args.folder, records, args.outputs))
        if records == min(args.records) and len(args.records) > 1:
            for name, how in VARIED.items():
                keep(name, ran(args.folder, records, "pairs", **how))
    if args.kills:
        keep("killed", killed(args.folder, max(args.records), args.kills))
    if args.dask:
        keep("dask", on_dask(args.folder, max(args.records)))
    if args.cluster:
        keep("cluster", on_cluster(args.folder, max(args.records)))
    if args.paths:
        keep("paths", of_paths(args.folder, args.paths))
    runs = [json.loads(line) for line in args.results.read_text().splitlines()]
    scale_page.draw(runs, args.plot)
    plot = os.path.relpath(args.plot, args.page.parent)
    made_page = scale_page.page(runs, plot, args.cores, args.euros)
    args.page.write_text("".join(f"{line}\n" for line in made_page))


if __name__ == "__main__":
    main()
