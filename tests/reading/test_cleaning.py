"""Cleaning removes markup, accents, digits and punctuation; engines compare the cleaned texts."""

import unicodedata
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.reading.cleaning import LETTERS, STEPS, Cleaning
from neardup.reading.shingling import Shingler, canonical
from neardup.reading.text_rows import text_lines, text_parser
from neardup.similarity.definitions import resemblance
from tests.support.engines import (
    INLINE,
    MAPPER,
    NEARDUP,
    REDUCER,
    RUN_LOCAL,
    Result,
    a_file,
    in_order,
    refuse,
    succeed,
)

MARKED, BARE = "<p>Hello <b>world</b>, the end.</p>", "Hello world the end"
words = Shingler.parse("word:1")


def similarity(one: str, other: str, *names: str) -> object:
    clean = Cleaning.parse(",".join(names)) if names else Cleaning()
    return resemblance(words(clean(one)).tolist(), words(clean(other)).tolist())


def test_markup_hides_that_texts_are_the_same() -> None:
    assert similarity(MARKED, BARE) * 7 == 1
    assert similarity(MARKED, BARE, "html", "punctuation") == 1
    assert similarity(MARKED, BARE, "html") * 3 == 1


def test_the_order_in_the_option_does_not_matter() -> None:
    text = "<p>Caf\u00e9 n&ordm; 7: l'\u0153uvre, 3.50 \u20ac!</p>"
    found = {(str(c), c(text)) for c in map(Cleaning.parse, map(",".join, permutations(STEPS)))}
    assert len(found) == 1
    ((name, cleaned),) = found
    assert name == ",".join(STEPS) == str(Cleaning.parse(name))
    assert cleaned.split() == ["Cafe", "no", "loeuvre"]


@pytest.mark.parametrize("text", ["", ",", "htm", "html,", "html, digits", "HTML", "all"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="html, width, accents, digits, punctuation"):
        Cleaning.parse(text)


# The steps.

signs = st.text("ab é'’-_.,+$€ ́ñ漢ि9٣", max_size=30)


@given(signs | st.text(max_size=30))
def test_no_punctuation_is_left_and_nothing_else_is_gone(text: str) -> None:
    text = unicodedata.normalize("NFC", text)
    cleaned = Cleaning.parse("punctuation")(text)
    assert not any(unicodedata.category(c)[0] in "PS" for c in cleaned)
    assert letters(cleaned) == letters(text)


def letters(text: str) -> list[str]:
    return [c for c in text if c.isalnum()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't, don’t, don＇t", "dont dont dont"),
        ("'tis the dogs' rock'n'roll", "tis the dogs rocknroll"),
        ("well-known state-of-the-art", "well known state of the art"),
        ("U.S.A. C++ snake_case a/b", "U S A C snake case a b"),
        ("5'10 $3.50 50% 20°", "5 10 3 50 50 20"),
        ("„Straße“ «été» ¿qué? 東京、日本。", "Straße été qué 東京 日本"),
        ("हिन्दी।", "हिन्दी"),
        ("I ❤️ NY 👨‍👩‍👧 👍🏽 1️⃣ ≠ =\u0338", "I NY 1\u20e3"),
    ],
)
def test_punctuation(text: str, expected: str) -> None:
    assert Cleaning.parse("punctuation")(text).split() == expected.split()


@given(st.text("a1٣.,:-/ ", max_size=30))
def test_digits_go_and_nothing_but_what_joins_them(text: str) -> None:
    cleaned = Cleaning.parse("digits")(text)
    assert not any(c.isdecimal() for c in cleaned)
    runs = cleaned_by_hand(text)
    assert cleaned == runs


def cleaned_by_hand(text: str) -> str:
    """Return a text without numbers; a mark between two digits belongs to the number."""
    gone = [c.isdecimal() for c in text]
    for i in range(1, len(text) - 1):
        inside = text[i] in ".,:/-'’" and text[i - 1].isdecimal() and text[i + 1].isdecimal()
        gone[i] |= inside
    return "".join(c for c, out in zip(text, gone) if not out)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Crème brûlée, ÀÉÎÕÜ, ñ", "Creme brulee, AEIOU, n"),
        ("Łódź Ærøskøbing Đorđe Þór", "Lodz AEroskobing Dorde THor"),
        ("İstanbul ısı", "Istanbul isi"),
        ("Việt Nam", "Viet Nam"),
        ("Ελλάδα Ёлка", "Ελλαδα Елка"),
        ("كِتَابٌ عَرَبِيّ، كـتاب أحمد", "كتاب عربي، كتاب احمد"),
        ("בְּרֵאשִׁית", "בראשית"),
        ("हिन्दी か゛が 한국어 ไทย", "हिन्दी か゛が 한국어 ไทย"),
        ("plain", "plain"),
    ],
)
def test_accents(text: str, expected: str) -> None:
    clean = Cleaning.parse("accents")
    for form in "NFC", "NFD":
        assert clean(unicodedata.normalize(form, text)) == unicodedata.normalize("NFC", expected)


