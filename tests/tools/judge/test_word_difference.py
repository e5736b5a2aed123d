"""Word differences lose and add no word, and those of short texts are as small as possible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.tools.judge import pair_elements as module
from neardup.tools.judge.pair_elements import word_difference

texts = st.lists(st.sampled_from(["a", "b", "c", "d", "ab"]), max_size=30).map(" ".join)


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


@given(texts, texts)
def test_it_is_a_smallest_difference(a: str, b: str) -> None:
    parts = word_difference(a, b)
    assert words_of(parts, "same", "only_a") == a.split()
    assert words_of(parts, "same", "only_b") == b.split()
    assert len(words_of(parts, "same")) == longest(a.split(), b.split())
    kinds = [kind for kind, _ in parts]
    assert all(one != other for one, other in zip(kinds, kinds[1:]))
    assert ("only_b", "only_a") not in list(zip(kinds, kinds[1:]))


@given(texts, texts, st.integers(1, 60))
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
    """Very long texts, which are compared in pieces, lose hardly any common words."""
    parts = word_difference(a, b)
    assert words_of(parts, "same", "only_a") == a.split()
    assert words_of(parts, "same", "only_b") == b.split()
    assert same <= len(words_of(parts, "same")) <= len(b.split())
