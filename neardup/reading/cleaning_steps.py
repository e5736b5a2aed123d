"""What each step of cleaning makes of a text; which there are stands in `cleaning`."""

from __future__ import annotations

import re
import unicodedata

# The mark first, which is what a search can skip to; then whether a letter is before it.
APOSTROPHE = re.compile(r"['’‘ʼ＇](?<=[^\W\d_].)(?=[^\W\d_])")
NUMBER = re.compile(r"\d+(?:[.,:/'’-]\d+)*")
MARKS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\ufe20-\ufe2f]+")
# What belongs to a symbol before it, as in emoji, and would be left alone where that is gone.
ORPHANS = re.compile(
    r"(?<!\S)[\u0300-\u036f\u200d\u20d0-\u20ff\ufe00-\ufe0f\U000e0020-\U000e007f]+"
)
LETTERS = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "ħ": "h"}
    | {"Ħ": "H", "ŧ": "t", "Ŧ": "T", "ı": "i", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE"}
    | {"þ": "th", "Þ": "TH", "ß": "ss", "ẞ": "SS"}
)


class _Blanks(dict[int, int]):
    """Character → blank, for punctuation and symbols; others as they are.  Filled as they come."""

    def __missing__(self, code: int) -> int:
        of_words = unicodedata.category(chr(code))[0] not in "PS"
        self[code] = code if of_words else ord(" ")
        return self[code]


_BLANKS = _Blanks()


def without_punctuation(text: str) -> str:
    """
    >>> without_punctuation("“Don't,” she said – it's a well-known trick!").split()
    ['Dont', 'she', 'said', 'its', 'a', 'well', 'known', 'trick']
    """
    text = APOSTROPHE.sub("", text).translate(_BLANKS)
    return text if text.isascii() else ORPHANS.sub("", text)


def without_digits(text: str) -> str:
    """
    >>> without_digits("On 2020-01-31, 3.5 of 10 played mp3s.")
    'On ,  of  played mps.'
    """
    return NUMBER.sub("", text)


def without_accents(text: str) -> str:
    """
    >>> without_accents("Crème brûlée à Łódź, Ærøskøbing, Straße")
    'Creme brulee a Lodz, AEroskobing, Strasse'
    """
    if text.isascii():
        return text
    bare = MARKS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare.translate(LETTERS))
