"""A pipe decides as run_local.sh does, and job.py refuses the outputs of decisions."""

from __future__ import annotations

import bz2
import gzip
import random
from pathlib import Path

import pytest

from tests.support.cases import in_turn
from tests.support.engines import (
    DECIDE,
    DEDUP,
    INLINE,
    KEEP,
    LOCAL,
    MAPPER,
    REDUCER,
    RUN_LOCAL,
    Input,
    in_order,
    refuse,
    succeed,
)

RUNNERS = {"inline": INLINE, "local": LOCAL}
TWINS = b"a 1 2 3\nb 1 2 3\n"


def near_copies(seed: int, count: int) -> list[bytes]:
    """Return lines, mostly of near-copies of a few sets; some lines are blank, and some are bad."""
    common, rng = random.Random(0), random.Random(seed)
    sets = [common.sample(range(900), 30) for _ in range(6)]
    lines = []
    for _ in range(count):
        near = list(rng.choice(sets))[: rng.randrange(27, 31)]
        for _ in range(rng.randrange(4)):
            near[rng.randrange(len(near))] = rng.randrange(900)
        lines.append(
            b" ".join([b"%d.%d" % (rng.randrange(count), seed), *map(b"%d".__mod__, near)])
        )
        lines += rng.choices([b"", b"\tbad x\t", b" "], k=rng.randrange(2))
    return lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with old records in old.bz2, and new ones in three files with odd names."""
    folder = tmp_path_factory.mktemp("files")
    files = {
        "old.bz2": bz2.compress(b"\n".join(near_copies(1, 30))),
        "two words.txt": b"\r\n".join(near_copies(2, 60)),
        "a[1].txt": b"\n".join(near_copies(3, 20)) + b"\n",
        "-x.gz": gzip.compress(b"\n".join(near_copies(4, 30))),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def new(folder: Path) -> Input:
    names = ["two words.txt", "a[1].txt", "-x.gz"]
    return Input(b"", [str(folder / name) for name in names])


@pytest.mark.slow
@in_turn(1, command=RUNNERS, between=[[], ["--between"]])
def test_pairs_of_two_collections(
    command: list[str], between: list[str], new: Input, folder: Path, tmp_path: Path
) -> None:
    flags = ["--threshold=0.7", *between, f"--against={folder}/old.bz2"]
    local = succeed([*RUN_LOCAL, *flags, *new.files], tmp_path).out
    kinds = [line.rpartition(b"\t")[2] for line in local.splitlines()]
    assert kinds.count(b"old") > 20
    assert (kinds.count(b"new") > 20) == (not between)
    assert in_order(succeed([*command, *flags, *new.files], tmp_path).out) == local
    mapped = in_order(succeed([*MAPPER, *flags, *new.files], tmp_path).out)
    pairs = in_order(succeed([*REDUCER, *flags], tmp_path, mapped).out)
    assert succeed(DEDUP, tmp_path, pairs).out == local  # ids repeat


@pytest.mark.first_case
@pytest.mark.parametrize("output", ["kept", "removed", "clusters"])
def test_shuffled_lines_and_several_reducers(output: str, new: Input, tmp_path: Path) -> None:
    """Three reducers, each with some of the keys, give the decision of run_local.sh."""
    flags = [f"--output={output}", "--threshold=0.7", "--bands=30", "--rows=3"]
    rng = random.Random(8)
    mapped = succeed([*MAPPER, *flags, *new.files], tmp_path).out.splitlines(keepends=True)
    rng.shuffle(mapped)
    edges: list[bytes] = []
    for number in range(3):
        mine = [line for line in mapped if sum(line.split(b"\t")[0]) % 3 == number]
        out = succeed([*REDUCER, *flags], tmp_path, in_order(b"".join(mine))).out
        edges += out.splitlines(keepends=True)
    rng.shuffle(edges)
    found = succeed([*DECIDE, *flags], tmp_path, in_order(b"".join(edges))).out
    if output == "kept":
        decided = tmp_path / "decided"
        decided.write_bytes(found)
        found = succeed([*KEEP, "--decided", decided, *new.files], tmp_path).out
    assert found == succeed([*RUN_LOCAL, *flags, *new.files], tmp_path).out


def test_two_mappers_of_standard_input_are_refused(tmp_path: Path) -> None:
    flags = ["--output=removed"]
    others = b"c 1 2 3\nd 1 2 3\n"
    mapped = b"".join(succeed([*MAPPER, *flags], tmp_path, some).out for some in [TWINS, others])
    edges = in_order(succeed([*REDUCER, *flags], tmp_path, in_order(mapped)).out)
    wrong = refuse([*DECIDE, *flags], tmp_path, code=1, stdin=edges)
    assert "give all files to one mapper.py by name" in wrong.err.splitlines()[-1]


# What it refuses.


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder", "folder: is a directory; name the files in it; "),
        ("missing", "missing: no such file"),
        ("two\nlines", "'two\\nlines': has a line end in its name; rename it"),
    ],
)
def test_old_files_that_cannot_be_read(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "two\nlines").write_bytes(TWINS)
    result = refuse([*INLINE, "--against", name, "-"], tmp_path, code=1, stdin=TWINS, cwd=tmp_path)
    last = result.err.splitlines()[-1].replace(f"{tmp_path}/", "")
    assert last.startswith(f"job.py: {message}")
