"""The ways to run the whole job in tests: each *engine* turns an input into pair lines.

Tests find the programs here, too; with `process=True` these start as in real life, see
`tests.support.programs`.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple, Protocol
from zlib import crc32

from neardup.engines.pipe import KEEPS, MARKS
from tests.support.programs import (  # noqa: F401
    ANSWER,
    COUNT_TOKENS,
    DECIDE,
    DEDUP,
    INLINE,
    JOB,
    KEEP,
    LOCAL,
    MAPPER,
    NEARDUP,
    REDUCER,
    ROOT,
    RUN_HADOOP,
    RUN_LOCAL,
    SHARE_KEYS,
    VIDEOS,
    Command,
    Result,
    a_file,
    environment,
    in_order,
    program,
    refuse,
    run,
    succeed,
)

IN_FILES = ["--memory", "0"]  # no join in memory


class Input(NamedTuple):
    """Input files, and their content as plain lines; the files ["-"] mean standard input."""

    data: bytes
    files: list[str]

    def stdin(self) -> bytes:
        return self.data if "-" in self.files else b""


class Engine(Protocol):
    """A function from an input and options to pair lines."""

    def __call__(
        self, given: Input, flags: list[str], tmp: Path, process: bool = False
    ) -> bytes: ...


def pipe(given: Input, flags: list[str], tmp: Path, process: bool = False) -> bytes:
    """Run cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py; return the pair lines."""
    if process:
        line = f"{shlex.join([*MAPPER, *flags])} | LC_ALL=C sort | {shlex.join([*REDUCER, *flags])}"
        return succeed(["bash", "-o", "pipefail", "-c", line], tmp, given.data).out
    keyed = in_order(succeed([*MAPPER, *flags], tmp, given.data).out)
    return succeed([*REDUCER, *flags], tmp, keyed).out


def pipe_dedup(given: Input, flags: list[str], tmp: Path, process: bool = False) -> bytes:
    pairs = in_order(pipe(given, flags, tmp, process))
    return succeed(DEDUP, tmp, pairs, process).out


def counted_pipe(given: Input, flags: list[str], tmp: Path, process: bool = False) -> bytes:
    counts = counts_of([], flags, tmp, given.data, process)
    return pipe_dedup(given, [*flags, counts], tmp, process)


def counts_of(
    files: list[str], flags: list[str], tmp: Path, data: bytes = b"", process: bool = False
) -> str:
    """Run step.py count map, sum and order; return the option --counts=FILE."""
    lines = in_order(succeed([*COUNT_TOKENS, "map", *flags, *files], tmp, data, process).out)
    sums = in_order(succeed([*COUNT_TOKENS, "sum"], tmp, lines, process).out)
    (tmp / "counts.tsv").write_bytes(succeed([*COUNT_TOKENS, "order"], tmp, sums, process).out)
    return f"--counts={tmp / 'counts.tsv'}"


def split_pipe(given: Input, flags: list[str], tmp: Path, process: bool = False) -> bytes:
    """Run three mappers and three reducers, each for a third of the lines or of the keys."""
    lines = given.data.splitlines(keepends=True)
    thirds = [b"".join(lines[i * len(lines) // 3 : (i + 1) * len(lines) // 3]) for i in range(3)]
    mapped = b"".join(succeed([*MAPPER, *flags], tmp, part, process).out for part in thirds)
    pairs = b""
    for number in range(3):
        mine = [
            line
            for line in in_order(mapped).splitlines(keepends=True)
            if crc32(line.split(b"\t")[0]) % 3 == number
        ]
        pairs += succeed([*REDUCER, *flags], tmp, b"".join(mine), process).out
    return succeed(DEDUP, tmp, in_order(pairs), process).out


def two_rounds(given: Input, flags: list[str], tmp: Path, process: bool = False) -> bytes:
    """Run both rounds, first for keys and then for lines, with two mappers and three reducers."""
    reducers = {"mapreduce_job_reduces": "3"}
    lines = given.data.splitlines(keepends=True)
    halves = [b"".join(lines[: len(lines) // 2]), b"".join(lines[len(lines) // 2 :])]

    def shuffled(command: Command) -> list[bytes]:
        """Return the input of each reducer, by the number of its partition."""
        sent = [succeed(command, tmp, half, process, **reducers).out for half in halves]
        blocks = in_order(b"".join(sent)).splitlines(keepends=True)
        return [b"".join(b for b in blocks if b.startswith(b"p%d/3" % i)) for i in range(3)]

    shared = tmp / "shared-keys"
    shared.mkdir(exist_ok=True)
    for number, blocks in enumerate(shuffled([*SHARE_KEYS, "map", *flags])):
        part = succeed([*SHARE_KEYS, "reduce", *flags], tmp, blocks, process).out
        (shared / f"part-{number:05}").write_bytes(part)
    mapper = [*MAPPER, "--blocks", "--shared-keys", shared, *flags]
    mine = shuffled(mapper)
    return b"".join(succeed([*REDUCER, *flags], tmp, some, process).out for some in mine)


def run_local(jobs: int, *more: str) -> Engine:
    def engine(given: Input, flags: list[str], tmp: Path, process: bool = False) -> bytes:
        command = [*RUN_LOCAL, "--jobs", str(jobs), *more, *flags, *given.files]
        out = succeed(command, tmp, given.stdin(), process).out
        assert out == in_order(out)
        return out

    return engine


def mrjob(command: list[str]) -> Engine:
    def engine(given: Input, flags: list[str], tmp: Path, process: bool = False) -> bytes:
        return succeed([*command, *flags, *given.files], tmp, given.stdin(), process).out

    return engine


ENGINES: dict[str, Engine] = {
    "pipe": pipe,
    "pipe+dedup": pipe_dedup,
    "counted pipe": counted_pipe,
    "split pipe": split_pipe,
    "two rounds": two_rounds,
    "run_local 1": run_local(1),
    "run_local 2": run_local(2, *IN_FILES),
    "run_local 3": run_local(3),
    "mrjob inline": mrjob(INLINE),
    "mrjob local": mrjob(LOCAL),
}


class Deciding(Protocol):
    """A function from an input and options to the output of a decision."""

    def __call__(self, given: Input, flags: list[str], tmp: Path) -> bytes: ...


def deciding_pipe(given: Input, flags: list[str], tmp: Path) -> bytes:
    """Run mapper.py, reducer.py and step.py decide; for kept records, also step.py keep."""
    keyed = in_order(succeed([*MAPPER, *flags, *given.files], tmp, given.stdin()).out)
    edges = in_order(succeed([*REDUCER, *flags], tmp, keyed).out)
    decided = succeed([*DECIDE, *flags], tmp, edges).out
    if not {"--output=kept", "--output=marked"} & {*flags}:
        return decided
    path = tmp / "decided.tsv"
    path.write_bytes(decided)
    used = KEEPS | MARKS if "--output=marked" in flags else KEEPS
    flags = [flag for flag in flags if flag.partition("=")[0] in used]
    return succeed([*KEEP, *flags, "--decided", path, *given.files], tmp, given.stdin()).out


def deciding_local(jobs: int, *more: str) -> Deciding:
    def engine(given: Input, flags: list[str], tmp: Path) -> bytes:
        command = [*RUN_LOCAL, "--jobs", str(jobs), *more, *flags, *given.files]
        return succeed(command, tmp, given.stdin()).out

    return engine


DECIDING: dict[str, Deciding] = {
    "pipe": deciding_pipe,
    "run_local 1": deciding_local(1),
    "run_local 2": deciding_local(2, *IN_FILES),
    "run_local 3": deciding_local(3),
}
