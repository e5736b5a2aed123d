"""Compressed files are read and written like plain ones, and damaged ones are reported."""

import bz2
import gzip
import io
import lzma
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any, Callable

import pytest

from neardup.reading.blocks import BLOCK_BYTES
from neardup.reading.compressed import OPENERS, opened, packing, plain_name, unpacked
from neardup.runtime.program import StageError
from tests.support.engines import a_file, refuse
from tests.support.programs import RUN_LOCAL, run, succeed

TEXT = b"".join(b"v%d %d %d\n" % (i, i, i * i) for i in range(40_000))


def zstd() -> Callable[[bytes], bytes]:
    if sys.version_info >= (3, 14):
        from compression import zstd as module
    else:
        module = pytest.importorskip("backports.zstd")
    compress: Callable[[bytes], bytes] = module.compress
    return compress


PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": partial(lzma.compress, preset=0),
    ".zst": lambda data: zstd()(data),
}
suffixes = pytest.mark.parametrize("suffix", OPENERS)


@cache
def whole(suffix: str) -> bytes:
    return PACK[suffix](TEXT)


def test_all_are_tried() -> None:
    assert PACK.keys() == OPENERS.keys()


def read(path: Path) -> bytes:
    return b"".join(unpacked(str(path)))


@suffixes
def test_what_is_in_them(suffix: str, tmp_path: Path) -> None:
    path = a_file(tmp_path / f"a{suffix}", whole(suffix))
    behind: list[int] = []
    assert b"".join(unpacked(str(path), behind.append)) == TEXT
    assert behind == sorted(behind)
    assert 0 < behind[0] <= behind[-1] == path.stat().st_size
    path.write_bytes(PACK[suffix](b""))
    assert read(path) == b""


@suffixes
def test_parts_one_after_another_are_read_in_small_blocks(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    parts = bytes(3 << 20), b"", TEXT  # the first is packed to a few thousand bytes
    path.write_bytes(b"".join(map(PACK[suffix], parts)))
    blocks = list(unpacked(str(path)))
    assert b"".join(blocks) == b"".join(parts)
    assert max(map(len, blocks)) <= BLOCK_BYTES


@suffixes
@pytest.mark.parametrize("damage", ["empty", "half", "no end", "another form", "a byte"])
def test_damaged(suffix: str, damage: str, tmp_path: Path) -> None:
    packed = whole(suffix)
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0xFF
    data = {
        "empty": b"",
        "half": packed[: len(packed) // 2],
        "no end": packed[:-1],
        "another form": TEXT,
        "a byte": bytes(flipped),
    }[damage]
    path = a_file(tmp_path / f"a.txt{suffix}", data)
    if damage == "a byte" and suffix == ".zst":
        pytest.skip("a checksum is optional in .zst")
    with pytest.raises(StageError, match=rf"a\.txt{suffix}: damaged: "):
        read(path)
    if damage in ("no end", "another form"):  # to a run, damage is damage
        refuse([*RUN_LOCAL, "--jobs=1", path], tmp_path, f"{path}: ", code=1)


@pytest.mark.parametrize(("suffix", "codec"), [(".bz2", bz2), (".xz", lzma)])
def test_a_damaged_stream_behind_a_whole_one_is_an_error(
    suffix: str, codec: Any, tmp_path: Path
) -> None:
    """Files of several streams are read to their end, and damage anywhere in them is reported."""
    lines = [b"%d: a line of text\n" % i for i in range(2000)]
    parts = [codec.compress(b"".join(lines[i : i + 1000])) for i in (0, 1000)]
    path = a_file(tmp_path / f"a.txt{suffix}", b"".join(parts))
    assert read(path) == b"".join(lines)
    path.write_bytes(parts[0] + bytes(4096) + parts[1] + bytes(8))  # padding is allowed
    assert read(path) == b"".join(lines)
    for at in (0, 1, 20, len(parts[1]) // 2, len(parts[1]) - 3):
        damaged = bytearray(parts[1])
        damaged[at] ^= 1
        path.write_bytes(parts[0] + damaged)
        with pytest.raises(StageError, match=rf"a\.txt{suffix}: damaged: "):
            read(path)
    for rest in (b"x", b"BZh", parts[1][:-5]):
        path.write_bytes(parts[0] + rest)
        with pytest.raises(StageError, match=rf"a\.txt{suffix}: damaged: "):
            read(path)


@pytest.mark.first_case
@suffixes
def test_what_is_written_is_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    zstd() if suffix == ".zst" else None
    for data in (TEXT, b""):
        with open(path, "wb") as file, packing(file, path.name) as sink:
            sink.writelines([data[:10], data[10:]])
        assert read(path) == data
        assert path.read_bytes() != data


def test_a_plain_file_is_left_as_it_is() -> None:
    file = io.BytesIO()
    with packing(file, "a.txt") as sink:
        sink.write(b"a")
    assert file.getvalue() == b"a"
    assert plain_name("a.b.zst") == "a.b"


def test_equal_answers_are_equal_files(tmp_path: Path) -> None:
    names = [tmp_path / "one.gz", tmp_path / "two.gz"]
    for path in names:
        with open(path, "wb") as file, packing(file, path.name) as sink:
            sink.write(TEXT)
    assert names[0].read_bytes() == names[1].read_bytes()


def test_no_such_file_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), opened(str(tmp_path / "a.gz"), "a.gz"):
        pass


@pytest.mark.slow
def test_without_the_package_for_zst(tmp_path: Path) -> None:
    """Without a package for .zst, the message names it and the command that unpacks the file."""
    for package in ("backports", "compression"):
        folder = tmp_path / "path" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("raise ImportError('hidden')\n")
    path = a_file(tmp_path / "a.txt.zst", b"(\xb5/\xfd")
    result = run([*RUN_LOCAL, path], tmp_path, PYTHONPATH=str(tmp_path / "path"))
    assert (result.code, result.out, result.left) == (1, b"", [])
    assert "pip install backports.zstd; or unpack the file first: zstd -d FILE" in result.err


@pytest.mark.first_case
@suffixes
def test_a_run_reads_and_writes_them(suffix: str, tmp_path: Path) -> None:
    path, answer = tmp_path / f"a{suffix}", tmp_path / f"pairs{suffix}"
    path.write_bytes(PACK[suffix](b"a 1 2\nb 2 1\nc 3\n"))
    succeed([*RUN_LOCAL, path, "-o", answer], tmp_path)
    assert read(answer) == b"a\tb\t1.000000\n"
