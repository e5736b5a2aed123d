"""Cleaning: what of a text is not to count, taken out before it is made canonical and shingled.

    html         tags, and what is no body text (see html_text.py)
    accents      é is e: what stands above or below a letter goes (but not the vowel signs of
                 Hindi, or the voicing of か); letters that Unicode does not take apart, such as
                 ł, ø and æ, are as in LETTERS; ü is u, and ß is ss
    digits       numbers, with the marks inside them, become nothing: 3.5, 2020-01-31
    punctuation  punctuation and symbols (Unicode P* and S*) become blanks; an apostrophe between
                 two letters becomes nothing, so that don't is dont, and well-known is well known

The order is that of STEPS, whatever the order in the option.  Text is brought to Unicode NFC in
between, so that equal texts stay equal however they are coded.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from neardup.reading.html_text import body_text

APOSTROPHE = re.compile(r"(?<=[^\W\d_])['’‘ʼ＇](?=[^\W\d_])")
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


STEPS = {
    "html": body_text,
    "accents": without_accents,
    "digits": without_digits,
    "punctuation": without_punctuation,
}


@dataclass(frozen=True)
class Cleaning:
    """From text to what of it counts; `names` are those of its steps, in their order.

    >>> clean = Cleaning.parse("punctuation,html")
    >>> str(clean), clean("<p>Hello <b>world</b>, the end.</p>").split()
    ('html,punctuation', ['Hello', 'world', 'the', 'end'])
    """

    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Cleaning:
        """Read "html,punctuation", in any order; ValueError says what there is."""
        names = text.split(",")
        for name in names:
            if name not in STEPS:
                raise ValueError(
                    f"{name!r} is not one of {', '.join(STEPS)}; several with commas and no "
                    "blanks, as html,punctuation"
                )
        return cls(tuple(name for name in STEPS if name in names))

    def __str__(self) -> str:
        return ",".join(self.names)

    def __call__(self, text: str) -> str:
        for name in self.names:
            text = STEPS[name](text)
            if not text.isascii():
                text = unicodedata.normalize("NFC", text)
        return text
