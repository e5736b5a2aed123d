"""A run file, with a run's options and counts, is read as it was written, or refused."""

import json
from pathlib import Path

import pytest

from neardup.runtime.counters import RunFile
from neardup.runtime.program import StageError

TOLD = RunFile(
    options=["--threshold=0.8", "--input=text"],
    files=["/data/a.txt", "/data/\udcff é"],
    output="pairs",
    threshold="4/5",
    measure="jaccard",
    scheme="minhash",
    promise="15 bands of 7 rows …",
    counts={"records": 2000, "bad lines: no id": 1},
    seconds={"count": 0.1},
    started="2026-05-31T18:00:00Z",
    took=83.5,
    program="run_local.sh",
    version="0.1.0",
)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    names = [tmp_path / ".pairs.tsv.neardup.json", tmp_path / ".neardup.json"]
    for name in names:
        name.write_bytes(TOLD.format())
    for name in (*names, tmp_path / "pairs.tsv", tmp_path):
        assert RunFile.of(name) == TOLD


def test_what_a_later_version_adds_is_no_harm() -> None:
    assert RunFile.parse(json.dumps({**json.loads(TOLD.format()), "more": [1]}).encode()) == TOLD


def _without(name: str) -> bytes:
    return json.dumps({k: v for k, v in json.loads(TOLD.format()).items() if k != name}).encode()


LACKS = "written by neardup 0.1.0, and its field {} is missing"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOLD.format()[:-9], "damaged: not JSON"),
        (b"\xff\xfe", "damaged: not JSON"),
        (b"[" * 100_000, "damaged: not JSON"),
        (b"[1]", "is not a file of a run's options and counts"),
        (b'{"options": []}', "is not a file of a run's options and counts"),
        (_without("files"), LACKS.format("files")),
        (TOLD.format().replace(b"2000", b'"x"'), LACKS.format("counts")),
        (TOLD.format().replace(b'"4/5"', b"0.8"), LACKS.format("threshold")),
        *[
            (TOLD.format().replace(b"4/5", wrong), LACKS.format("threshold"))
            for wrong in (b"1/0", b"0/1", b"5/4", b"0.8", b"4/5\\n", b"1e9999999999")
        ],
        (TOLD.format().replace(b"4/5", b"1/" + b"9" * 5000), LACKS.format("threshold")),
    ],
)
def test_anything_else_is_refused(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / ".neardup.json"
    path.write_bytes(text)
    with pytest.raises(StageError) as found:
        RunFile.of(path)
    assert str(found.value).startswith(f"{path}: {message}")
    assert str(found.value).endswith("; run again with -o")


def test_none_is_there(tmp_path: Path) -> None:
    with pytest.raises(
        StageError, match=r"pairs: .*\.pairs\.neardup\.json not found; run_local.sh -o FILE"
    ):
        RunFile.of(tmp_path / "pairs")
