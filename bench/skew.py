"""Run inputs that are as skewed as can be, whose answers are known: time, memory, and lines.

    python3 -m bench.skew

Each is run in memory, in files (`--memory 0`) and with `--exact`.  A row is wrong if the number of
lines is not the one that follows from how the input was made.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.measure import measured_apart
from bench.workloads import FOLDER, ROOT

ROADS = {"default": [], "--memory 0": ["--memory", "0"], "--exact": ["--exact"]}


class Input(NamedTuple):
    says: str
    output: str
    lines: int
    sets: Iterator[Sequence[int]]


def inputs() -> Iterator[tuple[str, Input]]:
    draw = random.Random(1)

    def tokens(n: int) -> list[int]:
        return [draw.getrandbits(31) << 1 for _ in range(n)]

    one = tokens(20)
    equal = Input("1,000,000 equal sets of 20", "kept", 1, (one for _ in range(1_000_000)))
    yield "equal", equal
    some = (tokens(20) for _ in range(50_000))
    twice = ([1, *each] for each in some for _ in range(2))
    yield "common", Input("100,000 sets, in pairs, one token in all", "pairs", 50_000, twice)
    single = ([i % 1000] for i in range(100_000))
    yield "single", Input("100,000 sets of one token, 100 of each", "pairs", 4_950_000, single)
    every = range(7_000_000)  # a line of 55 MB; the longest that is read has 64 MiB
    giant = [*(tokens(20) for _ in range(1000)), every, every[70_000:]]
    yield "giant", Input("1,000 sets, and two of 7 million tokens", "pairs", 1, iter(giant))


def main() -> None:
    wrong = 0
    print(
        "| sets | output | road | seconds | CPU s | largest process, MiB | lines |\n"
        "|---|---|---|---|---|---|---|",
        flush=True,
    )
    FOLDER.mkdir(exist_ok=True)
    for name, given in inputs():
        path, answer = FOLDER / f"skew.{name}.txt", FOLDER / "skew.out"
        with path.open("w") as file:
            for number, tokens in enumerate(given.sets):
                file.write(f"v{number} {' '.join(map(str, tokens))}\n")
        for road, options in ROADS.items():
            command = [str(ROOT / "run_local.sh"), "--output", given.output, "--max-line", "64"]
            command += [*options, str(path)]
            run = measured_apart(command, str(answer), 900)
            with answer.open("rb") as lines:
                found = sum(1 for _ in lines)
            right = run.status == "done" and found == given.lines
            wrong += not right
            cells = [given.says, given.output, f"`{road}`", f"{run.seconds:.1f}", f"{run.cpu:.1f}"]
            cells += [f"{run.mebibytes:.0f}", f"{found:,}" if right else f"{run.status} {run.said}"]
            print("|", " | ".join(cells), "|", flush=True)
        path.unlink()
        answer.unlink()
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