def test_letters_are_those_that_unicode_does_not_take_apart() -> None:
    for code, plain in LETTERS.items():
        assert unicodedata.normalize("NFD", chr(code)) == chr(code)
        assert str(plain).isascii()
        assert canonical(str(plain)) == canonical(str(LETTERS[ord(chr(code).lower())]))


@given(st.text(max_size=30) | signs, st.sets(st.sampled_from(list(STEPS)), min_size=1))
@example("<b≯≮e\u0301'e\u0301", {"punctuation", "accents"})
def test_equal_texts_stay_equal_however_they_are_coded(text: str, names: set[str]) -> None:
    clean = Cleaning.parse(",".join(names))
    for shingler in words, Shingler.parse("char:3"):
        one, other = (
            shingler(clean(unicodedata.normalize(form, text.replace("<", "")))).tolist()
            for form in ("NFC", "NFD")
        )
        assert one == other


# The job.

FLAGS = ["--input=text", "--clean=punctuation,html", "--threshold=0.9"]
TEXTS = f"a\t{MARKED}\nb\t{BARE}\nc\t<p>...</p>\nd\t<nav>{BARE}</nav>\ne\t \n".encode()


def test_what_cleaning_empties_is_a_record_that_is_only_counted() -> None:
    batch, bad = text_parser(text_lines, words, Cleaning.parse("html,punctuation"))(TEXTS)
    assert (batch.ids, batch.without_shingles) == ([b"a", b"b"], (2, 3))
    assert [line.reason for line in bad] == ["no shingles"]
    assert batch.places.tolist() == [0, 1]


def ran(engine: str, flags: list[str], path: Path, tmp_path: Path) -> tuple[bytes, Result]:
    """Return the pairs that an engine prints, in order, and the result that has the counts."""
    if engine == "pipe":
        counted = succeed([*MAPPER, *flags], tmp_path, path.read_bytes())
        pairs = succeed([*REDUCER, *flags], tmp_path, in_order(counted.out)).out
        return b"".join(sorted({*pairs.splitlines(keepends=True)})), counted
    counted = succeed([*(INLINE if engine == "inline" else RUN_LOCAL), *flags, path], tmp_path)
    return in_order(counted.out), counted


@pytest.mark.parametrize("engine", ["pipe", "local", "inline"])
def test_on_every_engine(engine: str, tmp_path: Path) -> None:
    path = a_file(tmp_path / "texts.txt", TEXTS)
    pairs, counted = ran(engine, FLAGS, path, tmp_path)
    assert pairs == b"a\tb\t1.000000\n"
    assert counted.count("records") == 4
    assert counted.count("records without shingles") == 2
    assert counted.count("bad lines") == 1


def test_all_that_does_not_go_stays_as_it_was(tmp_path: Path) -> None:
    path = a_file(tmp_path / "texts.txt", TEXTS)
    result = succeed([*RUN_LOCAL, *FLAGS, "--output=kept", path], tmp_path)
    assert result.out == TEXTS.replace(f"b\t{BARE}\n".encode(), b"")
    assert result.count("records kept") == 3


@pytest.mark.slow
def test_an_index_keeps_what_it_was_made_with(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(TEXTS)
    (tmp_path / "new").write_text(f"n\t<div>{BARE}!</div>\n")
    old = str(tmp_path / "old.index")
    succeed([*NEARDUP, "index", *FLAGS, tmp_path / "old", "--to", old], tmp_path)
    other_order = ["--input=text", "--clean=html,punctuation", "--threshold=0.9"]
    result = succeed([*RUN_LOCAL, *other_order, "--against", old, tmp_path / "new"], tmp_path)
    assert result.out == b"n\ta\t1.000000\told\nn\tb\t1.000000\told\n"
    without = ["--input=text", "--threshold=0.9"]
    again = succeed([*RUN_LOCAL, *without, "--against", old, tmp_path / "new"], tmp_path)
    assert again.out == result.out  # by the options of the index
    other = [*without, "--clean=html", "--against", old, tmp_path / "new"]
    refused = refuse([*RUN_LOCAL, *other], tmp_path)
    said = "was made with --clean html,punctuation, and this run has --clean html;"
    assert said in refused.err
