"""Video fingerprints as bytes, lines and rows of a table; other content is refused."""

import gzip
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.media.frames.frame_store import is_print_file, prints_in, write_prints
from neardup.media.frames.print_sources import PrintSpool
from neardup.media.frames.video_prints import VideoPrint, from_bytes, to_bytes, to_line
from neardup.runtime.program import StageError
from tests.support.made_up_prints import same


def made_up(seed: int, frames: int = 5, variants: int = 3) -> VideoPrint:
    draw = np.random.default_rng(seed)
    starts = np.cumsum(draw.integers(1, 1000, frames))
    spans = np.stack((starts, starts + draw.integers(1, 500, frames)), axis=1)
    hashes = draw.integers(0, 2**64, (frames, variants, 4), np.uint64)
    names = tuple(f"v{k}" for k in range(variants))
    return VideoPrint(f"ä{seed}%20.mp4", {"seconds": 1.5, "codec": "h264"}, names, spans, hashes)


@pytest.mark.parametrize("frames", [0, 1, 2, 300])
def test_as_bytes(frames: int) -> None:
    video = made_up(1, frames)
    assert same(video, from_bytes(to_bytes(video)))


@given(st.binary(max_size=60))
@example(b'"ab"')
@example(b"[1,2]")
@example(b"[" * 100_000)
@example(b'{"id":"a","facts":{},"variants":[],"spans":%d}\n' % 10**30 + zlib.compress(b""))
def test_other_bytes(value: bytes) -> None:
    assert from_bytes(value) is None


@given(st.integers(0, 500), st.integers(0, 255))
def test_damaged_bytes(at: int, byte: int) -> None:
    """Damaged bytes give None or a fingerprint, and raise no exception."""
    value = bytearray(to_bytes(made_up(1)))
    value[at % len(value)] = byte
    found = from_bytes(bytes(value))
    assert found is None or isinstance(found, VideoPrint)


def test_neighbours_take_less_room() -> None:
    video = made_up(1, 1000)
    alike = video._replace(hashes=np.repeat(video.hashes[:100], 10, axis=0))
    assert len(to_bytes(alike)) < 0.2 * len(to_bytes(video))


def test_a_spool(tmp_path: Path) -> None:
    spool = PrintSpool(tmp_path / "spool")
    videos = [made_up(seed, 10 * seed) for seed in range(5)]
    for video in videos:
        spool.add(video.id.encode(), video)
    order = [videos[k] for k in (3, 0, 4)]
    found = list(spool.prints([*(video.id.encode() for video in order), b"unknown"]))
    assert len(found) == 3
    assert all(map(same, order, found))
    spool.close()


@pytest.mark.parametrize(
    "name", ["p.index", "p.jsonl", "p.jsonl.gz", "p.txt.xz", "p.parquet", "p.arrow"]
)
def test_files(name: str, tmp_path: Path) -> None:
    if name.endswith(("parquet", "arrow")):
        pytest.importorskip("pyarrow")
    videos = [made_up(seed, 3 * seed) for seed in range(10)]
    path = tmp_path / name
    with path.open("wb") as sink:
        write_prints(sink, str(path), iter(videos))
    assert is_print_file(str(path))
    bad: list[str] = []
    assert all(map(same, videos, prints_in(str(path), bad.append)))
    assert len(list(prints_in(str(path), bad.append))) == 10
    assert bad == []


def test_no_prints(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0\0\0 ftypisom")
    (tmp_path / "y").touch()
    (tmp_path / "z.gz").write_bytes(gzip.compress(b"id,facts\n"))
    for name in "x", "y", "z.gz":
        assert not is_print_file(str(tmp_path / name))


def test_bad_lines(tmp_path: Path) -> None:
    good, cut = to_line(made_up(1)), to_line(made_up(2))[:-80] + b"\n"
    (tmp_path / "p").write_bytes(b"\n" + good + cut + b"{}\n" + good)
    bad: list[str] = []
    assert len(list(prints_in(str(tmp_path / "p"), bad.append))) == 2
    assert [message[:40] for message in bad] == [
        "line 3: expected the print of a video, g",
        "line 4: expected the print of a video, g",
    ]


def test_bad_rows(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = str(tmp_path / "p")
    with open(path, "wb") as sink:
        write_prints(sink, "p.parquet", [made_up(seed) for seed in range(11)])
    table = parquet.read_table(path).to_pylist()
    changes = [{"facts": "x"}, {"facts": None}, {"id": None}, {"id": "a\tb"}, {"variants": []}]
    changes += [{"hashes": table[6]["hashes"][:-1]}, {"starts": table[7]["starts"][::-1]}]
    changes += [{"variants": [None] * len(table[8]["variants"])}]
    for row, change in zip(table[1:], changes):
        row.update(change)
    parquet.write_table(arrow.Table.from_pylist(table, parquet.read_schema(path)), path)
    bad: list[str] = []
    assert [video.id for video in prints_in(path, bad.append)] == [
        made_up(seed).id for seed in (0, 9, 10)
    ]
    assert bad == [f"row {k}: expected the print of a video" for k in range(2, 10)]
    parquet.write_table(arrow.table({"id": ["a"]}), path)
    with pytest.raises(StageError, match="has no column facts; expected a table of prints, as"):
        list(prints_in(path, bad.append))
    (tmp_path / "p").write_bytes(b"PAR1\x15 and no more")
    with pytest.raises(StageError, match="is not a Parquet file, or damaged"):
        list(prints_in(path, bad.append))
