"""Files and pipes are read as blocks of whole lines; errors have exit codes and messages."""

import bz2
import codecs
import errno
import gzip
import io
import os
import re
import tracemalloc
from itertools import chain, count
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.reading import blocks as blocks_module
from neardup.reading.blocks import (
    Start,
    blocks_of,
    check_inputs,
    count_lines,
    files_named,
    first_place,
    numbered,
    read_files,
    start_of_split,
    whole_lines,
)
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.runtime import program as run_module
from neardup.runtime.program import StageError, UsageError, run
from tests.support.engines import INLINE, LOCAL, MAPPER, RUN_LOCAL, a_file, succeed

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


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_the_longest_line_is_whole_and_one_byte_more_is_cut(end):
    most = blocks_module.BLOCK_BYTES
    (longest,) = whole_lines(io.BytesIO(b"L" * most + end), most)
    assert longest == (1, b"L" * most + b"\n", False)
    ((line, cut, too_long),) = whole_lines(io.BytesIO(b"L" * (most + 1) + end), most)
    assert (line, too_long) == (1, True)
    assert len(cut) <= blocks_module.CUT_BYTES


def naive_lines(data):
    """Return the lines of a stream without their ends, including blank ones."""
    lines = LINE_END.split(data)
    return lines if lines[-1] else lines[:-1]


texts = st.sampled_from([b"a", b"bc", b"x" * 9, b"x" * 12, b"x" * 13, b"x" * 40, b""])
ends = st.sampled_from([b"\n", b"\r\n", b"\r", b"\r\r", b"\n\r", b"\r\r\n"])


@given(st.lists(st.builds(bytes.__add__, texts, ends)), st.integers(1, 9))
@example([b"x\n", *[b"a\rb\r"] * 5, b"L" * 40], 9)
@example([b"a\r", b"\r", b"\nb\r\n"], 1)
def test_a_line_is_what_a_naive_splitter_takes_for_one(lines, size):
    data = b"".join(lines)
    limit = 12
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_module, "BLOCK_BYTES", size)
        patch.setattr(blocks_module, "CUT_BYTES", 5)
        blocks = list(whole_lines(io.BytesIO(data), limit))
    found = {}
    for line, block, cut in blocks:
        here = [block] if cut else naive_lines(block)
        assert cut or count_lines(block) == len(here)
        found.update({line + i: text for i, text in enumerate(here)})
    assert len(found) == sum(1 if cut else count_lines(block) for _, block, cut in blocks)
    expected = dict(enumerate(naive_lines(data), 1))
    assert found == {n: text if len(text) <= limit else text[:5] for n, text in expected.items()}


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
    path = a_file(tmp_path / "input", b"a 1\nb 22222222222222\nc 3")
    with path.open("rb") as file:
        assert list(blocks_of(file)) == [b"a 1\n", b"b 22222222222222\n", b"c 3\n"]


def test_a_missing_file_keeps_its_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(read_files(numbered([str(tmp_path / "nowhere")]), FAR))


def test_shares_take_every_block_once(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 20)
    names = [str(tmp_path / name) for name in ("a", "b.gz", "c.bz2")]
    for name, open_ in zip(names, (open, gzip.open, bz2.open)):
        with open_(name, "wb") as file:
            file.write(b"".join(b"line %d of %b\n" % (i, name[-1:].encode()) for i in range(9)))
    whole = list(read_files(numbered(names), FAR))
    assert len(whole) > 9
    assert {block.place for block in whole} == {f"{name}: line " for name in names}
    shares = [list(read_files(numbered(names), FAR, count(worker, 3))) for worker in range(3)]
    assert all(shares)
    assert sorted(chain(*shares)) == sorted(whole)


@pytest.mark.parametrize("share", [1, 3])
def test_how_much_of_the_files_is_behind(tmp_path, monkeypatch, share):
    """The position reported for a block is within its file's bytes on disk, compressed or not."""
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 1 << 16)
    names = [str(tmp_path / name) for name in ("a", "b.gz", "c.bz2", "d")]
    for name, open_ in zip(names, (open, gzip.open, bz2.open, open)):
        with open_(name, "wb") as file:
            file.write(b"".join(b"%x\n" % (i * 0x9E3779B97F4A7C15 % 2**64) for i in range(20_000)))
    sizes = [os.path.getsize(name) for name in names]
    passed: list[int] = []
    read = list(read_files(numbered(names), FAR, count(0, share), passed=passed.append))
    assert len(passed) == len(read) > 4
    assert passed == sorted(passed)
    for i, name in enumerate(names):
        mine = [at for at, block in zip(passed, read) if block.place.startswith(f"{name}: ")]
        assert sum(sizes[:i]) < min(mine) <= max(mine) <= sum(sizes[: i + 1])


def test_other_names_are_patterns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b1.txt", "a1.txt", "a2.txt"):
        (tmp_path / name).write_bytes(b"")
    assert files_named(["-", "a[12].txt", "b*"]) == ["-", "a1.txt", "a2.txt", "b1.txt"]
    with pytest.raises(StageError, match=r"c\*: no such file"):
        files_named(["c*"])
    (tmp_path / "folder").mkdir()
    with pytest.raises(StageError, match="folder: is a directory"):
        files_named(["f*"])


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_task_counts_the_lines_before_its_split(tmp_path, monkeypatch, size):
    """Before a task's split, a CRLF counts as one line end even across two blocks."""
    path = tmp_path / "split.txt"
    head = b"a\r\nb\rc\n\r\r\n"
    path.write_bytes(head + b"d\n")
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", size)
    monkeypatch.setenv("mapreduce_map_input_file", f"file://{path}")
    monkeypatch.setenv("mapreduce_map_input_start", str(len(head)))
    assert start_of_split() == Start(f"{path}: ", 6, of_file=False)


