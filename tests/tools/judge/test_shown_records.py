"""The texts of given ids are those that the parsers of text and of shingles read."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

from neardup.reading.blocks import read_files
from neardup.reading.input_format import InputFormat
from neardup.tools.judge.pair_elements import Texts, noting, shown_records

TEXT, SHINGLES = (InputFormat.of(kind, None, None) for kind in ("text", "shingles"))
LINES = "é 1\tto be  \né 2\tor not\r\n\nplain not to be\n\tno id\né\tother\né 1\tsecond\n".encode()


@pytest.mark.parametrize("many", [False, True])
def test_texts_of_lines(many: bool, tmp_path: Path) -> None:
    (tmp_path / "1.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "2.bz2").write_bytes(bz2.compress(b"z\tin the second\xff\ny\tin the second\n"))
    files = [str(tmp_path / name) for name in ("1.gz", "2.bz2")]
    ids = ["é 1".encode(), "é".encode(), b"plain", b"y", b"z", b"gone"]
    ids += [b"more %d" % i for i in range(20 * many)]
    assert shown_records(files, TEXT, ids).texts == {
        "é 1".encode(): "to be",
        "é".encode(): "other",
        b"plain": "not to be",
        b"y": "in the second",
    }
    assert shown_records(files, TEXT, [b""]).texts == {}


def test_of_shingle_lines_the_shingles(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b" a\t3 5:2  8 \nb 1\nc\n\nab 9\n")
    found = shown_records([str(tmp_path / "a")], SHINGLES, [b"a", b"c", b"d"])
    assert (found.texts, found.count) == ({b"a": "3 5:2  8"}, 3)


def test_the_blocks_go_on_and_all_texts_of_an_id_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(LINES * 2 + b"x" * 600_000 + b"\n")
    held: Texts = {}
    blocks = list(read_files([str(tmp_path / "a")], 1 << 18))
    assert any(block.flaw for block in blocks)
    assert list(noting(blocks, TEXT, ["é 1".encode()], held)) == blocks
    assert held == {"é 1".encode(): {"to be": None, "second": None}}
