"""On real news articles, some of them plagiarised, the answer is the known truth."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.engines import ROOT, RUN_LOCAL, succeed

ARTICLES = ROOT.parent / "shared" / "data" / "articles"
FLAGS = ["--input", "text", "--shingle", "word:3", "--threshold", "0.8"]

pytestmark = pytest.mark.skipif(not ARTICLES.is_dir(), reason=f"no articles in {ARTICLES}")


@pytest.mark.parametrize(("count", "plagiarised"), [(100, 5), (1000, 10), (2500, 20)])
def test_the_answer_is_the_truth(count: int, plagiarised: int, tmp_path: Path) -> None:
    lines = (ARTICLES / f"articles_{count}.truth").read_text().splitlines()
    truth = {frozenset(line.split()) for line in lines}
    assert len(truth) == plagiarised
    result = succeed([*RUN_LOCAL, *FLAGS, ARTICLES / f"articles_{count}.train"], tmp_path)
    pairs = [line.split("\t") for line in result.out.decode().splitlines()]
    assert {frozenset(pair[:2]) for pair in pairs} == truth
    assert len(pairs) == plagiarised
    assert result.count("records") == count
    assert result.count("bad lines") == 0
