"""Tests of `sketch` and `similar` as programs: their files, their lines and their refusals."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.engines import ANSWER, NEARDUP, VIDEOS, Result, refuse, run, succeed
from tests.support.sessions import PATIENCE, session

SIMILAR = [*NEARDUP, "similar"]
RECORDS = b"a 1 2 3 4 5 6 7 8 9 10\nb 1 2 3 4 5 6 7 8 9 11\nc 1 2 3 4 5 6 7 8 9 10\nd 1 2 3 4 5\n"


def sketch(tmp: Path, name: str, *flags: str, data: bytes = RECORDS) -> Result:
    command = [*NEARDUP, "sketch", "-", "--to", tmp / name, *flags]
    return run(command, tmp, data)


def similar(tmp: Path, name: str, *words: str) -> Result:
    return run([*SIMILAR, tmp / name, *words], tmp)


def test_lines_have_an_interval_and_an_estimate(tmp_path):
    assert sketch(tmp_path, "s").code == 0
    result = similar(tmp_path, "s", "--threshold=0.8")
    assert result.lines() == [
        b"a\tb\t~0.818182..0.818182\t0.818182\n",
        b"a\tc\t~1.000000..1.000000\t1.000000\n",
        b"b\tc\t~0.818182..0.818182\t0.818182\n",
    ]
    assert result.count("pairs") == 3
    assert len(similar(tmp_path, "s", "--threshold=0.8", "--of=b").lines()) == 2
    assert sketch(tmp_path, "m", "--kind=mod:1").code == 0
    contained = similar(tmp_path, "m", "--measure=containment", "--threshold=1").lines()
    assert [line[:3] for line in contained] == [b"a\tc", b"c\ta", b"d\ta", b"d\tb", b"d\tc"]


@pytest.mark.slow
def test_the_pairs_of_the_made_up_videos(tmp_path):
    """The estimates equal the exact answer if the sketches contain whole sets."""
    succeed([*NEARDUP, "sketch", VIDEOS, "--to", tmp_path / "v", "--kind=min:4096"], tmp_path)
    lines = similar(tmp_path, "v").lines()
    told = [b"\t".join(line.rstrip().split(b"\t")[i] for i in (0, 1, 3)) + b"\n" for line in lines]
    assert told == ANSWER.read_bytes().splitlines(keepends=True)


def test_sketches_of_other_options_are_not_compared(tmp_path):
    for seed in "0", "1":
        assert sketch(tmp_path, f"s{seed}", f"--seed={seed}", "--kind=signature:9").code == 0
    assert (tmp_path / "s0").read_bytes() != (tmp_path / "s1").read_bytes()
    said = "s0 was made with --seed 0, and", "s1 with --seed 1; make one of them again"
    refuse([*SIMILAR, tmp_path / "s0", tmp_path / "s1"], tmp_path, *said)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--measure", "containment"], 2, "needs sketches of --kind mod:M, and"),
        (["--of", "nobody"], 1, "none of 4 records has id 'nobody'"),
    ],
)
def test_what_these_sketches_cannot_answer(words, code, said, tmp_path):
    assert sketch(tmp_path, "s").code == 0
    refuse([*SIMILAR, tmp_path / "s", *words], tmp_path, said, code=code)


def flip(data: bytes, byte: int) -> bytes:
    damaged = bytearray(data)
    damaged[byte] ^= 1
    return bytes(damaged)


@pytest.fixture(scope="module")
def sketched(tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("sketched")
    assert sketch(folder, "s").code == 0
    return (folder / "s").read_bytes()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda data: data[:-1], "damaged, it is cut short; make the sketches again"),
        (lambda data: data[:70], "damaged, it is cut short; make the sketches again"),
        (lambda data: flip(data, 70), "damaged, checksum mismatch from byte 0 on"),
        (lambda data: flip(data, -30), "damaged, checksum mismatch"),
        (lambda data: flip(data, 25), "made by another version of neardup"),
        (lambda data: RECORDS, "is not a file of sketches; make one with python3 -m"),
        (lambda data: b"", "is not a file of sketches; make one with python3 -m"),
    ],
)
def test_what_is_no_whole_file_of_sketches_is_refused(harm, said, sketched, tmp_path):
    (tmp_path / "s").write_bytes(harm(sketched))
    refuse([*SIMILAR, tmp_path / "s"], tmp_path, said, code=1)


@pytest.mark.parametrize("byte", range(0, 515, 39))
def test_no_flipped_bit_goes_unseen(byte, sketched, tmp_path):
    (tmp_path / "s").write_bytes(flip(sketched, byte))
    refuse([*SIMILAR, tmp_path / "s"], tmp_path, code=1)


@pytest.mark.slow
def test_kill_9_leaves_nothing_for_long(tmp_path):
    (tmp_path / "out").mkdir()
    command = [*NEARDUP, "sketch", "-", "--to", str(tmp_path / "out" / "s")]
    with session(command, tmp_path, subprocess.PIPE) as it:
        end = time.monotonic() + PATIENCE
        while not list(tmp_path.glob("out/.neardup.run.*/half")) and time.monotonic() < end:
            time.sleep(0.01)
        it.process.kill()
        it.ended()
    assert len(os.listdir(tmp_path / "out")) == 1
    assert sketch(tmp_path, "out/s").code == 0
    assert os.listdir(tmp_path / "out") == ["s"]


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "out").mkdir()
    words = [*NEARDUP, "sketch", VIDEOS, "--to", tmp_path / "out" / "s"]
    limited = ["bash", "-c", 'ulimit -f 100; exec "$@"', "-", *words]
    refuse(limited, tmp_path, f"neardup sketch: {tmp_path}/out/s: File too large\n", code=1)
    assert os.listdir(tmp_path / "out") == []


def test_a_bad_line_with_strict_leaves_no_file(tmp_path):
    assert sketch(tmp_path, "s", "--strict", data=b"a 1 x\n").code == 1
    assert os.listdir(tmp_path) == ["tmpdir"]


def test_other_programs_refuse_estimates(tmp_path):
    assert sketch(tmp_path, "s").code == 0
    (tmp_path / "pairs").write_bytes(similar(tmp_path, "s").out)
    said = "expected exact pairs, got an estimate of --verify sketch"
    refuse([*NEARDUP, "evaluate", tmp_path / "pairs", ANSWER], tmp_path, said, code=1)
