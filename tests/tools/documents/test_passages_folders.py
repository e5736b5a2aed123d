"""`passages FOLDER` lists the passages of the documents that `documents` reads."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.support.engines import NEARDUP, refuse, run, succeed
from tests.tools.documents.test_passages import PASSAGES, corpus

PAGE = "<html><head><title>t</title></head><body><p>{}</p></body></html>"


def folder_of(tmp_path: Path) -> Path:
    folder = tmp_path / "the docs"
    (folder / "sub").mkdir(parents=True)
    for i, text in enumerate(corpus(3)):
        (folder / ("sub" if i % 2 else ".") / f"{i}.txt").write_text(text, encoding="utf-8")
    (folder / "binary").write_bytes(b"\0")
    (folder / "empty.txt").write_bytes(b"")
    return folder


def test_as_the_lines_of_documents(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    lines = succeed([*NEARDUP, "documents", "--output=lines", folder], tmp_path).out
    (tmp_path / "lines.jsonl").write_bytes(lines)
    words = [*PASSAGES, "--length=4", "--places", "--clean=accents"]
    result = succeed([*words, folder], tmp_path)
    assert result.out == succeed([*words, tmp_path / "lines.jsonl"], tmp_path).out
    assert result.out.count(b"/the%20docs/sub/") > 5
    assert "30 documents in 32 files" in result.err
    assert "not compared: 1 binary (" in result.err
    assert "1 empty (" in result.err
    some = succeed([*words, "--include=1*", folder], tmp_path).out
    within = folder / "found.tsv"
    succeed([*words, folder, "-o", within], tmp_path)
    assert within.read_bytes() == result.out
    refuse([*words, folder, "-o", within], tmp_path, "is one of the files to compare", code=2)
    assert 0 < some.count(b"\n") < result.out.count(b"\n")


def test_pages_are_read_without_their_tags(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "a.html").write_text(PAGE.format("to <b>be</b> o<i>r</i> not"))
    (folder / "b.html").write_text(PAGE.format("x To be\nor not"))
    (folder / "c.html").write_text(PAGE.format(""))
    words = [*PASSAGES, "--length=4", "--places", folder]
    assert succeed(words, tmp_path).out == b""
    result = succeed([*words, "--clean=html"], tmp_path)
    assert [line.split("\t")[:4] for line in result.out.decode().splitlines()] == [
        ["2", "2", "4", f"{folder}/a.html:0-12"],
        ["2", "2", "4", f"{folder}/b.html:2-14"],
    ]
    assert f"1 without a word ({folder}/c.html)" in result.err


def test_archives_and_unreadable_documents(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("one", "to be or not")
        archive.writestr("two", "to be or not")
    result = succeed([*PASSAGES, "--length=4", tmp_path / "a.zip"], tmp_path)
    assert result.out.decode().startswith(f"2\t2\t4\t{tmp_path}/a.zip!one:0-12\t")
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "bad").write_bytes(b"to be \xff")
    refuse([*PASSAGES, "--encoding=strict", folder], tmp_path, "no document", code=1)
    (folder / "good").write_bytes(b"to be")
    result = run([*PASSAGES, "--encoding=strict", "--max-bad=0.1", folder], tmp_path)
    assert result.code == 1
    assert "1 of 2 documents could not be read" in result.err
    assert succeed([*PASSAGES, "--encoding=strict", "--max-bad=1", folder], tmp_path).out == b""
