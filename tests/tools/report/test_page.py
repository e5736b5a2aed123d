"""The page shows hostile texts without running them, and its size is bounded."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.engines import NEARDUP, RUN_LOCAL, VIDEOS, succeed

HOSTILE = (
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "</title></main><h1>mine</h1>",
    "&lt;b&gt; &amp;amp;",
    "safe\u202etxt.exe\u202c",
    "\x07bell\x1b[31m\x7f\x9b",
    "zero\u200bwidth\ufeff",
    "<!-- no end",
    "]]> ${x} {0} %s",
)
TAGS = """html head meta link title style body main header footer section div article p h1 h2 h3 h4
dl dt dd ol li table thead tbody tr th td figure figcaption svg rect b bdi small span code del ins
details summary br
"""
NBSP = "\xa0"
ALLOWED = set(TAGS.split())
VOID = {"meta", "link", "rect", "path", "img", "br"}


class Reader(HTMLParser):
    """A parser that collects a page's tags, attributes, text, and tags that are still open."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.handle_starttag(tag, attrs)
        assert tag in ("rect", "path")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def report(
    tmp_path: Path, records: bytes, pairs: bytes, *flags: str, removed: bytes | None = None
) -> str:
    (tmp_path / "records.txt").write_bytes(records)
    (tmp_path / "pairs.tsv").write_bytes(pairs)
    more = []
    if removed is not None:
        (tmp_path / "removed.tsv").write_bytes(removed)
        more = [f"--removed={tmp_path}/removed.tsv"]
    files = [f"{tmp_path}/pairs.tsv", f"--records={tmp_path}/records.txt"]
    succeed([*NEARDUP, "report", *files, "-o", f"{tmp_path}/report.html", *more, *flags], tmp_path)
    assert os.listdir(tmp_path / "tmpdir") == []
    return (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.first_case
@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_only_shown(text: str, tmp_path: Path) -> None:
    """A hostile text is only shown, whether it is an id, a text or a difference."""
    id_ = text.replace("\x1b", "").encode()
    records = b"%b\tone two %b\nb\tone two three\nc\t%b\n" % (id_, text.encode(), text.encode())
    pairs = b"%b\tb\t0.900000\nb\tc\t0.900000\n" % id_
    removed = b"%b\tb\t0.900000\n" % id_
    page = report(tmp_path, records, pairs, "--input=text", removed=removed)
    read = Reader(page)
    assert read.open == []
    assert read.tags <= ALLOWED
    assert not {name for name in read.attributes if name.startswith("on") or name == "src"}
    assert "one two" in read.text
    for word in text.split():
        printable = "".join(c if c.isprintable() else f"⟨U+{ord(c):04X}⟩" for c in word)
        assert printable in read.text
    unseen = {c for c in page if not c.isprintable()} - {"\n"}
    assert not unseen


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    records = b"a\tone two\xff\nb\tone two \0\nc\tone two\nd 1 2\xff\n"
    page = report(tmp_path, records, b"a\tb\t0.900000\nc\td\t0.900000\n", "--input=text")
    assert "\0" not in page
    assert "the text is not in --records" in Reader(page).text


def test_shingles_are_compared_as_sets(tmp_path: Path) -> None:
    page = report(tmp_path, b"a 1 2 3 700\nb 800 3 2 1\n", b"a\tb\t0.600000\n")
    assert "<del>700</del> 1 2 3" in page
    assert "<ins>800</ins> 1 2 3" in page


def test_texts_that_are_the_same_are_not_the_most_similar(tmp_path: Path) -> None:
    records = b"a\tOne two\nb\tone  two!\nc\tx y\nd\tx y\ne\tx z\n"
    pairs = b"a\tb\t1.000000\nc\td\t1.000000\nd\te\t0.900000\n"
    page = report(tmp_path, records, pairs, "--input=text")
    most = page.partition("<h2>Most similar</h2>")[2].partition("<h2>")[0]
    assert "2 pairs are of similarity 1" in most
    assert [most.count(f"<bdi>{id_}</bdi>") for id_ in "abcde"] == [1, 1, 0, 1, 1]
    assert "<ins>two!</ins>" in most


def test_it_says_what_is_not_known(tmp_path: Path) -> None:
    page = report(tmp_path, b"a 1\nb 1\n", b"a\tb\t1.000000\n")
    assert page.count('<dd><span class="unknown">not known</span></dd>') == 3
    assert "not known" not in page.partition("<h2>Shapes</h2>")[2]


@pytest.mark.slow
def test_what_was_removed_because_of_what(tmp_path: Path) -> None:
    records = b"".join(b"r%03d\tone two three %d\n" % (i, i) for i in range(40))
    pairs = b"".join(b"r000\tr%03d\t0.900000\n" % i for i in range(1, 40))
    removed = b"".join(b"r%03d\tr000\t0.900000\n" % i for i in range(1, 39)) + b"r039\tr001\t-\n"
    read = Reader(report(tmp_path, records, pairs, "--input=text", removed=removed))
    for said in (
        "39 records were removed, 1 of them only through a chain",
        "they duplicate 2 records that are kept",
        "38",
    ):
        assert said in read.text
    assert "and 19 more removed records" in read.text


def test_two_records_of_one_id_are_told(tmp_path: Path) -> None:
    page = report(tmp_path, b"a\tx y\na\tx z\nb\tx y\n", b"a\tb\t1.000000\n", "--input=text")
    assert "the first record of this id" in page


def test_old_records_are_in_no_chain(tmp_path: Path) -> None:
    records = b"a\tnew words\nb\told words\nc\told words\n"
    pairs = b"a\tb\t0.900000\told\na\tc\t0.900000\told\n"
    read = Reader(report(tmp_path, records, pairs, "--input=text")).text
    assert "Old records are not compared with each other" in read
    assert "are not a pair" not in read
    assert "couples" not in read


def test_old_records_are_those_of_against(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes(b"a\told words\n")
    flags = ["--input=text", f"--against={tmp_path}/old.txt"]
    page = report(tmp_path, b"a\tnew words\n", b"a\ta\t0.900000\told\n", *flags)
    assert '<bdi>a</bdi> <span class="tag">old</span>' in page
    assert "<del>new</del> words" in page
    assert "<ins>old</ins> words" in page


def test_code_keeps_its_lines(tmp_path: Path) -> None:
    a = r"def f(a):\n\tif a < 1:\n\n    \treturn \u0007b\r\n"
    lines = f'{{"id":"a","text":"{a}"}}\n{{"id":"b","text":"{a.replace("if", "while")}"}}\n'
    (tmp_path / "x.jsonl").write_text(lines)
    text = report(tmp_path, lines.encode(), b"a\tb\t0.800000\n", "--input=jsonl")
    assert '<p dir="auto" class="code">def f(a):' in text
    assert f"<br>{4 * NBSP}<del>if</del>" in text
    assert f"<br>{4 * NBSP}<ins>while</ins>" in text
    assert f"a &lt; 1:<br>{8 * NBSP}return ⟨U+0007⟩b" in text


def test_members_of_a_long_cluster_can_be_opened(tmp_path: Path) -> None:
    records = "".join(f"r{i:02}\tthe same {i}\n" for i in range(40)).encode()
    pairs = b"".join(b"r00\tr%02d\t0.900000\n" % i for i in range(1, 40))
    text = report(tmp_path, records, pairs, "--input=text")
    seen, opened = text.split("<details><summary>20 more members</summary>")
    assert "<bdi>r03</bdi>" in seen
    assert "<bdi>r04</bdi>" not in seen.partition("Largest")[2]
    inside = opened.partition("</details>")[0]
    assert inside.count("<li>") == 20
    assert "<ins>23</ins>" in inside
    assert "and 16 more members" in inside


def test_no_pair(tmp_path: Path) -> None:
    read = Reader(report(tmp_path, b"a 1\nb 2\n", b""))
    assert "No two of 2 records are similar enough." in read.text


def test_one_chain(tmp_path: Path) -> None:
    pairs = b"a\tb\t0.900000\nb\tc\t0.950000\nx\ty\t0.900000\n"
    text = Reader(report(tmp_path, b"a 1\nb 1\nc 1\nx 1\ny 1\n", pairs)).text
    found = "1 of 2 clusters some members are not a pair: only a chain of pairs connects 1 of all 4"
    assert f"In {found}" in text
    assert "The longest that was found: 2 steps" in text


def test_links_are_not_all_pairs(tmp_path: Path) -> None:
    pairs = b"a\tb\t0.900000\nb\tc\t0.950000\n"
    text = Reader(report(tmp_path, b"a 1\nb 1\nc 1\n", pairs, "--output=links")).text
    assert "Links are not all pairs" in text
    assert "only a chain of pairs" not in text


@pytest.mark.slow
def test_the_page_is_bounded(tmp_path: Path) -> None:
    """The page's size is bounded for many pairs, long ids and texts, and escaped characters."""
    letters = "\x07&<\u202e"
    records, pairs = [], []
    for i in range(300):
        id_ = f"{i:03}-" + "&" * 5000
        words = " ".join(f"{letters * (1 + j % 200)}{i if j % 9 == 0 else ''}" for j in range(400))
        records.append(f"{id_}\t{words}\n")
        if i % 2:
            pairs.append(f"{i - 1:03}-{'&' * 5000}\t{id_}\t0.9{i:05}\n")
    lines = "".join(pairs).encode()
    page = report(tmp_path, "".join(records).encode(), lines, "--input=text", removed=lines)
    assert len(page.encode()) < 2_000_000
    assert Reader(page).open == []


@pytest.mark.slow
def test_the_same_page_again(tmp_path: Path) -> None:
    job = [*RUN_LOCAL, VIDEOS]
    pairs = succeed(job, tmp_path).out
    records = VIDEOS.read_bytes()
    first = report(tmp_path, records, pairs, "--threshold=0.9")
    backwards = b"".join(reversed(pairs.splitlines(keepends=True)))
    assert report(tmp_path, records, backwards, "--threshold=0.9") == first
    assert "15 bands of 7 rows find a pair at 0.9 with probability" in first
    assert f"{len(pairs.splitlines()):,} pairs of similarity 0.9 or more" in first
    assert "of 2,000 records have a near-duplicate" in first


@pytest.mark.slow
def test_differences_that_are_left_out_are_told(tmp_path: Path) -> None:
    words = " ".join(f"word{i}" for i in range(3000))
    records = f"a\t{words} here\nb\t{words.replace('word7 ', 'other ')} there\n".encode()
    page = report(tmp_path, records, b"a\tb\t0.900000\n", "--input=text")
    assert "<ins>other</ins> word8" in page
    assert "<ins>there</ins>" in page
    assert re.search(r"… 2,\d\d\d …</span> word2992", page)
    records = b"a\t%b\nb\t%b\n" % (b" ".join(b"x%d y" % i for i in range(3000)), b"y " * 3000)
    page = report(tmp_path, records, b"a\tb\t0.900000\n", "--input=text")
    assert "… with more differences</span>" in page