def test_a_byte_order_mark_inside_a_file_is_part_of_an_id(tmp_path, monkeypatch):
    """At the start of a later split of a file, a byte order mark is part of an id."""
    monkeypatch.setenv("mapreduce_map_input_file", "hdfs:///x")
    monkeypatch.setenv("mapreduce_map_input_start", "7")
    path = a_file(tmp_path / "stdin", codecs.BOM_UTF8 + b"a 1\n")
    with path.open("rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        (block,) = read_files(numbered(["-"]), FAR)
    assert block[:4] == ("hdfs:///x from byte 7: line ", 1, codecs.BOM_UTF8 + b"a 1\n", "")
    assert block.first == first_place(0, 7)


def test_files_are_looked_for_before_anything_is_read(tmp_path, monkeypatch):
    check_inputs(["-", __file__])
    with pytest.raises(StageError, match="nowhere: no such file"):
        check_inputs([__file__, "nowhere"])
    with pytest.raises(StageError, match="is a directory"):
        check_inputs([str(tmp_path)])
    (tmp_path / "-").mkdir()
    monkeypatch.chdir(tmp_path)
    check_inputs(["-"])  # which is standard input all the same


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (None, 0, ""),
        (KeyboardInterrupt(), 130, ""),
        (UsageError("--x: no"), 2, "name: --x: no\n"),
        (StageError("line 3"), 1, "name: line 3\n"),
        (MemoryError(), 1, "name: out of memory\n"),
        (OSError(errno.ENOSPC, "No space left"), 1, "No space left\n"),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), 1, "name: x: No such file\n"),
    ],
)
def test_every_end_has_its_exit_code_and_message(error, code, said, capfd, monkeypatch):
    def main() -> None:
        if error:
            raise error

    monkeypatch.setattr(run_module.os, "dup2", lambda *_: None)
    assert run("name", main) == code
    err = capfd.readouterr().err
    assert err.endswith(said)
    assert bool(err) == bool(said)


@pytest.mark.parametrize(
    "data", [b"", b"a", b"a 1\nb 2\n", b"\xef\xbb", b"x" * blocks_module.BLOCK_BYTES + b"\n1"]
)
def test_a_byte_order_mark_is_no_part_of_the_first_id(data):
    with_mark = whole_lines(io.BytesIO(codecs.BOM_UTF8 + data), FAR)
    without = whole_lines(io.BytesIO(data), FAR)
    assert b"".join(text for _, text, _ in with_mark) == b"".join(text for _, text, _ in without)


class Endless(io.RawIOBase):
    """An endless stream: some first bytes, then the same byte again and again, as in /dev/zero."""

    def __init__(self, start: bytes, byte: bytes):
        self.start, self.byte = start, byte

    def read(self, size: int = -1) -> bytes:
        found, self.start = self.start[:size], self.start[size:]
        return found + self.byte * (size - len(found))


@pytest.mark.parametrize("byte", [b"\0", b" ", b"7"])
def test_what_has_no_line_end_has_an_end(byte: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "ENDLESS_BYTES", 8 << 20)
    with pytest.raises(StageError, match="line 2: no line end in 8 MiB; name a file of lines"):
        list(blocks_module.whole_lines(Endless(b"a 1 2\n", byte), 1 << 20))
    with pytest.raises(StageError, match="line 2: no line end in 8 MiB"):
        list(blocks_module.with_line_ends(iter([b"a 1 2\n", *[byte * (1 << 20)] * 9])))
    with pytest.raises(StageError, match="a line has no line end; pass"):
        list(blocks_module.blocks_of(Endless(b"a 1 2\n", byte)))
    with pytest.raises(StageError, match="a line has no line end; pass"):
        list(blocks_module.lines_of_stage(Endless(b"", byte)))


def test_a_long_line_of_blanks_takes_little_memory() -> None:
    line = b"a 1 2" + b" " * 4_000_000 + b"3\n"
    tracemalloc.start()
    batch, bad = parse_shingle_lines(line)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (batch.sets.row(0).tolist(), bad) == ([1, 2, 3], [])
    assert peak < 3 * len(line)


# All engines split bytes into the same lines.


MEBIBYTE = 1 << 20
COMMANDS = {"pipe": MAPPER, "run_local": [*RUN_LOCAL, "--jobs=2"], "inline": INLINE, "local": LOCAL}
each = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


@pytest.mark.first_case
@each
def test_lines_in_front_of_a_long_one_are_read(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mixed.txt"
    path.write_bytes(b"x 1\n" + b"a 1 2\rb 1 2\r" * 50 + b"L 7" + b" 8" * 524_300 + b"\rz 9")
    result = succeed([*command, "--max-line=1", path], tmp_path)
    assert result.count("records") == 102
    assert re.findall(r"line (\d+): line too long: 'L 7 8", result.err) == ["102"]


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("command", "end"),
    [(COMMANDS[name], b"\r\n") for name in COMMANDS if name != "local"]
    + [(INLINE, b"\n"), (LOCAL, b"\r"), (INLINE, b"\r")],
)
def test_the_longest_line_is_counted_without_its_end(
    command: list[str], end: bytes, tmp_path: Path
) -> None:
    longest = b"x 1" + b" 2" * (MEBIBYTE // 2 - 2) + b"3"
    assert len(longest) == MEBIBYTE
    path = tmp_path / "long.txt"
    path.write_bytes(end.join([b"a 1", longest, longest + b"4", b"b 2", longest, b""]))
    result = succeed([*command, "--max-line=1", path], tmp_path)
    assert result.count("records") == 4
    assert re.findall(r"line (\d+): line too long", result.err) == ["3"]
