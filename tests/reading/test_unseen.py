"""Characters that nobody sees, and halves of characters, hide no duplicate on any engine."""

import json
import random
import sys
import unicodedata
from pathlib import Path

import pytest

import neardup
from neardup.reading.cleaning import UNSEEN, Cleaning, plain
from neardup.reading.shingling import Shingler
from neardup.reading.text_rows import Fields, row_records, text_parser
from neardup.tools.judge.pair_elements import word_difference
from neardup.tools.report.page import passages
from tests.reading.test_cleaning import ran
from tests.support.drawn import settings_of
from tests.support.engines import RUN_LOCAL, a_file, run, succeed

SEEN_FORMATS = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")
SEEN_FORMATS |= {"\U000110bd", "\U000110cd"}
ALIKE = {
    "zero-width space": ("the qu\u200bick fox", "the quick fox"),
    "soft hyphen": ("the quick\u00ad fox", "the quick fox"),
    "marks of direction": ("\u200fשלום\u200e עולם\u061c", "שלום עולם"),
    "a joiner of Persian": ("می\u200cخواهم بروم", "میخواهم بروم"),
    "joiners of emoji": ("hi 👨\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3", "hi 👨👩👧 ❤ 1\u20e3"),
    "tags": ("flag 🏴\U000e0067\U000e0062\U000e007f here", "flag 🏴 here"),
    "a mark in the middle": ("one\ufeff two\u2060 three", "one two three"),
    "a word of its own": ("one \u200b two \u3164 three", "one two three"),
    "before an accent": ("cafe\u200d\u0301 e\u034f\u0301", "café é"),
    "NFD": (unicodedata.normalize("NFD", "한국어 Ångström"), "한국어 Ångström"),
    "a ligature's notes": ("\ufff9漢字\ufffaかんじ\ufffb", "漢字かんじ"),
}
SHINGLES = ["word:1", "word:3", "word:2:bag", "char:3", "char:100"]


@pytest.mark.parametrize("form", SHINGLES)
@pytest.mark.parametrize("name", ALIKE)
def test_texts_that_look_alike_have_the_same_shingles(name: str, form: str) -> None:
    one, other = ALIKE[name]
    shingler = Shingler.parse(form)
    assert shingler(one).tolist() == shingler(other).tolist() != []
    assert one != other


def test_a_stop_word_with_a_mark_begins_a_spot() -> None:
    spots = Shingler.parse("spot:1:1")
    assert spots("t\u00adhe rainy morning").tolist() == spots("the rainy morning").tolist() != []


def test_format_characters_that_are_seen_stay() -> None:
    formats = {c for c in map(chr, range(sys.maxunicode)) if unicodedata.category(c) == "Cf"}
    assert {c for c in formats if not UNSEEN.match(c)} <= SEEN_FORMATS
    assert not any(map(UNSEEN.match, SEEN_FORMATS))
    assert plain("\u06dd١٢") == "\u06dd١٢"


@pytest.mark.parametrize(
    ("names", "one", "other"),
    [
        ("punctuation", "do\u200bn\u200b't re\u00adad", "don't read"),
        ("punctuation", unicodedata.normalize("NFD", "né't"), "né't"),
        ("html,punctuation", "<p>do&shy;n&#8203;'t</p>", "don't"),
        ("html", "a &lt;b&gt; <\u200bnav> c", "a &lt;b&gt; &lt;nav> c"),
        ("digits", "a 1\u200b0\u2060.5 b", "a b"),
        ("accents", "\u200fكِتَـاب\u200b", "كتاب"),
        ("accents", "שָׁלוֹם", "שלום"),
        ("width", "Ｎｏ．１ ﬁle ｶﾞ", "No.1 file ガ"),
        ("width,accents", "ＣＡＦÉ ﬁ\u0301n", "CAFE fin"),
    ],
)
def test_cleaning_sees_no_marks_either(names: str, one: str, other: str) -> None:
    clean, shingler = Cleaning.parse(names), Shingler.parse("word:1")
    assert shingler(clean(one)).tolist() == shingler(clean(other)).tolist() != []


def test_width_is_asked_for() -> None:
    shingler = Shingler.parse("word:1")
    assert shingler("Ａ").tolist() != shingler("A").tolist()


def test_a_difference_shows_what_is_seen() -> None:
    assert word_difference("to be\u200b \u2060 or", "to be or") == [("same", "to be or")]
    assert passages([("same", "to be\u200b")])[0][1] == "to be"


def test_a_text_of_marks_alone_is_counted() -> None:
    lines = b'{"id":"a","text":"\\u200b\\ufeff"}\n{"id":"b","text":"to be"}\n'
    parse = text_parser(
        lambda block: row_records(block, Fields.of(None, None)), Shingler("word", 1)
    )
    batch, bad = parse(lines)
    assert (batch.ids, batch.without_shingles, bad) == ([b"b"], (0,), [])


