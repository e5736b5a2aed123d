"""Measure time and recall of comparing 10,000 new records with old ones, with or without an index.

    python3 -m bench.compare_increments
    python3 -m bench.compare_increments --old 100000 --peers-python /opt/peers/bin/python

prints a Markdown table.  Made-up videos, of which every so-manieth is new, so that near-copies are
on both sides; each program in a process of its own, `--rounds` times with one index, medians.

    index      seconds to make it of the old records, and how large it is
    new        seconds from the file of new records, and the index, to the answer
    recall     of the pairs with a new record that `--exact` finds, or of the new records in them

datasketch is asked for at most 100,000 old ones (SLOW): it takes about 0.1 ms and 8 kB for each.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.contestants import CONTESTANTS, OURS, cores, missing
from bench.measure import DONE, Run, measured_apart
from bench.workloads import FOLDER, prepare, videos

HEAD = (
    "| old records | program | index, s | index, MiB | new, s | peak MiB | answer | recall | "
    "precision |\n|---:|---|---:|---:|---:|---:|---:|---:|---:|"
)
SLOW = 100_000  # old records, at most, for datasketch
PEERS = {"rensa": "rensa, flags only", "datasketch": "datasketch, made to verify"}
ANSWER = FOLDER / "increment.tsv"
INDEX = FOLDER / "increment.index"
LIMIT = 1800.0


class Program(NamedTuple):
    name: str
    build: list[str]  # empty where no index is made
    ask: list[str]
    flags: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.compare_increments", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--old", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--new", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers-python", default=sys.executable, metavar="PATH")
    args = parser.parse_args()
    print(HEAD)
    for count in args.old:
        old, new = split(count, args.new)
        exact = run([f"./{OURS}", "--exact", "--against", str(old), str(new)])
        if exact.status != DONE:
            raise SystemExit(f"bench.compare_increments: {exact.status}: {exact.said}")
        true = pairs_in(ANSWER.read_bytes())
        ids = {line.split(None, 1)[0] for line in new.read_bytes().splitlines()}
        for program in programs(old, new, args.peers_python, count):
            print(f"| {count:,} | {row(program, true, ids, args.rounds)} |", flush=True)
        old.unlink()
        new.unlink()
    ANSWER.unlink(missing_ok=True)


def split(old: int, new: int) -> tuple[Path, Path]:
    """Split synthetic videos into a file of old and a file of new records; return the paths."""
    workload = videos(old + new)._replace(answer=[])
    prepare(workload)
    step = (old + new) // new
    paths = FOLDER / "increment.old.txt", FOLDER / "increment.new.txt"
    with (
        open(workload.path, "rb") as lines,
        open(paths[0], "wb") as rest,
        open(paths[1], "wb") as some,
    ):
        for _ in range(new):
            some.write(next(lines))
            rest.writelines(islice(lines, step - 1))
        rest.writelines(lines)
    return paths


def programs(old: Path, new: Path, python: str, count: int) -> list[Program]:
    index = str(INDEX)
    ours = [sys.executable, "-m", "neardup", "index", str(old), "--to", index]
    all_programs = [
        Program(f"`{OURS} --against` the index", ours, [f"./{OURS}", "--against", index, str(new)]),
        Program(f"`{OURS} --against` the file", [], [f"./{OURS}", "--against", str(old), str(new)]),
    ]
    absent = missing(python, [one for one in CONTESTANTS if one.module in PEERS])
    here = {one.module for one in CONTESTANTS if one.name not in absent}
    for peer, name in PEERS.items():
        if peer not in here:
            print(
                f"bench: not installed: {peer}; pip install '.[bench]', or --peers-python PATH",
                file=sys.stderr,
            )
        elif peer != "datasketch" or count <= SLOW:
            command = [python, "-m", f"bench.peers.{peer}_index"]
            options = ["--index", index, "--threads", str(cores())]
            build = [*command, str(old), *options, "--build"]
            all_programs.append(
                Program(name, build, [*command, str(new), *options], peer == "rensa")
            )
    return all_programs


def row(program: Program, true: set[tuple[bytes, bytes]], ids: set[bytes], rounds: int) -> str:
    made, size = "–", "–"
    remove_index()
    if program.build:
        build = run(program.build)
        if build.status != DONE:
            return f"{program.name} | {build.status}: {build.said} | | | | | | "
        made = f"{build.seconds:.1f}"
        size = f"{sum(file.stat().st_size for file in INDEX.rglob('*')) / 2**20:.0f}"
    runs = [run(program.ask) for _ in range(rounds)]
    failed = [each for each in runs if each.status != DONE]
    if failed:
        return f"{program.name} | {made} | {size} | {failed[0].status}: {failed[0].said} | | | | "
    answer = ANSWER.read_bytes()
    remove_index()
    wanted: set[Any] = true
    if program.flags:
        wanted = ids & {id_ for pair in true for id_ in pair}
        found: set[Any] = set(answer.split())
    else:
        found = pairs_in(answer)
    right = len(found & wanted)
    seconds = median(each.seconds for each in runs)
    peak = max(each.mebibytes for each in runs)
    unit = "flags" if program.flags else "pairs"
    shares = f"{right / len(wanted):.5g} | {right / max(1, len(found)):.5g}"
    return (
        f"{program.name} | {made} | {size} | {seconds:.2f} | {peak:.0f} | {len(found):,} {unit} | "
        f"{shares}"
    )


def run(command: list[str]) -> Run:
    return measured_apart(command, str(ANSWER), LIMIT)


def remove_index() -> None:
    shutil.rmtree(INDEX, ignore_errors=True)


def pairs_in(lines: bytes) -> set[tuple[bytes, bytes]]:
    r"""Return the pairs of ids in pair lines, the smaller id first, without the similarity.

    >>> pairs_in(b"b\ta\t0.900000\tnew\n")
    {(b'a', b'b')}
    """
    pairs = (line.split(b"\t")[:2] for line in lines.splitlines())
    return {(min(a, b), max(a, b)) for a, b in pairs}


if __name__ == "__main__":
    main()
