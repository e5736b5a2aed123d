"""The page of passages shows the largest ones, marked in their texts, and where they are."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from tests.support.engines import NEARDUP, refuse, succeed

pytest.importorskip("jinja2")
PASSAGES = [*NEARDUP, "passages", "--length=3"]
TEXTS = {
    "a<b": "An intro.\n  one two three\n  four five <i>six</i>\nends here",
    "b": "one two three four five <i>six</i> seven",
    "c": "but one two three is all",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    rows = ({"id": id_, "text": text} for id_, text in TEXTS.items())
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def page_of(path: Path, *flags: str) -> str:
    page = path.parent / "page.html"
    words = [*PASSAGES, *flags, str(path), "--report", str(page)]
    assert succeed(words, path.parent).out == succeed(words[:-2], path.parent).out
    return page.read_text("utf-8")


def articles(page: str) -> list[str]:
    found = re.findall(r"<article.*?</article>", page, re.DOTALL)
    return [re.sub(r"\s+", " ", unescape(re.sub("<[^>]*>", " ", each))) for each in found]


def test_passages_are_marked_in_the_text_where_they_are_first(path: Path) -> None:
    page = page_of(path)
    assert "&lt;i&gt;six&lt;/i&gt;</ins><sup>2</sup>" in page
    assert "<ins>one two three</ins><sup>3</sup>" in page
    assert '<p class="code">' in page
    longest, most = articles(page)
    assert longest.startswith(" 2 places in 2 texts; 5 words")
    assert most.startswith(" 3 places in 3 texts; 3 words a<b line 2, characters 12–25")
    assert "characters 4–17" in most  # in c, which has one line
    assert "An intro. one two three 3 four five <i>six</i> 2 ends here" in most


def test_they_are_in_the_order_that_was_asked_for(path: Path) -> None:
    assert articles(page_of(path, "--by=count"))[0].startswith(" 3 places")
    assert "2 passages are repeated." in page_of(path, "--places")


def test_a_page_without_passages_says_so(path: Path) -> None:
    page = page_of(path, "--length=99")
    assert "No passage is repeated." in page
    assert articles(page) == []


def test_a_long_passage_is_shown_from_its_start_and_to_its_end(path: Path) -> None:
    words = " ".join(f"w{i:04d}" for i in range(1000))
    path.write_text("".join(json.dumps({"text": f"{k} {words} {k}"}) + "\n" for k in range(30)))
    (only,) = articles(page_of(path))
    assert "w0000 w0001" in only
    assert "w0998 w0999" in only
    assert "w0500" not in only
    assert " … " in only
    assert "and 10 more places" in only


def test_a_word_may_be_longer_than_what_is_shown(path: Path) -> None:
    texts = (f"{a * 99_999} one two three {b * 99_999}" for a, b in ("ab", "cd"))
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    page = page_of(path)
    assert len(articles(page)) == 1
    assert len(page) < 20_000


def test_documents_have_the_names_of_their_files(tmp_path: Path) -> None:
    (tmp_path / "some files").mkdir()
    for name in ("a b.py", "c.py"):
        (tmp_path / "some files" / name).write_text("def f(x):\n    return x + 1\n")
    (only,) = articles(page_of(tmp_path / "some files"))
    assert "some files/a b.py lines 1–2, characters 0–26" in only


def test_refusals(path: Path, tmp_path: Path) -> None:
    words = [*PASSAGES, str(path), "--report"]
    refuse([*words, "p.html", "--output=kept"], tmp_path, "leave out --output kept")
    refuse([*words, str(path)], tmp_path, "is an input; name another file")
