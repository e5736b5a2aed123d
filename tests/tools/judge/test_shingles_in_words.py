"""Shingles in words: each is shown beside its own hash, and none is missing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading.shingling import Shingler, canonical
from neardup.tools.judge.pair_elements import shingles_in_words

WORDS = ["to", "The", "be", "a", "tram", "Straße", "e\u0301t\u00e9", "“late,”", "was", "-"]
texts = st.lists(st.sampled_from(WORDS), max_size=25).map("  ".join)
KINDS = ["word:1", "word:3", "char:1", "char:4", "word:2:bag", "char:2:bag", "spot:2:1", "spot:1:3"]


@pytest.mark.parametrize("kind", KINDS)
@given(texts)
def test_every_hash_has_its_words(kind: str, text: str) -> None:
    shingler = Shingler.parse(kind)
    words = shingles_in_words(text, shingler)
    assert set(words) == set(shingler(text).tolist())
    assert len(set(words.values())) == len(words)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "bag" not in kind])
@given(texts)
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
@given(texts)
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
