"""Words are found in scripts without blanks between words."""

import json
import random
import re
import unicodedata
from pathlib import Path

import pytest

from neardup.reading.shingling import SCRIPTS, Shingler, words
from tests.support.engines import INLINE, RUN_LOCAL, Command, succeed

LETTERS = {
    "Chinese": [chr(0x4E00 + i) for i in range(3000)],
    "Japanese": [chr(c) for c in (*range(0x3041, 0x3097), *range(0x30A1, 0x30FB))],
    "Thai": [
        base + mark for base in map(chr, range(0xE01, 0xE2F)) for mark in ("", "\u0e34", "\u0e48")
    ],
}


def messages(language: str, count: int) -> tuple[list[str], list[str]]:
    """Return `count` texts of 40 letters, and copies of them with one letter changed."""
    draw = random.Random(language)
    texts = [draw.choices(LETTERS[language], k=40) for _ in range(count)]
    copies = []
    for text in texts:
        place = draw.randrange(40)
        other = draw.choice([letter for letter in LETTERS[language] if letter != text[place]])
        copies.append([*text[:place], other, *text[place + 1 :]])
    return list(map("".join, texts)), list(map("".join, copies))


@pytest.mark.first_case
@pytest.mark.parametrize("command", [RUN_LOCAL, INLINE])
@pytest.mark.parametrize("language", LETTERS)
def test_copies_with_one_letter_changed_are_found(
    language: str, command: Command, tmp_path: Path
) -> None:
    texts, copies = messages(language, 150)
    rows = [
        {"id": f"{kind}{i}", "text": text}
        for kind, some in (("a", texts), ("b", copies))
        for i, text in enumerate(some)
    ]
    data = tmp_path / "messages.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = succeed([*command, "--input=jsonl", "--threshold=0.8", data], tmp_path)
    found = {tuple(line.split(b"\t")[:2]) for line in result.out.splitlines()}
    # One letter in 40 changes 3 of 38 runs at most: 35/41 is above 0.8.
    assert found == {(b"a%d" % i, b"b%d" % i) for i in range(150)}
    assert "one shingle" not in result.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("to be or", ["to", "be", "or"]),
        ("naïve “café”", ["naïve", "“café”"]),
        ("한국어 단어", ["한국어", "단어"]),
        ("हिन्दी शब्द", ["हिन्दी", "शब्द"]),
        ("東京に行く。", ["東", "京", "に", "行", "く", "。"]),
        ("Tokyo東京2026", ["Tokyo", "東", "京", "2026"]),
        ("ไม่มี", ["ไ", "ม่", "มี"]),
        ("\U00020000\U00020001 x", ["\U00020000", "\U00020001", "x"]),
        ("\U0001f600 x", ["\U0001f600", "x"]),
        ("\u3000東\u3000", ["東"]),
        ("\u0e31x", ["\u0e31", "x"]),
        ("コーヒー", ["コ", "ー", "ヒ", "ー"]),
        ("ｶﾞｯﾂﾊﾟﾌﾞ", ["ｶﾞ", "ｯ", "ﾂ", "ﾊﾟ", "ﾌﾞ"]),
        ("か\u309aき", ["か\u309a", "き"]),
    ],
)
def test_letters_of_such_scripts_are_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_every_letter_of_the_table_is_a_word() -> None:
    for ranges in SCRIPTS.values():
        for piece in ranges.split():
            low, _, high = piece.partition("-")
            for code in {int(low, 16), int(high or low, 16)}:
                assert words(f"a{chr(code)}b") == ["a", chr(code), "b"], hex(code)


def test_the_table_agrees_with_the_names_of_letters() -> None:
    kana = "KATAKANA|HIRAGANA|HENTAIGANA|SQUARE"
    names = {
        "Han": "CJK|KANGXI|HANGZHOU|IDEOGRAPHIC|OLD CHINESE|VIETNAMESE",
        "Katakana": kana,
        "Hiragana": kana,
    }
    seen = 0
    for script, ranges in SCRIPTS.items():
        for piece in ranges.split():
            low, _, high = piece.partition("-")
            for code in range(int(low, 16), int(high or low, 16) + 1):
                name = unicodedata.name(chr(code), "")
                seen += bool(name)
                assert not name or re.search(names.get(script, script.upper()), name), name
    assert seen > 80_000


def test_characters_are_as_before() -> None:
    shingles = Shingler.parse("char:2")
    assert len(shingles("東京に行く")) == 4
    assert shingles("東京 に")[0] == shingles("東京に")[0]


@pytest.mark.first_case
@pytest.mark.parametrize("command", [RUN_LOCAL, INLINE])
def test_texts_of_a_single_shingle_are_named(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "titles.txt"
    short = "".join(f"a{i}\tno{i} title\n" for i in range(30))
    data.write_text(short + "".join(f"b{i}\tthis is {i} a title\n" for i in range(170)))
    hint = "30 of 200 texts are no longer than one shingle"
    flags = ["--input=text", data]
    assert hint in succeed([*command, *flags], tmp_path).err
    assert "one shingle" not in succeed([*command, "--shingle=char:3", *flags], tmp_path).err
    data.write_text(short[:100] + "".join(f"b{i}\tthis is {i} a title\n" for i in range(170)))
    assert "one shingle" not in succeed([*command, *flags], tmp_path).err
