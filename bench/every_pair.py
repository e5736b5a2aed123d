"""Compare `neardup run --exact` with a nested loop: all measures, thresholds, two collections.

    python3 -m bench.every_pair --workloads 'W1 100k' W2 --most 10000000

`bench/nested_loop.c` counts what every two records share and shares no code with the package; it
prints the number of pairs and the sum of their hashes for each case, and checks each line that
neardup prints.  A case with more pairs than `--most` is left out by name.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.workloads import FOLDER, ROOT, WORKLOADS, Workload, prepare_file

KINDS = ("one", "two")  # collections
OF_PREFIXES = "overlap", "containment"  # measures with one scheme that finds every pair


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.every_pair", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--workloads", nargs="+", default=["W1 100k", "W2"])
    parser.add_argument("--most", type=int, default=10_000_000, help="pairs of a case")
    parser.add_argument("--collections", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--memory", default="8G", help="of neardup")
    args = parser.parse_args()
    program = compiled()
    wrong = 0
    print(
        "| workload | collections | measure | T | pairs | CPU s | |\n|---|---|---|---|---|---|---|"
    )
    for workload in [each for each in WORKLOADS if each.name in args.workloads]:
        prepare_file(workload)
        halves = split(workload.path)
        for measure, t, kind, pairs, total in cases(program, workload):
            if kind not in args.collections:
                continue
            row = f"| {workload.name} | {kind} | {measure} | {t} | {pairs:,} |"
            if pairs > args.most:
                print(f"{row} | left out |", flush=True)
                continue
            files = [workload.path] if kind == "one" else ["--against", *halves]
            scheme = "prefix" if measure in OF_PREFIXES else "exact"
            options = ["--scheme", scheme, "--measure", measure, "--threshold", t]
            options += ["--memory", args.memory]
            seconds, found = checked(program, workload, measure, t, [*options, *files])
            equal = found == [str(pairs), total, "0"]
            wrong += not equal
            says = "equal" if equal else "DIFFERS: {0} pairs, {2} of them wrong".format(*found)
            print(f"{row} {seconds:.1f} | {says} |", flush=True)
    sys.exit(wrong > 0)


def compiled() -> Path:
    program, source = FOLDER / "nested_loop", ROOT / "bench" / "nested_loop.c"
    FOLDER.mkdir(exist_ok=True)
    flags = ["-O3", "-march=native", "-o", str(program), str(source), "-lm"]
    subprocess.run([os.environ.get("CC", "cc"), *flags], check=True)
    return program


def split(path: Path) -> list[Path]:
    """Write the even and the odd lines of a file to files of their own; return the two."""
    halves = [path.with_suffix(f".{kind}.txt") for kind in ("even", "odd")]
    with path.open("rb") as lines, halves[0].open("wb") as even, halves[1].open("wb") as odd:
        for number, line in enumerate(lines):
            (odd if number % 2 else even).write(line)
    return halves


def cases(program: Path, workload: Workload) -> Iterator[tuple[str, str, str, int, str]]:
    """Yield (measure, threshold, collections, pairs, sum) of the nested loop; high ones first."""
    done = subprocess.run(
        [program, "count", workload.path], check=True, stdout=subprocess.PIPE, text=True
    )
    for line in sorted(done.stdout.splitlines(), key=lambda line: line.split()[1], reverse=True):
        measure, t, *counts = line.split()
        for kind, pairs, total in zip(KINDS, counts[::2], counts[1::2]):
            yield measure, t, kind, int(pairs), total


def checked(
    program: Path, workload: Workload, measure: str, t: str, options: list[str | Path]
) -> tuple[float, list[str]]:
    """Return the CPU seconds of neardup, and what the nested loop says of the pairs it prints."""
    command = [sys.executable, "-m", "neardup", "run", *options]
    with tempfile.TemporaryFile(dir=FOLDER) as pairs:
        before = os.times()
        subprocess.run(command, check=True, stdout=pairs, stderr=subprocess.DEVNULL, cwd=ROOT)
        after = os.times()
        pairs.seek(0)
        done = subprocess.run(
            [program, "check", workload.path, measure, t],
            check=True,
            stdin=pairs,
            stdout=subprocess.PIPE,
            text=True,
        )
    seconds = after[2] + after[3] - before[2] - before[3]
    return seconds, done.stdout.split()


if __name__ == "__main__":
    main()
