"""The texts of given ids are those that the parsers of text and of shingles read."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

from neardup.reading.blocks import read_files
from neardup.reading.input_format import InputFormat
from neardup.tools.judge.pair_elements import Texts, noting, texts_of

TEXT, SHINGLES = (InputFormat.of(kind, None, None) for kind in ("text", "shingles"))
LINES = "é 1\tto be  \né 2\tor not\r\n\nplain not to be\n\tno id\né\tother\né 1\tsecond\n".encode()


def test_texts_of_lines(tmp_path: Path) -> None:
    (tmp_path / "1.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "2.bz2").write_bytes(bz2.compress(b"z\tin the second\xff\ny\tin the second\n"))
    files = [str(tmp_path / name) for name in ("1.gz", "2.bz2")]
    assert [record for block in read_files(files, 99) for record in texts_of(block, TEXT)] == [
        ("é 1".encode(), "to be"),
        ("é 2".encode(), "or not"),
        (b"plain", "not to be"),
        ("é".encode(), "other"),
        ("é 1".encode(), "second"),
        (b"y", "in the second"),
    ]


def test_of_shingle_lines_the_shingles(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b" a\t3 5:2  8 \nb 1\nc\n\nab 9\n")
    (block,) = read_files([str(tmp_path / "a")], 99)
    assert list(texts_of(block, SHINGLES)) == [(b"a", "3 5:2  8"), (b"b", "1"), (b"ab", "9")]


def test_the_blocks_go_on_and_all_texts_of_an_id_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(LINES * 2 + b"x" * 600_000 + b"\n")
    held: Texts = {}
    blocks = list(read_files([str(tmp_path / "a")], 1 << 18))
    assert any(block.flaw for block in blocks)
    assert list(noting(blocks, TEXT, ["é 1".encode()], held)) == blocks
    assert held == {"é 1".encode(): {"to be": None, "second": None}}
