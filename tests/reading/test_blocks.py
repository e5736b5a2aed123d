"""Files and pipes as blocks of whole lines, and the one place where errors end."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import io
import re
from itertools import chain, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.process import run as run_module
from neardup.process.errors import StageError, UsageError
from neardup.process.run import run, write_all
from neardup.reading import blocks as blocks_module
from neardup.reading.blocks import blocks_of, check_inputs, count_lines, read_files, whole_lines

FAR = 1 << 40
LINE_END = re.compile(rb"\r\n|\n|\r")


@given(st.lists(st.binary(max_size=6)), st.integers(1, 9))
def test_blocks_are_the_stream_cut_between_lines(lines, size):
    data = b"\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_module, "BLOCK_BYTES", size)
        blocks = list(whole_lines(io.BytesIO(data), FAR))
    given = b"".join(block for _, block, _ in blocks)
    assert given in (data, data + b"\n")
    assert given.endswith((b"\n", b"\r")) or not data
    assert count_lines(given) == len(LINE_END.split(data)) - (LINE_END.split(data)[-1] == b"")
    number = 1
    for line, block, cut in blocks:
        assert block.endswith((b"\n", b"\r"))
        assert not cut
        assert line == number
        number += count_lines(block)


@given(st.lists(st.integers(0, 40), min_size=1), st.booleans())
def test_long_lines_come_alone_and_cut_with_their_number(lengths, last_ended):
    data = b"\n".join(b"%d:" % number + b"x" * n for number, n in enumerate(lengths, 1))
    limit = 16
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_module, "BLOCK_BYTES", limit)
        patch.setattr(blocks_module, "CUT_BYTES", 5)
        blocks = list(whole_lines(io.BytesIO(data + b"\n" * last_ended), limit))
    long = {number: text for number, text in enumerate(data.split(b"\n"), 1) if len(text) > limit}
    assert {line: block for line, block, cut in blocks if cut} == {
        number: text[:5] for number, text in long.items()
    }
    kept = b"".join(block for _, block, cut in blocks if not cut).split()
    assert kept == [text for text in data.split(b"\n") if len(text) <= limit]


def test_a_file_of_carriage_returns_is_no_single_long_line(monkeypatch):
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 10)
    data = b"".join(b"v%d 1 2 3\r" % number for number in range(20))
    blocks = list(whole_lines(io.BytesIO(data), 20))
    assert not any(cut for _, _, cut in blocks)
    assert b"".join(block for _, block, _ in blocks).split(b"\r")[:-1] == data.split(b"\r")[:-1]


class CountingReads(io.BytesIO):
    reads = 0

    def read(self, size=-1):
        self.reads += 1
        return super().read(size)


def test_a_run_of_carriage_returns_is_read_in_blocks(monkeypatch):
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 100)
    stream = CountingReads(b"\r" * 10_000 + b"v 1\r\n")
    blocks = list(whole_lines(stream, 100))
    assert b"".join(block for _, block, _ in blocks) == stream.getvalue()
    assert stream.reads <= 202 + 10


def test_standard_input_comes_in_blocks_of_whole_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 8)
    path = tmp_path / "input"
    path.write_bytes(b"a 1\nb 22222222222222\nc 3")
    with path.open("rb") as file:
        assert list(blocks_of(file)) == [b"a 1\n", b"b 22222222222222\n", b"c 3\n"]


def test_a_missing_file_keeps_its_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(read_files([str(tmp_path / "nowhere")], FAR))


def test_pieces_go_to_standard_output_as_they_are(capfdbinary):
    write_all([b"a\n", b"\xff\n"])
    assert capfdbinary.readouterr().out == b"a\n\xff\n"


def test_shares_take_every_block_once(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 20)
    names = [str(tmp_path / name) for name in ("a", "b.gz", "c.bz2")]
    for name, open_ in zip(names, (open, gzip.open, bz2.open)):
        with open_(name, "wb") as file:
            file.write(b"".join(b"line %d of %b\n" % (i, name[-1:].encode()) for i in range(9)))
    whole = list(read_files(names, FAR))
    assert len(whole) > 9
    assert {block.place for block in whole} == {f"{name}: " for name in names}
    shares = [list(read_files(names, FAR, count(worker, 3))) for worker in range(3)]
    assert all(shares)
    assert sorted(chain(*shares)) == sorted(whole)


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
@pytest.mark.parametrize("damage", ["cut", "changed", "plain text"])
def test_damaged_files_are_named(tmp_path, suffix, damage):
    pack = gzip.compress if suffix == ".gz" else bz2.compress
    data = pack(b"".join(b"record %d\n" % i for i in range(9999)))
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "changed":
        data = data[:200] + bytes(20) + data[220:]
    else:
        data = b"record 1\n"
    path = tmp_path / f"records{suffix}"
    path.write_bytes(data)
    with pytest.raises(StageError, match=f"records{suffix}: damaged"):
        list(read_files([str(path)], FAR))


def test_files_are_looked_for_before_anything_is_read(tmp_path):
    check_inputs(["-", __file__])
    with pytest.raises(StageError, match="nowhere: no such file"):
        check_inputs([__file__, "nowhere"])
    with pytest.raises(StageError, match="is a directory"):
        check_inputs([str(tmp_path)])


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (UsageError("--x: no"), 2, "name: --x: no\n"),
        (StageError("line 3"), 1, "name: line 3\n"),
        (MemoryError(), 1, "name: out of memory\n"),
        (OSError(errno.ENOSPC, "No space left"), 1, "No space left\n"),
        (
            FileNotFoundError(errno.ENOENT, "No such file", "x.txt"),
            1,
            "name: x.txt: No such file\n",
        ),
    ],
)
def test_every_end_has_its_exit_code_and_message(error, code, said, capfd, monkeypatch):
    def main() -> None:
        raise error

    monkeypatch.setattr(run_module.os, "dup2", lambda *_: None)
    assert run("name", main) == code
    err = capfd.readouterr().err
    assert err.endswith(said)
    assert bool(err) == bool(said)


def test_a_good_end_is_zero():
    assert run("name", lambda: None) == 0


@pytest.mark.parametrize(
    "data", [b"", b"a", b"a 1\nb 2\n", b"\xef\xbb", b"x" * blocks_module.BLOCK_BYTES + b"\n1"]
)
def test_a_byte_order_mark_is_no_part_of_the_first_id(data):
    with_mark = whole_lines(io.BytesIO(codecs.BOM_UTF8 + data), FAR)
    without = whole_lines(io.BytesIO(data), FAR)
    assert b"".join(text for _, text, _ in with_mark) == b"".join(text for _, text, _ in without)
