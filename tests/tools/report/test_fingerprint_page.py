"""The page of a run on fingerprints shows distances and blocks of digits instead of words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.engines import NEARDUP, RUN_LOCAL, refuse, succeed
from tests.tools.report.test_page import Reader

INPUT = ["--input", "fingerprints", "--bits", "64"]
LINES = """a ffff0000ffff0000
b ffff0000ffff000f
c 0123456789abcdef fffe0000ffff000f
d ffff0000ffff0000
e 0f0f0f0f0f0f0f0f
a not-a-fingerprint
"""


@pytest.fixture
def prints(tmp_path: Path) -> Path:
    path = tmp_path / "prints.txt"
    path.write_text(LINES)
    return path


def page_of(tmp_path: Path, *words: object) -> str:
    succeed([*NEARDUP, "report", *map(str, words), "-o", str(tmp_path / "page.html")], tmp_path)
    page = (tmp_path / "page.html").read_text("utf-8")
    Reader(page)  # all tags are closed
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


@pytest.mark.slow
def test_with_the_own_file_of_a_run(prints: Path, tmp_path: Path) -> None:
    answer = tmp_path / "pairs.tsv"
    flags = [*INPUT, "--distance", "6", "--exact", "--max-bad", "1"]
    succeed([*RUN_LOCAL, *flags, "-o", answer, prints], tmp_path)
    text = page_of(tmp_path, answer)
    assert "whose fingerprints differ in 6 of 64 bits or fewer" in text
    assert "Differing bits 6 of 64 bits or fewer, by hamming" in text
    assert "Pairs by differing bits" in text
    assert "differing bits pairs 0 1 1 1 2 0 3 0 4 2 5 2 6 0" in text
    assert "One pair is of similarity 1: all their bits are the same." in text
    assert "1 bit differs b ffff 0000 ffff 000f c fffe 0000 ffff 000f" in text  # its variant
    assert "4 bits differ" in text
    assert "of this id ffff 0000 ffff 0000 b ffff 0000 ffff 000f" in text  # side by side
    for word in ("shingle", "the text", "words", "0.937500"):
        assert word not in text


@pytest.mark.slow
def test_with_options(prints: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\t0.937500\na\td\t1.000000\n")
    asked = [*INPUT, "--distance", "7", tmp_path / "pairs.tsv", "--records", prints]
    text = page_of(tmp_path, *asked)
    assert "whose fingerprints differ in 7 of 64 bits or fewer" in text
    assert "0 1 1 0 2 0 3 0 4 1 5 0 6 0 7 0" in text
    unknown = page_of(tmp_path, *INPUT, tmp_path / "pairs.tsv", "--records", prints)
    assert "(the threshold is not known)" in unknown
    assert "0 1 1 0 2 0 3 0 4 1" in unknown


def test_a_smaller_distance_than_that_of_a_pair(prints: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\t0.937500\n")
    asked = [*INPUT, "--distance", "3", tmp_path / "pairs.tsv", "--records", prints]
    said = "--distance 3 of --bits 64: a pair has a similarity of 0.937500; give the options"
    refuse([*NEARDUP, "report", *asked, "-o", tmp_path / "page.html"], tmp_path, said)