def test_a_mark_of_a_file_appended_to_another_is_no_part_of_a_row() -> None:
    block = b'{"id":"a","text":"t"}\n\xef\xbb\xbf{"id":"\xef\xbb\xbfb","text":"t"}\n\xef\xbb\xbf\n'
    found = list(row_records(block, Fields.of(None, None)))
    assert [(record.id, record.flaw) for record in found] == [(b"a", ""), ("\ufeffb".encode(), "")]


def test_an_index_of_texts_knows_the_version_of_their_shingles() -> None:
    texts, sets = settings_of("--input=text"), settings_of("--input=shingles")
    assert sets.probe() == sets.scheme.probe()
    assert texts.probe().startswith(texts.scheme.probe())
    assert texts.probe() != sets.probe()
    assert len({settings_of("--input=text", f"--shingle={form}").probe() for form in SHINGLES}) > 1
    assert settings_of("--input=text").probe() == texts.probe()


ROWS = [
    {"id": "a", "text": "qu\u200bick brown fox jumps"},
    {"id": "b", "text": "quick brown\ufeff fox jumps"},
    {"id": "c", "text": "cut in an emoji \ud83d"},
    {"id": "d", "text": "cut in an emoji \ude00"},
    {"id": "e", "text": "cut in an emoji \ufffd"},
    {"id": "f", "text": "nothing like it"},
]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
PAIRS = "".join(f"{a}\t{b}\t1.000000\n" for a, b in ("ab", "cd", "ce", "de")).encode()


@pytest.mark.parametrize("engine", ["pipe", "local", "inline", "exact"])
def test_the_same_pairs_on_every_engine(engine: str, tmp_path: Path) -> None:
    path = a_file(tmp_path / "a b.jsonl", LINES)
    more = {"local": ["--scheme=minhash"], "exact": ["--exact"]}.get(engine, [])
    found, counted = ran(engine, ["--input=jsonl", *more], path, tmp_path)
    assert found == PAIRS
    assert "2 texts with half a surrogate pair, read as U+FFFD" in counted.err or (
        counted.count("texts with half a surrogate pair, read as U+FFFD") == 2
    )


def test_kept_halves_are_written_as_they_were(tmp_path: Path) -> None:
    path = a_file(tmp_path / "a.jsonl", LINES)
    lines = LINES.splitlines(keepends=True)
    kept = succeed([*RUN_LOCAL, "--output=kept", path], tmp_path)
    assert kept.out == lines[0] + lines[2] + lines[5]
    refused = run([*RUN_LOCAL, "--output=kept", path, "-o", tmp_path / "x.csv"], tmp_path)
    assert "half a surrogate pair, which csv cannot hold; add: " in refused.err
    assert (refused.code, "x.jsonl" in refused.err) == (1, True)


@pytest.mark.slow
def test_a_table_in_utf_16_may_have_halves(tmp_path: Path) -> None:
    text = "id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in ROWS if row["id"] != "d")
    path = a_file(tmp_path / "a.csv", text.encode("utf-16", "surrogatepass"))
    assert succeed([*RUN_LOCAL, path], tmp_path).out == b"a\tb\t1.000000\nc\te\t1.000000\n"
    kept = succeed([*RUN_LOCAL, "--output=kept", path], tmp_path).out
    assert kept.decode("utf-16", "surrogatepass").endswith("emoji \ud83d\nf,nothing like it\n")
    rows = tmp_path / "x.jsonl"
    succeed([*RUN_LOCAL, "--output=kept", path, "-o", rows], tmp_path)
    assert json.loads(rows.read_bytes().splitlines()[1])["text"] == "cut in an emoji \ud83d"


def test_the_library_reads_halves_and_marks() -> None:
    texts = [row["text"] for row in ROWS]
    assert [pair[:2] for pair in neardup.pairs(texts)] == [(0, 1), (2, 3), (2, 4), (3, 4)]
    assert [pair[:2] for pair in neardup.pairs(["\ud83d", "\ud83d", "x"])] == [(0, 1)]
    assert [pair[:2] for pair in neardup.pairs([["\ud83d"], ["\ud83d"], ["x"]])] == [(0, 1)]


GRIDS = "".join(
    json.dumps({"id": i, "text": " ".join(random.Random(i).choices("01", k=300))}) + "\n"
    for i in range(3)
).encode()
FEW = "of few words, much repeated, in any order"


@pytest.mark.parametrize("engine", ["pipe", "local", "inline"])
def test_texts_whose_order_is_lost_are_counted(engine: str, tmp_path: Path) -> None:
    """As sets of runs of three words, all grids of 0 and 1 are equal."""
    path = a_file(tmp_path / "a.jsonl", GRIDS + LINES)
    more = ["--scheme=minhash"] * (engine == "local")
    found, counted = ran(engine, ["--input=jsonl", *more], path, tmp_path)
    assert found.startswith(b"0\t1\t1.000000\n0\t2\t1.000000\n1\t2\t1.000000\n")
    assert f"3 texts {FEW}" in counted.err or counted.count(f"texts {FEW}") == 3
    found, counted = ran(engine, ["--input=jsonl", *more, "--shingle=word:20"], path, tmp_path)
    assert b"0\t1" not in found
    assert FEW not in counted.err
