"""Texts, shingles in words, and differences of two records, as they are shown."""

from __future__ import annotations

import bz2
import gzip
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.reading.blocks import numbered, read_files
from neardup.reading.input_format import InputFormat
from neardup.reading.shingling import Shingler, canonical
from neardup.tools.judge import pair_elements as module
from neardup.tools.judge.pair_elements import (
    AROUND,
    CHANGED,
    Texts,
    difference,
    noting,
    shingles_in_words,
    texts_of,
    word_difference,
)

TEXT, SHINGLES = (InputFormat.of(kind, None, None) for kind in ("text", "shingles"))
LINES = "é 1\tto be  \né 2\tor not\r\n\nplain not to be\n\tno id\né\tother\né 1\tsecond\n".encode()
WORDS = ["to", "The", "be", "a", "tram", "Straße", "e\u0301t\u00e9", "“late,”", "was", "-"]
sentences = st.lists(st.sampled_from(WORDS), max_size=25).map("  ".join)
KINDS = ["word:1", "word:3", "char:1", "char:4", "word:2:bag", "char:2:bag", "spot:2:1", "spot:1:3"]
texts = st.lists(st.sampled_from("abcd"), max_size=AROUND).map(" ".join)
word_lists = st.lists(st.sampled_from(["a", "b", "c", "d", "ab"]), max_size=30).map(" ".join)


def test_texts_of_lines(tmp_path: Path) -> None:
    (tmp_path / "1.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "2.bz2").write_bytes(bz2.compress(b"z\tin the second\xff\ny\tin the second\n"))
    files = numbered(str(tmp_path / name) for name in ("1.gz", "2.bz2"))
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
    (block,) = read_files(numbered([str(tmp_path / "a")]), 99)
    assert list(texts_of(block, SHINGLES)) == [(b"a", "3 5:2  8"), (b"b", "1"), (b"ab", "9")]


def test_the_blocks_go_on_and_all_texts_of_an_id_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(LINES * 2 + b"x" * 600_000 + b"\n")
    held: Texts = {}
    blocks = list(read_files(numbered([str(tmp_path / "a")]), 1 << 18))
    assert any(block.flaw for block in blocks)
    assert list(noting(blocks, TEXT, ["é 1".encode()], held)) == blocks
    assert held == {"é 1".encode(): {"to be": None, "second": None}}


@pytest.mark.parametrize("kind", KINDS)
@given(sentences)
def test_every_hash_has_its_words(kind: str, text: str) -> None:
    shingler = Shingler.parse(kind)
    words = shingles_in_words(text, shingler)
    assert set(words) == set(shingler(text).tolist())
    assert len(set(words.values())) == len(words)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "bag" not in kind])
@given(sentences)
def test_the_words_have_the_hash(kind: str, text: str) -> None:
    """A shingle's words, shingled alone, have its hash, unless they begin or end with a blank.

    Spots are hashed as runs of words.
    """
    shingler = Shingler.parse(kind)
    alone = shingler
    if shingler.unit == "spot":
        alone = Shingler("word", shingler.width + 1)
    for hash_, words in shingles_in_words(text, shingler).items():
        if words == words.strip():  # which a text taken alone would be
            assert alone(words).tolist() == [hash_]
        assert set(words.split()) <= set(canonical(text).split()) or shingler.unit != "word"


@pytest.mark.parametrize("kind", ["word:2", "char:2"])
@given(sentences)
def test_in_a_bag_they_are_numbered(kind: str, text: str) -> None:
    """In a bag, equal shingles are numbered: the first has no number, and the n-th has "#n"."""
    bag = Shingler.parse(f"{kind}:bag")
    found = shingles_in_words(text, bag)
    plain = [words for words in found.values() if " #" not in words]
    assert plain == list(shingles_in_words(text, Shingler.parse(kind)).values())
    for words in found.values():
        if again := re.fullmatch("(.*) #([0-9]+)", words):
            assert {again[1], *(f"{again[1]} #{n}" for n in range(2, int(again[2])))} <= {
                *found.values()
            }


def test_examples() -> None:
    def shown(kind: str, text: str) -> list[str]:
        return list(shingles_in_words(text, Shingler.parse(kind)).values())

    assert shown("word:3", "To  be") == ["to be"]
    assert shown("word:3", " ") == shown("spot:2:1", "no antecedent") == []
    assert shown("char:3", "Ab  cd") == ["ab ", "b c", " cd"]
    rainy = "On a rainy morning, the tram was late."
    assert shown("spot:2:1", rainy) == ["a rainy morning", "the tram late"]


