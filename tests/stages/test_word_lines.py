"""The words of a text, piece by piece, are those of the whole text; their spans are in the text."""

from __future__ import annotations

import random

import pytest

from neardup.reading.cleaning import Cleaning
from neardup.reading.shingling import utf8_words
from neardup.stages.word_lines import Words

PARTS = [*"aBéßſ-7.'ー東京かไ", "e\u0301", "か\u3099", "ที่", "\u200b", "\xad", "ﬁ", "½", "Ａ", "Ω"]
BLANKS = [" ", "\n", "\t", "\u3000", "\x1c", "\x85", "  "]
CLEANINGS = ["", "width", "accents", "digits", "punctuation", "width,accents,digits,punctuation"]


@pytest.mark.parametrize("names", CLEANINGS, ids=["none", *CLEANINGS[1:-1], "all"])
def test_words_and_spans(names: str) -> None:
    clean = Cleaning.parse(names) if names else Cleaning()
    dice, words = random.Random(names), Words(clean)
    for i in range(400):
        some = PARTS[:3] if i % 4 == 0 else PARTS
        text = "".join(dice.choices(some + BLANKS, k=dice.randrange(20)))
        line = words.line(text)
        assert line == b"".join(word + b" " for word in utf8_words(clean(text))), repr(text)
        spans = words.spans(text)
        assert len(spans) == line.count(b" ")
        assert (spans[:, 0] < spans[:, 1]).all()
        for word, (a, b) in zip(line.split(), spans.tolist()):
            assert word in words.line(text[a:b]).split(), repr(text)


@pytest.mark.parametrize("text", ["Well-known, don't", "東京'タワー-x", "a.b.c"])
def test_marks_separate_words_of_their_own_spans(text: str) -> None:
    words = Words(Cleaning.parse("punctuation"))
    spans = words.spans(text)
    assert len({*map(tuple, spans.tolist())}) == len(spans) > 1
    assert b"".join(words.line(text[a:b]) for a, b in spans.tolist()) == words.line(text)