@given(texts, texts)
@example("a a a", "a a a a")
def test_both_texts_can_be_read_from_it(a: str, b: str) -> None:
    told = " ".join(difference(a, b).split())
    if a == b:
        assert told == "none: the same words in the same order"
        return
    only_a, only_b = r"\[-(.*?)-\]", r"\{\+(.*?)\+\}"
    assert re.sub(only_a, r"\1", re.sub(only_b, "", told)).split() == a.split()
    assert re.sub(only_b, r"\1", re.sub(only_a, "", told)).split() == b.split()


def test_what_is_long_is_cut() -> None:
    same = " ".join(f"s{i}" for i in range(100))
    gone = " ".join(f"g{i}" for i in range(100))
    told = " ".join(difference(f"{same} {gone} {same}", f"{same} {same}").split())
    assert told == (
        "… s96 s97 s98 s99 [-g0 g1 g2 g3 g4 g5 g6 g7 … g92 g93 g94 g95 g96 g97 g98 g99-] s0 s1 s2 "
        "s3 …"
    )
    assert told.count("g") == 2 * CHANGED
    words = difference("x" * 1000, "y" * 1000)
    assert re.fullmatch(r"\[-x{60}…-\]\s*\{\+y{60}…\+\}", words)


def test_control_characters_reach_no_terminal() -> None:
    assert difference("a\x1b[2J b", "b\u202e b") == r"[-a\x1b[2J-] {+b+} b"


def longest(a: list[str], b: list[str]) -> int:
    """Return the length of a longest common subsequence, by the textbook's table."""
    above = [0] * (len(b) + 1)
    for x in a:
        row = [0]
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[j]))
        above = row
    return above[-1]


def words_of(parts: list[tuple[str, str]], *kinds: str) -> list[str]:
    return [word for kind, words in parts if kind in kinds for word in words.split()]


@given(word_lists, word_lists)
def test_it_is_a_smallest_difference(a: str, b: str) -> None:
    parts = word_difference(a, b)
    assert words_of(parts, "same", "only_a") == a.split()
    assert words_of(parts, "same", "only_b") == b.split()
    assert len(words_of(parts, "same")) == longest(a.split(), b.split())
    kinds = [kind for kind, _ in parts]
    assert all(one != other for one, other in zip(kinds, kinds[1:]))
    assert ("only_b", "only_a") not in list(zip(kinds, kinds[1:]))


@given(word_lists, word_lists, st.integers(1, 60))
def test_in_pieces_it_is_a_difference(a: str, b: str, cells: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CELLS", cells)
        parts = word_difference(a, b)
    assert words_of(parts, "same", "only_a") == a.split()
    assert words_of(parts, "same", "only_b") == b.split()


def test_words_are_shown_in_composed_letters_and_compared_in_lower_case() -> None:
    a, b = "The STRASSE  e\u0301te\u0301\nis\tlong", "the Straße \u00e9t\u00e9 was LONG"
    assert word_difference(a, b) == [
        ("same", "The STRASSE \u00e9t\u00e9"),
        ("only_a", "\nis"),
        ("only_b", "was"),
        ("same", "long"),
    ]
    assert word_difference("", " \n") == []
    assert word_difference("", "x y") == [("only_b", "x y")]


@pytest.mark.parametrize(
    ("a", "b", "parts"),
    [
        ("東京に行く。", "東京へ行く。", "same 東京 only_a に only_b へ same 行く。"),
        ("ไปไหนมา", "ไปไหม่มา", "same ไปไห only_a น only_b ม่ same มา"),
        ("Tokyo東京 2026", "Tokyo東 2026", "same Tokyo東 only_a 京 same 2026"),
        ("か\u3099っこう", "がっこう", "same がっこう"),
    ],
)
def test_letters_of_scripts_without_blanks_are_compared(a: str, b: str, parts: str) -> None:
    told = parts.split()
    assert word_difference(a, b) == list(zip(told[::2], told[1::2]))


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("x " * 100_000, "x " * 90_000, 90_000),
        ("x " * 40_000, "x y " * 20_000, 20_000),
        (" ".join(map(str, range(100_000))), " ".join(map(str, range(7, 100_000, 2))), 49_000),
    ],
)
def test_very_long_texts(a: str, b: str, same: int) -> None:
    """Very long word_lists, which are compared in pieces, lose hardly any common words."""
    parts = word_difference(a, b)
    assert words_of(parts, "same", "only_a") == a.split()
    assert words_of(parts, "same", "only_b") == b.split()
    assert same <= len(words_of(parts, "same")) <= len(b.split())
